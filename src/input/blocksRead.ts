/**
 * Reads the lists of blocks that pulls write (`blocks.json`). Such a list has the blocks that the pull read, the rules
 * that made their rows, and the last block. Without a list, an empty block looks like a block that was not read.
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
  /** Ranges of blocks that pulls have read, with their rules. Empty without a list. */
  readonly sources: Sources;
  /** Last block that was read, which may have no records. Undefined if no list has a last block in the range. */
  readonly tip?: LastRead | undefined;
  /**
   * Network of the nodes from which the blocks were read. Undefined if a list does not name a network, or if the lists
   * name different networks.
   */
  readonly network?: string | undefined;
  /**
   * Hashes of the newest blocks. If such a block has no records, no other file of the input has its hash.
   */
  readonly ends?: readonly LastRead[] | undefined;
}

/**
 * Joins the lists of blocks of all input files, limited to a range. Ignores the `tip` of a list if it is outside the
 * range. The last block in the range cannot take its place, because a list does not have the hash of this block. If two
 * lists have different hashes of a block, a reorganisation replaced this block after the pull that read fewer blocks, so
 * the other list counts. Throws an InputError for a damaged list, and if lists have different last blocks at one height.
 */
export function readBlocksFiles(files: readonly InputFile[], range: BlockRange | undefined): BlocksRead {
  const lists = files.filter(({ path }) => basename(path) === BLOCKS_FILE).map((file) => ({ name: file.name, ...readBlocksFile(file) }));
  const newest = [...lists].sort((a, b) => (b.tip?.height ?? 0) - (a.tip?.height ?? 0));
  const { from = 0, to = Number.MAX_SAFE_INTEGER } = range ?? {};
  const tips = newest.flatMap(({ name, tip }) => (tip !== undefined && tip.height >= from && tip.height <= to ? [{ name, tip }] : []));
  const [first] = tips;
  const other = tips.find(({ tip }) => tip.height === first?.tip.height && tip.hash !== first.tip.hash);
  if (first !== undefined && other !== undefined)
    throw new InputError(`${first.name} and ${other.name} have different last blocks at height ${first.tip.height}`, [
      `The first has ${first.tip.hash}, the other ${other.tip.hash}. Pull again, or remove the older pull.`,
    ]);
  const ends = new Map([...newest].reverse().flatMap((list) => (list.ends ?? []).map((end) => [end.height, end])));
  const networks = new Set(lists.map((list) => list.network));
  return {
    sources: joinSources(
      lists.map(({ sources }) => sources),
      [[from, to]],
    ),
    tip: first?.tip,
    network: networks.size === 1 ? [...networks][0] : undefined,
    ends: [...ends.values()],
  };
}

const BYTE_ORDER_MARK = /^\uFEFF/;
/** Beginning of a list of blocks, even if another program formatted it again. */
const LIST = /^\uFEFF?\s*\{\s*"sources"\s*:/;

/** Reads a list of blocks. Returns empty `sources` if a file with the name `blocks.json` is not such a list. */
function readBlocksFile({ path, name }: InputFile): BlocksRead {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw unreadable(name, error);
  }
  if (!LIST.test(text)) return { sources: [] };
  try {
    return blocksFile.parse(JSON.parse(text.replace(BYTE_ORDER_MARK, '')));
  } catch (error) {
    throw new InputError(`${name} is damaged: ${misfitOf(error)}`, ['Remove it and pull again.']);
  }
}
