/**
 * Reads the lists of blocks that pulls write (`blocks.json`): which blocks were read, by which rules, and the last one.
 * A block that was read and has no records is empty; without a list, nobody knows.
 */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { misfitOf } from '../contract/schemas.ts';
import { blocksFile, joinSources, type LastRead, type Sources } from '../contract/sources.ts';
import { InputError } from '../errors.ts';
import type { BlockRange } from './blockRange.ts';
import type { InputFile } from './discover.ts';
import { unreadable } from './unreadable.ts';

export const BLOCKS_FILE = 'blocks.json';

export interface BlocksRead {
  /** Blocks that were read, and their rules; only those that the input lists. */
  readonly sources: Sources;
  /** The last block that was read, if a list says it. It may have no records. */
  readonly tip?: LastRead | undefined;
}

/**
 * Joins all lists among the input files, limited to a range. A last block outside of the range is left out, because the
 * lists do not have the hash of any other block. Throws an InputError for a damaged list.
 */
export function readBlocksFiles(files: readonly InputFile[], range: BlockRange | undefined): BlocksRead {
  const lists = files.filter(({ path }) => basename(path) === BLOCKS_FILE).map(readBlocksFile);
  const { from = 0, to = Number.MAX_SAFE_INTEGER } = range ?? {};
  const tips = lists.flatMap(({ tip }) => (tip !== undefined && tip.height >= from && tip.height <= to ? [tip] : []));
  const [tip] = tips.sort((a, b) => b.height - a.height);
  return {
    sources: joinSources(
      lists.map(({ sources }) => sources),
      [[from, to]],
    ),
    tip,
  };
}

/** Returns no sources for any other file with that name. */
function readBlocksFile({ path, name }: InputFile): BlocksRead {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw unreadable(name, error);
  }
  if (!text.startsWith('{"sources":')) return { sources: [] };
  try {
    return blocksFile.parse(JSON.parse(text));
  } catch (error) {
    throw new InputError(`${name} is damaged: ${misfitOf(error)}`, ['Remove it and pull again.']);
  }
}
