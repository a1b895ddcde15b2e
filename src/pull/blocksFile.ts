/** Writes `pulled/blocks.json`, the list of the pulled blocks and their rules. Builds copy it into the manifest. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { blocksFile, joinSources, type LastRead, type Rules, type Sources } from '../contract/sources.ts';
import { replaceDurably } from '../disk/replaceFile.ts';
import { BLOCKS_FILE } from '../input/blocksRead.ts';
import type { Heights } from './heightRange.ts';
import { workFile } from './writePulled.ts';

/**
 * Updates the list. Fetched blocks get `origin`, the rules by which the source makes its rows. Other blocks keep their
 * entry. Blocks without an entry also get `origin`: a killed pull fetched them. `tip` is the last block that the source
 * has read, undefined if the source does not say it.
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

/** Returns the rules that the list gives for the rows in the folder. Empty if there is no valid list. */
export const originsOf = (folder: string): Rules[] => readList(join(folder, BLOCKS_FILE)).sources.map(({ rules }) => rules);

/** Reads the list. Returns no sources if the list is missing or damaged, so that the caller writes it anew. */
function readList(path: string): { readonly text: string; readonly sources: Sources } {
  let text = '';
  try {
    text = readFileSync(path, 'utf8');
    return { text, sources: blocksFile.parse(JSON.parse(text)).sources };
  } catch {
    return { text, sources: [] };
  }
}
