/** Tests the flag --memory-limit: which sizes it accepts, and what happens if a process needs more memory. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bytesOf } from '../../../src/contract/memorySize.ts';
import { temporaryFolder } from '../../support/build.ts';
import { ROOT } from '../../support/cli.ts';

describe('a size of memory', () => {
  it.each([
    ['500MB', 500e6],
    ['1GB', 1e9],
    ['1.5 GiB', 1.5 * 2 ** 30],
    ['64KB', 64e3],
    ['2TB', 2e12],
    ['1', undefined],
    ['GB', undefined],
    ['1PB', undefined],
    ['1gb', undefined],
    ['-1GB', undefined],
  ])('%s is %s bytes', (text, bytes) => expect(bytesOf(text)).toBe(bytes));
});

/** Runs a command that allocates objects of 0.6 MB `times` times, and keeps the newest ones. */
function grow(limit: string, flags: readonly string[], kept: number, times: number) {
  const path = join(temporaryFolder(), 'grow.mts');
  writeFileSync(
    path,
    `import { HELP } from '${ROOT}/src/cli/flags.ts';
import { MEMORY_LIMIT } from '${ROOT}/src/cli/memoryLimit.ts';
import { runCommand } from '${ROOT}/src/cli/run.ts';
import { setTimeout } from 'node:timers/promises';
const command = { call: 'grow', about: '', flags: [MEMORY_LIMIT, HELP], examples: [], exits: ['done'] };
await runCommand(command, ['--memory-limit', '${limit}'], async () => {
  const kept = [];
  for (let i = 0; i < ${times}; i += 1) {
    kept.push(Array.from({ length: 10_000 }, (_, j) => ({ i, j })));
    if (kept.length > ${kept}) kept.shift();
    await setTimeout(1);
  }
  console.log('done');
});`,
  );
  return spawnSync(process.execPath, [...flags, '--import', 'tsx', path], { cwd: ROOT, encoding: 'utf8' });
}

describe('a command whose objects need more memory than its limit', () => {
  it.each([
    ['60MB', [], /Node.js needs more memory than --memory-limit 60MB allows: \d+ MB/],
    // V8's own limit is lower than --memory-limit, so V8 ends the process. The command must give the same advice.
    ['8GB', ['--max-old-space-size=200'], /Node.js needs more memory than --memory-limit 8GB allows: \d+ MB/],
  ])('ends with an error and advice at a limit of %s', (limit, flags, message) => {
    const { status, stderr, stdout } = grow(limit, flags, 400, 800);
    expect(stdout).not.toContain('done');
    expect(stderr).toMatch(message);
    expect(stderr).toMatch(/Raise --memory-limit/);
    expect(status).toBe(3);
  });
});

it('a command that needs less memory than its limit is not ended because of garbage', () => {
  const { status, stderr, stdout } = grow('60MB', [], 40, 400);
  expect([status, stderr, stdout]).toEqual([0, '', 'done\n']);
});
