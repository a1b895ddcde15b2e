/** Reads the documents of the project. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { filesBelow } from './build.ts';
import { ROOT } from './cli.ts';
import { words } from './records.ts';

/** All pages of documentation, as paths from the root. */
export const PAGES: readonly string[] = [
  ...words(`
    README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md input/README.md sample/README.md packaging/mirror/README.md
    packaging/client/README.md test/fixtures/README.md
  `),
  ...['docs', 'hosting'].flatMap((folder) => filesBelow(join(ROOT, folder)).map((path) => `${folder}/${path}`)),
].filter((path) => path.endsWith('.md'));

export const readPage = (page: string): string => readFileSync(join(ROOT, page), 'utf8');

/** A code block between two lines of three backticks. */
interface CodeBlock {
  readonly page: string;
  /** Text after the opening backticks. Empty if there is none. */
  readonly label: string;
  /** Content of the block, with a line feed at its end. */
  readonly text: string;
}

const BLOCK = /^([ ]*)```(.*)\n([\s\S]*?)^[ ]*```$/gm;

export const codeBlocksOf = (page: string): CodeBlock[] =>
  [...readPage(page).matchAll(BLOCK)].map(([, , label = '', text = '']) => ({ page, label, text }));

/** Returns the first code block with this label below this heading. Throws an Error if there is none. */
export function blockBelow(page: string, heading: string, label: string): string {
  const [, below] = readPage(page).split(new RegExp(`^#+ ${heading}$`, 'm'));
  const block = [...(below ?? '').matchAll(BLOCK)].find(([, , found]) => found === label);
  if (block === undefined) throw new Error(`${page} has no block with the label ${label} below ${heading}`);
  return block[3] ?? '';
}

/** Returns a page without its code blocks. */
export const withoutBlocks = (page: string): string => readPage(page).replace(BLOCK, '');

/** Returns a page without its code, because code may have text that looks like a link or a heading. */
export const proseOf = (page: string): string => withoutBlocks(page).replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]#]/g, ''));
