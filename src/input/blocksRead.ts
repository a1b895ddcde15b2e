/**
 * Reads the lists of blocks that pulls write (`blocks.json`): which blocks were read, and by which rules. A block that
 * was read and has no records is empty; without a list, nobody knows.
 */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { misfitOf } from '../contract/schemas.ts';
import { blocksFile, joinSources, type Sources } from '../contract/sources.ts';
import { InputError } from '../errors.ts';
import type { BlockRange } from './blockRange.ts';
import type { InputFile } from './discover.ts';
import { unreadable } from './unreadable.ts';

export const BLOCKS_FILE = 'blocks.json';

/** Returns the sources of all lists among the input files, limited to a range. Throws an InputError for a damaged list. */
export function readBlocksFiles(files: readonly InputFile[], range: BlockRange | undefined): Sources {
  const lists = files.filter(({ path }) => basename(path) === BLOCKS_FILE).map(readBlocksFile);
  const { from = 0, to = Number.MAX_SAFE_INTEGER } = range ?? {};
  return joinSources(lists, [[from, to]]);
}

/** Returns no sources for any other file with that name. */
function readBlocksFile({ path, name }: InputFile): Sources {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw unreadable(name, error);
  }
  if (!text.startsWith('{"sources":')) return [];
  try {
    return blocksFile.parse(JSON.parse(text)).sources;
  } catch (error) {
    throw new InputError(`${name} is damaged: ${misfitOf(error)}`, ['Remove it and pull again.']);
  }
}
