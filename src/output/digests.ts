/**
 * Digests of the data. Mirrors with equal data have equal digests in every dialect, layout and page size.
 *
 * - The digest of a block is the SHA-256 of its records in served order (engine/render/servedOrder.ts) and contract dialect, joined by
 *   commas. A page with all records of a block has these bytes between `"results":[` and `]}`.
 * - The digest of a build is the SHA-256 of one line per block, heights ascending: height, space, digest, line feed.
 *
 * The digests of blocks are in files of a thousand heights each: `runes/v1/digests/840000.json`.
 */
import { createHash } from 'node:crypto';
import { type BlockDigest, digestsFile, type Manifest } from '../contract/schemas.ts';
import { joinRuns } from '../contract/sources.ts';
import { joinedBlobs, readDoubles } from '../duckdb/columns.ts';
import { int, type Store, text } from '../duckdb/store.ts';
import type { DiskSink } from '../engine/render/diskSink.ts';
import type { StateTables } from '../engine/state/state.ts';
import { groupBy } from '../groupBy.ts';
import { DIGESTS_PER_FILE, digestsPath } from '../pages/filePaths.ts';

/** Parses the digests file at `path`. Throws if the heights do not ascend, or if one belongs in another file. */
export function readDigests(text: string, path: string): BlockDigest[] {
  const { blocks } = digestsFile.parse(JSON.parse(text));
  const wrong = blocks.find(({ height }, i) => digestsPath(height) !== path || height <= (blocks[i - 1]?.height ?? -1));
  if (wrong !== undefined) throw new Error(`height ${wrong.height} is not above the height before it, or belongs in another file`);
  return blocks;
}

/** Returns the paths of the digests files of a mirror with blocks in these ranges of heights, ascending. */
export function digestsPaths({ heights }: Pick<Manifest, 'heights'>): string[] {
  const firsts = new Set<number>();
  for (const [first, last] of heights)
    for (let height = first - (first % DIGESTS_PER_FILE); height <= last; height += DIGESTS_PER_FILE) firsts.add(height);
  return [...firsts].sort((a, b) => a - b).map(digestsPath);
}

/** Yields the digests files of these blocks, whose heights must ascend. */
export function* digestsFiles(blocks: readonly BlockDigest[]): Generator<[path: string, content: Buffer]> {
  for (const [path, file] of groupBy(blocks, ({ height }) => digestsPath(height)))
    yield [path, Buffer.from(`{"blocks":[\n${file.map((b) => JSON.stringify(b)).join(',\n')}\n]}\n`)];
}

/** Computes the digest of a build: 64 hex digits. The heights of `blocks` must ascend. */
export function digestOfBlocks(blocks: Iterable<Pick<BlockDigest, 'height' | 'digest'>>): string {
  const hash = createHash('sha256');
  for (const { height, digest } of blocks) hash.update(`${height} ${digest}\n`);
  return hash.digest('hex');
}

/** Returns the ranges of consecutive heights as first and last height, in the form of the manifest's `heights`. */
export const runsOf = (blocks: readonly { readonly height: number }[]): [number, number][] =>
  joinRuns(blocks.map(({ height }) => [height, height]));

/** Computes a build's digest and ranges of heights from the blocks in its state (engine/state/state.ts). */
export async function digestOfState(
  { blocks }: Pick<StateTables, 'blocks'>,
  store: Store,
): Promise<{ readonly digest: string; readonly heights: [number, number][] }> {
  const hash = createHash('sha256');
  const heights: [number, number][] = [];
  const lines = `SELECT block_height::DOUBLE, encode(concat(block_height, ' ', digest, chr(10))) FROM ${blocks} ORDER BY block_height`;
  for await (const chunk of store.stream(lines)) {
    hash.update(joinedBlobs(chunk, 1).bytes);
    for (const height of readDoubles(chunk, 0)) {
      const last = heights.at(-1);
      if (last !== undefined && last[1] === height - 1) last[1] = height;
      else heights.push([height, height]);
    }
  }
  return { digest: hash.digest('hex'), heights };
}

/** Writes the digests files that contain `heights`. Returns the paths of digests files that no longer have a block. */
export async function writeDigests(heights: Iterable<number>, state: StateTables, sink: DiskSink, store: Store): Promise<string[]> {
  const firsts = new Set([...heights].map((height) => height - (height % DIGESTS_PER_FILE)));
  const empty: string[] = [];
  for (const first of [...firsts].sort((a, b) => a - b)) {
    const rows = await store.rows(
      `SELECT block_height AS height, block_hash AS hash, records, digest FROM ${state.blocks}
       WHERE block_height BETWEEN ${first} AND ${first + DIGESTS_PER_FILE - 1} ORDER BY block_height`,
      { height: int, hash: text, records: int, digest: text },
    );
    if (rows.length === 0) empty.push(digestsPath(first));
    for (const [path, content] of digestsFiles(rows)) sink.file(path, content);
  }
  return empty;
}
