/**
 * Changes: for each of the newest blocks, the runes, addresses and outputs that it touched. A client reads the list of
 * these files, finds the newest block that it knows, and reads the files above. So it learns of new blocks and of
 * reorganisations, and needs no code on the host.
 */
import { changesPath } from '../pages/filePaths.ts';
import { spellHex } from '../pages/ids.ts';
import type { Dialect } from '../pages/mirrorOptions.ts';

/** Lists of a file: ids of runes, addresses, outpoints that the block made with runes, and those that it spent. */
export const TOUCHED = ['runes', 'addresses', 'made', 'spent'] as const;
type Touched = (typeof TOUCHED)[number];

/** A block. `hash` has 64 hex digits without `0x`. */
export interface Point {
  readonly height: number;
  readonly hash: string;
}

export interface ChangesFile extends Point {
  /** The block below, as far as the mirror knows its hash. */
  readonly previous: Point | undefined;
  /** Each list as JSON, sorted by bytes. Undefined if the data does not say which outputs were spent. */
  readonly lists: Readonly<Record<Touched, string | undefined>>;
  /** True if a list was cut. */
  readonly isCut: boolean;
}

/** Returns path and text of the file of a block. */
export function changesFile({ height, hash, previous, lists, isCut }: ChangesFile, dialect: Dialect): [path: string, text: string] {
  const point = (block: Point) => `"height":${block.height},"hash":"${spellHex(block.hash, dialect)}"`;
  const parts = [
    point({ height, hash }),
    ...(previous === undefined ? [] : [`"previous":{${point(previous)}}`]),
    ...TOUCHED.flatMap((name) => (lists[name] === undefined ? [] : [`"${name}":${lists[name]}`])),
    ...(isCut ? ['"more":true'] : []),
  ];
  return [changesPath(height), `{${parts.join(',')}}\n`];
}

/** Block of the list of files. `sha256` is of its file. */
export interface ListedChanges extends Point {
  readonly sha256: string;
}

/** Returns the text of the list of files. Heights must ascend. */
export const changesIndex = (blocks: readonly ListedChanges[], dialect: Dialect): string =>
  `{"blocks":[\n${blocks.map(({ height, hash, sha256 }) => JSON.stringify({ height, hash: spellHex(hash, dialect), sha256 })).join(',\n')}\n]}\n`;
