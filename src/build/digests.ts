/**
 * Digests of the data, the same for every dialect, layout and page size.
 *
 * - A block's digest is the SHA-256 of its records in served order, each as the contract dialect spells it, joined by commas: the bytes
 *   between `"results":[` and `]}` of a page that held the whole block (made in render/assembler.ts).
 * - The digest of a build is the SHA-256 of one line for each block, heights ascending: height, space, digest, line feed.
 *
 * Blocks' digests are in files of a thousand heights, `runes/v1/digests/840000.json`.
 */
import { createHash } from 'node:crypto';
import { DIGESTS_PER_FILE, digestsPath } from '../pages/paths.ts';
import { type Row, type Store, toNumber, toText } from '../store/duckdb.ts';
import type { DiskSink } from '../write/sinks.ts';

/** A line of a file of digests. `hash` has 64 hex digits and no prefix in both dialects. */
export interface BlockDigest {
  readonly height: number;
  readonly hash: string;
  readonly records: number;
  readonly digest: string;
}

/** The digest of a build from its blocks' digests, heights ascending. */
export class BuildDigest {
  readonly #hash = createHash('sha256');

  add(height: number, digest: string): void {
    this.#hash.update(`${height} ${digest}\n`);
  }

  /** 64 hex digits. */
  end(): string {
    return this.#hash.digest('hex');
  }
}

/** The content of a file of digests: its blocks, heights ascending. */
export const digestsBody = (blocks: readonly BlockDigest[]): string =>
  `{"blocks":[\n${blocks.map((b) => JSON.stringify(b)).join(',\n')}\n]}\n`;

/** The digest of all blocks of the state. */
export async function buildDigest(store: Store): Promise<string> {
  const digest = new BuildDigest();
  for (const row of await store.rows('SELECT block_height, digest FROM state.blocks ORDER BY block_height')) {
    digest.add(toNumber(row['block_height']), toText(row['digest']));
  }
  return digest.end();
}

/** Writes the files of digests that the blocks at these heights are in. Returns the paths of files that have no block any more. */
export async function writeDigests(heights: Iterable<number>, sink: DiskSink, store: Store): Promise<string[]> {
  const firsts = new Set([...heights].map((height) => height - (height % DIGESTS_PER_FILE)));
  const empty: string[] = [];
  for (const first of [...firsts].sort((a, b) => a - b)) {
    const rows = await store.rows(
      `SELECT block_height, block_hash, records, digest FROM state.blocks
       WHERE block_height BETWEEN ${first} AND ${first + DIGESTS_PER_FILE - 1} ORDER BY block_height`,
    );
    if (rows.length === 0) empty.push(digestsPath(first));
    else sink.file(digestsPath(first), Buffer.from(digestsBody(rows.map(lineOf))));
  }
  return empty;
}

const lineOf = (row: Row): BlockDigest => ({
  height: toNumber(row['block_height']),
  hash: toText(row['block_hash']),
  records: toNumber(row['records']),
  digest: toText(row['digest']),
});
