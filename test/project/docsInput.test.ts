/** Tests the examples in docs/input.md. Each example builds, and all examples build the same mirror. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { ROOT } from '../support/cli.ts';

const page = readFileSync(join(ROOT, 'docs/input.md'), 'utf8');

/** Files of the examples, by section heading. The line before a code block ends with the name of its file. */
const EXAMPLES = page.split(/^## /m).flatMap((section) => {
  const files = [...section.matchAll(/`input\/([^`]+)`:\n\n```[a-z]+\n([\s\S]*?\n)```$/gm)].map(([, name = '', text = '']) => [name, text]);
  return files.length === 0 ? [] : [[section.split('\n')[0] ?? '', Object.fromEntries(files) as Record<string, string>] as const];
});

const DIGEST = /"digest": "([0-9a-f]{64})"/;

async function digestOf(files: Readonly<Record<string, string>>): Promise<string> {
  const work = temporaryFolder();
  writeFiles(join(work, 'input'), files);
  await testBuild(join(work, 'dist'), { inputs: [join(work, 'input')] });
  return DIGEST.exec(readFileSync(join(work, 'dist/runes/v1/manifest.json'), 'utf8'))?.[1] ?? '';
}

describe('docs/input.md', () => {
  it('has an example of every format in its list', () => {
    const forms = [...page.matchAll(/^- \[([^\]]+)\]\(#/gm)].map(([, name = '']) => name);
    expect(forms.length).toBeGreaterThan(3);
    expect(EXAMPLES.map(([heading]) => heading.toLowerCase())).toEqual(forms);
  });

  it.each(EXAMPLES)('shows records that build: %s', async (_, files) => {
    // The records equal those of the sample.
    const rowsOf = (name: string) => {
      const [head, ...rows] = readFileSync(join(ROOT, 'sample', name), 'utf8').split('\n');
      return [head, ...rows.filter((row) => row.startsWith('840000:3,'))].join('\n');
    };
    expect(await digestOf(files)).toBe(await digestOf({ 'ledger.csv': rowsOf('ledger.csv'), 'runes.csv': rowsOf('runes.csv') }));
  });
});
