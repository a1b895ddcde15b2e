/** Tests commands on a real terminal: the progress line, help, colours, and the table at the end. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { BUILD_COMMAND } from '../../../src/engine/buildCommand.ts';
import { temporaryFolder, writeFiles } from '../../support/build.ts';
import { ROOT, run } from '../../support/cli.ts';
import { ndjson, record } from '../../support/records.ts';
import { until } from '../../support/until.ts';

const CLEAR = '\r\x1b[K';

/** True if `script` is the program of util-linux, which runs a command in a terminal. Other versions of `script` have other flags. */
const hasScript = /util-linux/.test(spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout ?? '');
if (!hasScript) console.warn('script of util-linux is missing: what commands do on a terminal is not tested');

describe.skipIf(!hasScript)('on a terminal', () => {
  /** Runs a command in a terminal that is both its standard output and its standard error. Returns the output. */
  function onTerminal(command: string, cwd: string, { columns = 80, env = {} }: { columns?: number; env?: Record<string, string> } = {}) {
    const line = `stty cols ${columns}; ${process.execPath} ${join(ROOT, 'scripts/run.cjs')} ${command}`;
    const { NO_COLOR: _, ...inherited } = process.env;
    return execFileSync('script', ['-qec', line, '/dev/null'], {
      cwd,
      env: { ...inherited, TERM: 'xterm', ...env },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }).replaceAll('\r\n', '\n');
  }

  /**
   * Returns the text that is visible on a terminal after a command wrote `written`. Keeps only the text after a line was last cleared.
   * Removes colours.
   */
  const seen = (written: string) =>
    written
      .split('\n')
      .map((line) => line.split(CLEAR).at(-1))
      .join('\n')
      .replace(/\x1b\[\d+m/g, '');
  const withoutFigures = (text: string) => text.replace(/[\d.]+ s\b|(?<=seconds +)[\d.].*|(?<=memory +)[\d,]+/g, '#');

  /** True if the terminal of the command that a process of `script` runs gives each key to the command. */
  function isRaw(script: number | undefined): boolean {
    const [command = ''] = readFileSync(`/proc/${script}/task/${script}/children`, 'utf8').split(' ');
    return execFileSync('stty', ['-a', '-F', readlinkSync(`/proc/${command}/fd/0`)], { encoding: 'utf8' }).includes('-icanon');
  }

  const records = Array.from({ length: 30_000 }, (_, i) => record(1 + (i % 300), 1 + Math.floor(i / 300)));

  it('a build shows its progress in one line, and removes the line at the end', async () => {
    const work = temporaryFolder();
    // The same block in two files causes a notice.
    writeFiles(work, {
      'input/a.ndjson': ndjson(records),
      'input/b.ndjson': ndjson([record(999, 1)]),
      'input/c.ndjson': ndjson([record(999, 1)]),
    });
    const written = onTerminal('build --out terminal', work);
    const shown = written.split(CLEAR).slice(1, -1);
    expect(shown.filter((text) => /^\[[= ]{20}\] +\d+ % {2}write: [\d,]+ of 30,001 records/.test(text))).not.toEqual([]);
    expect(
      shown.filter(
        (text) =>
          !/^(\[[= ]{20}\] +\d+ % {2})?(load|write|finish): /.test(text) && !/^\x1b\[33mNote:|^(Read|Wrote) /.test(text) && text !== '',
      ),
    ).toEqual([]);
    const plain = await run('build', ['--out', 'plain', '--cache', 'cache'], work);
    expect(plain.stderr).toMatch(/^Note: 1 block\(s\) are in several files/);
    expect(plain.stdout + plain.stderr).not.toContain('\x1b');
    // Removes lines of progress. A slow machine prints them if there is no terminal.
    const lines = (plain.stderr + plain.stdout).replace(/^(?:load|write|finish): .*\n/gm, '');
    expect(withoutFigures(seen(written))).toBe(withoutFigures(lines).replaceAll('plain', 'terminal'));
    const again = onTerminal('verify --dir terminal', work);
    expect(withoutFigures(seen(again))).toMatch(/^terminal is correct: .*\n {2}records +30,001\n/);
  });

  it('with --log json, or if TERM is dumb, there is no progress line and no colour', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'input/a.ndjson': ndjson(records.slice(0, 8000)) });
    for (const line of onTerminal('build --log json', work).trim().split('\n')) expect(JSON.parse(line)).toMatchObject({ level: 'info' });
    expect(onTerminal('build --full', work, { env: { TERM: 'dumb' } })).not.toContain('\x1b');
  });

  it.each([
    ['Ctrl-C', '\x03'],
    ['Ctrl-D', '\x04'],
  ])('init stops at %s without a stack', async (_, key) => {
    const work = temporaryFolder();
    const line = `${process.execPath} ${join(ROOT, 'scripts/run.cjs')} init`;
    const child = spawn('script', ['-qec', line, '/dev/null'], { cwd: work, env: { ...process.env, TERM: 'xterm' } });
    let written = '';
    child.stdout.on('data', (text: Buffer) => (written += text.toString()));
    const ended = once(child, 'close');
    await until(() => written.includes('Where do') && isRaw(child.pid));
    child.stdin.write(key);
    const [code] = (await ended) as [number];
    expect([code, seen(written)]).toEqual([130, expect.stringMatching(/Error: stopped; no file was written\s*$/)]);
    expect(readdirSync(work)).toEqual([]);
  });

  it('colours are rare, and none with NO_COLOR', () => {
    const work = temporaryFolder();
    const failed = (env: Record<string, string>) => {
      const command = `build --inptu x || true`;
      return onTerminal(command, work, { env });
    };
    expect(failed({})).toMatch(/^\x1b\[31mError:\x1b\[39m unknown flag --inptu; did you mean --input\?\n/);
    expect(failed({ NO_COLOR: '1' })).toMatch(/^Error: unknown flag --inptu/);
    expect(failed({ NO_COLOR: '' })).toMatch(/^\x1b\[31mError:/);
  });

  it.each([
    [60, 60],
    [44, 44],
    [400, 100],
  ])('help in a terminal of %i columns has lines of at most %i characters', (columns, most) => {
    const help = seen(onTerminal('build --help', ROOT, { columns }));
    // Skips examples, which have the name of a command: they are never wrapped, so that users can copy them.
    const lines = help.split('\n').filter((line) => !line.includes('npm run'));
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(most);
    expect(Math.max(...lines.map((line) => line.length))).toBeGreaterThan(most - 20);
    expect(help.replace(/\s+/g, ' ')).toContain(BUILD_COMMAND.about);
  });
});
