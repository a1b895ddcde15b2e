/**
 * Writes `pulled/blocks.json`: the list of the pulled blocks, and the rules that made their rows. Builds copy the list
 * into the manifest.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BlocksFile, blocksFile, joinSources, type Sources } from '../contract/sources.ts';
import { replaceDurably } from '../disk/replaceFile.ts';
import { BLOCKS_FILE } from '../input/blocksRead.ts';
import type { Heights } from './heightRange.ts';
import { workFile } from './writePulled.ts';

/**
 * Updates the list, so that it has the blocks `pulled`. Blocks in `fetched` get `origin`, the rules by which the source
 * makes its rows. Other blocks keep the rules that the list has for them. Blocks that the list lacks also get `origin`,
 * because a killed pull fetched them. `facts` has the other values for the list, as far as the source knows them.
 * Without `ends` in `facts`, the list keeps its own `ends` if the hash of `tip` has not changed.
 */
export function updateBlocksFile(
  folder: string,
  origin: Sources,
  fetched: readonly Heights[],
  pulled: readonly Heights[],
  facts: Omit<BlocksFile, 'sources'>,
): void {
  const path = join(folder, BLOCKS_FILE);
  const before = readList(path);
  const runs = (heights: readonly Heights[]) => heights.map(({ first, last }): [number, number] => [first, last]);
  const sources = joinSources([joinSources([origin], runs(fetched)), before.sources, origin], runs(pulled));
  const ends = before.tip?.hash === facts.tip?.hash ? before.ends : undefined;
  const text = `${JSON.stringify({ sources, ends, ...facts })}\n`;
  if (text === before.text) return;
  // Callers have removed block files of the old list. Writes durably, so that a power cut cannot bring back that list.
  replaceDurably(path, text, workFile(folder, '.json'));
}

/** Returns the list of the folder. It has no sources if the file is missing or damaged. */
export const listOf = (folder: string): BlocksFile => readList(join(folder, BLOCKS_FILE));

/** Reads the list. Returns no sources if the list is missing or damaged, so that the caller writes a new list. */
function readList(path: string): BlocksFile & { readonly text: string } {
  let text = '';
  try {
    text = readFileSync(path, 'utf8');
    return { text, ...blocksFile.parse(JSON.parse(text)) };
  } catch {
    return { text, sources: [] };
  }
}
