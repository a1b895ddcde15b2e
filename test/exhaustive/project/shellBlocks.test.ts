/** Runs the shell blocks of README.md in a fresh copy of the project. Checks the syntax and the flags of all documents. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fg from 'fast-glob';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Flags } from '../../../src/cli/flags.ts';
import { ROOMS } from '../../faults/list.ts';
import { ROOT } from '../../support/cli.ts';
import { COMMANDS } from '../../support/commands.ts';
import { codeBlocksOf, PAGES, readPage } from '../../support/pages.ts';
import { ProjectCopy } from '../../support/shell.ts';

/** Pages whose blocks run, with a text of each block that does not run, and why. */
const PAGES_TO_RUN: Readonly<Record<string, readonly (readonly [text: string, reason: string])[]>> = {
  'README.md': [
    ['--from core:http://127.0.0.1:8332      #', 'no such node runs; operator.test.ts runs each line with a node and a mirror'],
    ['--input input/pulled --dialect hiro', 'it builds what the block before pulled; operator.test.ts runs it'],
  ],
};

const SHELL = PAGES.flatMap(codeBlocksOf).filter(({ label }) => label === 'sh');

/** Splits a line into words as a shell does without substitutions, up to a comment or the next command. */
function wordsOf(line: string): string[] {
  const words: string[] = [];
  for (const [word] of line.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)) {
    if (/^(?:#|[|&;]|[0-9]?>)/.test(word)) break;
    words.push(word.replace(/'([^']*)'|"([^"]*)"/g, '$1$2'));
  }
  return words;
}

/** Returns the calls of npm scripts in a text, as script and arguments. */
const callsIn = (text: string): [script: string, args: string[]][] =>
  [...text.replace(/\\\n/g, ' ').matchAll(/\bnpm (?:run (?:-s )?([\w:]+)|(start))(?: -- ([^\n`]*))?/g)].map(
    ([, script, start, args = '']) => [script ?? start ?? '', wordsOf(args)],
  );

it('the shell blocks of documents have valid syntax', () => {
  expect(SHELL.length).toBeGreaterThan(15);
  for (const { page, text } of SHELL) {
    const { status, stderr } = spawnSync('bash', ['-n'], { input: text, encoding: 'utf8' });
    expect([page, text, status, stderr]).toEqual([page, text, 0, '']);
  }
});

describe('the flags of npm scripts', () => {
  const scripts = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> }).scripts;
  const TEST_FILES = fg.sync('test/**/*.test.ts', { cwd: ROOT });

  it.each(PAGES.filter((page) => callsIn(readPage(page)).length > 0))('in %s exist in the commands', (page) => {
    for (const [script, args] of callsIn(readPage(page))) {
      expect(Object.keys(scripts)).toContain(script);
      const command = COMMANDS[scripts[script]?.split('scripts/run.cjs ')[1] ?? ''];
      // Vitest accepts parts of file names as arguments.
      if (script === 'faults') expect(args.filter((arg) => !(arg in ROOMS))).toEqual([]);
      else if (script.startsWith('test')) expect(args.filter((arg) => !TEST_FILES.some((file) => file.includes(arg)))).toEqual([]);
      else if (command === undefined) expect([script, args]).toEqual([script, []]);
      // Checks flags that prose mentions alone, without the other arguments of the command.
      else if (args.length > 0) Flags.parse({ ...command, positionals: { name: 'anything', least: 0 } }, args);
    }
  });
});

describe.each(Object.entries(PAGES_TO_RUN))('%s', (page, exempt) => {
  const blocks = SHELL.filter((block) => block.page === page);
  const [skipped, run] = [true, false].map((isSkipped) =>
    blocks.filter(({ text }) => exempt.some(([part]) => text.includes(part)) === isSkipped),
  );
  let project: ProjectCopy;
  beforeAll(async () => {
    project = await ProjectCopy.make();
  });
  afterAll(() => project.close());

  it('has each block that cannot run', () => expect(skipped).toHaveLength(exempt.length));

  it.each(run ?? [])('runs: $text', async ({ text }) => {
    const { code, output } = await project.run(text);
    expect(code, output).toBe(0);
  });
});
