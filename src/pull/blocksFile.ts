/** Writes the list of blocks that were read, `pulled/blocks.json`, which builds put into the manifest. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { blocksFile, joinSources, type LastRead, type Rules, type Sources } from '../contract/sources.ts';
import { BLOCKS_FILE } from '../input/blocksRead.ts';
import { replaceDurably } from '../write/replace.ts';
import type { Heights } from './heights.ts';
import { workFile } from './write.ts';

/**
 * Updates the list. `origin` says by which rules the source makes its rows. Blocks that this pull did not fetch keep what
 * the list says of them; those that it does not know were fetched by a pull that was killed. `tip` is the last block that
 * was read, undefined if the source does not say it.
 */
export function updateBlocksFile(
  folder: string,
  origin: Sources,
  fetched: readonly Heights[],
  pulled: readonly Heights[],
  tip: LastRead | undefined,
): void {
  const path = join(folder, BLOCKS_FILE);
  const before = readList(path);
  const runs = (heights: readonly Heights[]) => heights.map(({ first, last }): [number, number] => [first, last]);
  const sources = joinSources([joinSources([origin], runs(fetched)), before.sources, origin], runs(pulled));
  const text = `${JSON.stringify({ sources, tip })}\n`;
  if (text === before.text) return;
  // Durable, because callers remove files that the list no longer has.
  replaceDurably(path, text, workFile(folder, '.json'));
}

/** Returns the rules by which rows of the folder were made, as far as its list says. */
export const originsOf = (folder: string): Rules[] => readList(join(folder, BLOCKS_FILE)).sources.map(({ rules }) => rules);

/** Reads the list. One that is missing or damaged has no sources, and is written anew. */
function readList(path: string): { readonly text: string; readonly sources: Sources } {
  let text = '';
  try {
    text = readFileSync(path, 'utf8');
    return { text, sources: blocksFile.parse(JSON.parse(text)).sources };
  } catch {
    return { text, sources: [] };
  }
}
