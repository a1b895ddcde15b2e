/**
 * Files of changes: for each of the newest blocks, the runes, addresses and outputs that the block touched. A client reads the list of
 * these files, finds the newest block in it that the client knows, and reads the files of all higher blocks. So the client notices new
 * blocks and reorganisations, and the host needs no code.
 */
import { changesPath } from '../pages/filePaths.ts';
import type { Dialect } from '../pages/mirrorOptions.ts';
import { spellHex } from '../pages/parseIds.ts';

/** Lists of a file: ids of runes, addresses, and outpoints of outputs with runes that the block made or spent. */
export const TOUCHED = ['runes', 'addresses', 'made', 'spent'];

/** A block. `hash` has 64 hex digits without `0x`. */
export interface Point {
  readonly height: number;
  readonly hash: string;
}

export interface TouchedList {
  readonly kind: string;
  /** The entries as JSON, sorted by bytes. */
  readonly list: string;
  /** True if the list was cut to the maximum number of entries. */
  readonly is_cut: boolean;
}

interface ChangesFile extends Point {
  /** The block below. Undefined if the mirror does not know its hash. */
  readonly previous: Point | undefined;
  /** Lists of all kinds, in the order of TOUCHED. `spent` is omitted if the data does not say which outputs were spent. */
  readonly lists: readonly TouchedList[];
}

export function changesFile({ height, hash, previous, lists }: ChangesFile, dialect: Dialect): [path: string, text: string] {
  const point = (block: Point) => `"height":${block.height},"hash":"${spellHex(block.hash, dialect)}"`;
  const parts = [
    point({ height, hash }),
    ...(previous === undefined ? [] : [`"previous":{${point(previous)}}`]),
    ...lists.map(({ kind, list }) => `"${kind}":${list}`),
    ...(lists.some((list) => list.is_cut) ? ['"more":true'] : []),
  ];
  return [changesPath(height), `{${parts.join(',')}}\n`];
}

/** Limits of the files of changes. The list of files names them, so that `npm run verify` can make the files again and compare them. */
export interface ChangesBounds {
  /** Maximum number of blocks with a file. */
  readonly most_blocks: number;
  /** Maximum number of entries of each list in a file. */
  readonly most_entries: number;
}

/** A block in the list of files. `sha256` is the SHA-256 of the block's file. */
export type ListedChanges = Point & { readonly sha256: string };

/** Returns the text of the list of files. Heights must ascend. */
export const changesIndex = (blocks: readonly ListedChanges[], bounds: ChangesBounds, dialect: Dialect): string =>
  `{"most_blocks":${bounds.most_blocks},"most_entries":${bounds.most_entries},"blocks":[\n${blocks.map(({ height, hash, sha256 }) => JSON.stringify({ height, hash: spellHex(hash, dialect), sha256 })).join(',\n')}\n]}\n`;
