/**
 * Reads indexes of rows (contract/rowsSchemas.ts), which pulls write and builds publish. They tell empty blocks from blocks that were not
 * read.
 */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { type FolderIndex, folderIndex, isIndexName } from '../contract/rowsSchemas.ts';
import { misfitOf } from '../contract/schemas.ts';
import { joinSources, type LastRead, type Sources } from '../contract/sources.ts';
import { InputError } from '../errors.ts';
import { readable } from './unreadable.ts';

/** Heights of a build (`--blocks`), both included. */
export interface BlockRange {
  readonly from: number;
  readonly to: number;
}

interface Named {
  readonly path: string;
  readonly name: string;
}

export interface BlocksRead {
  /** Ranges of blocks that pulls have read, with their rules. Empty without an index. */
  readonly sources: Sources;
  /** Last block that was read, which may have no records. Undefined if no index has a last block in the range. */
  readonly tip?: LastRead | undefined;
  /** Network of the nodes from which the blocks were read. Undefined if not all indexes name the same. */
  readonly network?: string | undefined;
  /** Hashes of the newest blocks. If such a block has no records, no other file of the input has its hash. */
  readonly ends?: readonly LastRead[] | undefined;
}

/**
 * Joins the indexes of all input files, limited to a range. The last block in the range cannot replace a `tip` outside of it, because an
 * index does not have its hash. If two indexes have different hashes of a block, a reorganisation replaced it after the pull that read
 * fewer blocks, so the other index counts. Throws an InputError for a damaged index, and if indexes have different last blocks at one
 * height.
 */
export function readIndexes(files: readonly Named[], range: BlockRange | undefined): BlocksRead {
  const lists = files
    .filter(({ path }) => isIndexName(basename(path)))
    .flatMap((file) => {
      const index = readIndex(file);
      return index === undefined ? [] : [{ name: file.name, ...index, tip: index.sources.length === 0 ? undefined : index.tip }];
    });
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
  const all = lists.map(({ sources }) => sources);
  const network = networks.size === 1 ? [...networks][0] : undefined;
  return { sources: joinSources(all, [[from, to]]), tip: first?.tip, network, ends: [...ends.values()] };
}

const BYTE_ORDER_MARK = /^\uFEFF/;
/** Beginning of an index, even if another program formatted it again. */
const INDEX = /^\uFEFF?\s*\{\s*"(?:version|sources)"\s*:/;

/** Reads an index. Returns undefined for another file of this name. Throws an InputError for a damaged index. */
export function readIndex({ path, name }: Named): FolderIndex | undefined {
  const text = readable(name, () => readFileSync(path, 'utf8'));
  if (!INDEX.test(text)) return undefined;
  try {
    return folderIndex.parse(JSON.parse(text.replace(BYTE_ORDER_MARK, '')));
  } catch (error) {
    throw new InputError(`${name} is damaged: ${misfitOf(error)}`, ['Remove it and pull again.']);
  }
}
