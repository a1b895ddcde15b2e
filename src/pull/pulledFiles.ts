/**
 * The files that pulls write to the folder `pulled`. The name of a file says which blocks it has, so a directory
 * listing tells a pull what was fetched before.
 *
 *     pulled/840000/840257-1f2e3d4c5b6a7988.ndjson.gz          one block's records, in served order; named by its digest
 *     pulled/840000/840100-840199-8897a6b5c4d3e2f1.ndjson.gz   records of settled blocks; named by their digests
 *     pulled/840000/840100-840199.parquet                      ledger rows of settled blocks, from a database or a node
 *     pulled/runes.parquet                                     the runes that these rows refer to
 *     pulled/newest-runes.parquet                              of these, the runes of blocks that are not settled
 *     pulled/start/                                            the ledger that a pull with --start-from began with
 *     pulled/blocks.json                                       the blocks that were read, and by which rules
 *     pulled/.state/                                           the ledger of a pull from a node (unspent/diskLedger.ts)
 *     pulled/.work/                                            temporary files and the lock
 *
 * Joined and Parquet files have a checksum file beside them, with `.sha256` after their name.
 * A block without records has a file too (an empty array, or no rows), so it is not fetched again.
 */
import { createReadStream, existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { z } from 'zod';
import type { ActivityRecord } from '../contract/recordJson.ts';
import { activityInput } from '../contract/schemas.ts';
import { readFiles } from '../duckdb/readFilesSql.ts';
import { nullable, type Store, text } from '../duckdb/store.ts';
import { BuildError, InputError, messageOf } from '../errors.ts';
import { expectedDigits, sha256Of } from '../input/checksums.ts';
import { digestOfBlocks } from '../output/digests.ts';
import { type Block, type BlockIdentity, identityOf } from './blockIdentity.ts';
import { heightsOf } from './heightRange.ts';
import { identitiesSql, readIdentityRows } from './identifyRows.ts';

/** Subfolder of the input folder. Pulls replace and remove files only here. */
export const PULLED_FOLDER = 'pulled';

/** Subfolder for temporary files. Builds ignore it. */
export const WORK_FOLDER = '.work';

/** Subfolder for the ledger of a pull from a node. Builds ignore it. */
export const STATE_FOLDER = '.state';

export const RUNES_FILE = 'runes.parquet';

/**
 * Runes of blocks that are not settled. Only a pull from a node writes this file, and only if there are many runes
 * (node/runeFiles.ts). Otherwise all runes are in RUNES_FILE.
 */
export const NEWEST_RUNES_FILE = 'newest-runes.parquet';

const HEIGHTS_PER_FOLDER = 1000;

export interface PulledFile {
  /** Path relative to the folder `pulled`. */
  readonly path: string;
  readonly first: number;
  readonly last: number;
  /** First 16 digits of the block's digest, or of several blocks' joinedDigest. Undefined for a file of ledger rows. */
  readonly digest: string | undefined;
}

const folderOf = (height: number): string => String(height - (height % HEIGHTS_PER_FOLDER));

/** Returns the path of a block's file, relative to the folder `pulled`. `digest` has all 64 digits. */
export const blockFile = (height: number, digest: string): string => `${folderOf(height)}/${height}-${digest.slice(0, 16)}.ndjson.gz`;

/** Returns the path of a joined file with the records of these heights, relative to the folder `pulled`. */
export const joinedFile = (first: number, last: number, digest: string): string =>
  `${folderOf(first)}/${first}-${last}-${digest}.ndjson.gz`;

export const isJoined = ({ digest, first, last }: PulledFile): boolean => digest !== undefined && first < last;

/** First 16 digits of the digest of a block without records. */
export const EMPTY = identityOf([]).digest.slice(0, 16);

/**
 * Computes the digest of a joined file from the first 16 digits of each block's digest, heights ascending. Ignores
 * blocks without records, because a mirror has no digests of them. Returns 16 digits.
 */
export function joinedDigest(blocks: readonly { readonly height: number; readonly digest: string }[]): string {
  const short = blocks.map(({ height, digest }) => ({ height, digest: digest.slice(0, 16) }));
  return digestOfBlocks(short.filter(({ digest }) => digest !== EMPTY)).slice(0, 16);
}

/** Returns the path of the file with the ledger rows of these heights, relative to the folder `pulled`. */
export const ledgerFile = (first: number, last: number): string => `${folderOf(first)}/${first}-${last}.parquet`;

const NAME = /^([0-9]{1,8})-(?:(?:([0-9]{1,8})-)?([0-9a-f]{16})\.ndjson\.gz|([0-9]{1,8})\.parquet)$/;

/** Lists the files of pulled blocks, heights ascending. Throws a BuildError if a folder cannot be read. */
export function listPulledFiles(folder: string): PulledFile[] {
  if (!existsSync(folder)) return [];
  const files: PulledFile[] = [];
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (!entry.isDirectory() || !/^[0-9]+$/.test(entry.name)) continue;
      for (const name of readdirSync(join(folder, entry.name))) {
        const [, first, joined, digest, last] = NAME.exec(name) ?? [];
        if (first === undefined) continue;
        files.push({ path: `${entry.name}/${name}`, first: Number(first), last: Number(joined ?? last ?? first), digest });
      }
    }
  } catch (error) {
    throw new BuildError(`${folder} cannot be read: ${messageOf(error)}`, ['Check the permissions of its folders.']);
  }
  return files.sort((a, b) => a.first - b.first || a.last - b.last);
}

/**
 * Reads the identities of the blocks at these heights from a file. `withRows` adds the MD5 of their ledger rows. Throws
 * an InputError if the file is damaged.
 */
export async function readIdentities(
  folder: string,
  file: PulledFile,
  heights: readonly number[],
  withRows: boolean,
  store: Store,
): Promise<Map<number, BlockIdentity>> {
  const [path, runes] = [join(folder, file.path), join(folder, RUNES_FILE)];
  if (file.digest !== undefined) {
    const identities = new Map<number, BlockIdentity>();
    for await (const { height, hash, records, digest } of readBlocks(folder, file, heights))
      identities.set(height, { hash, records, digest });
    return identities;
  }
  try {
    await checkDigest(path);
    const tables = { ledger: readFiles('parquet', [path]), runes: existsSync(runes) ? readFiles('parquet', [runes]) : undefined };
    const columns = { height: text, hash: nullable(text), records: text, rows_md5: nullable(text) };
    return readIdentityRows(await store.rows(identitiesSql(tables, heights, withRows), columns), heights);
  } catch (error) {
    throw damaged(messageOf(error).includes(runes) ? runes : path, messageOf(error));
  }
}

/**
 * Returns SQL (FROM ...) of all runes of a pull from a node. A killed pull may have left the same runes in RUNES_FILE
 * and in NEWEST_RUNES_FILE. The query takes each of them once: from NEWEST_RUNES_FILE, it takes only runes of blocks
 * above all blocks in RUNES_FILE.
 */
export function readRunes(folder: string): string {
  const [settled, newest] = [RUNES_FILE, NEWEST_RUNES_FILE].map((name) => join(folder, name));
  const from = (path = '') => readFiles('parquet', [path]);
  if (newest === undefined || !existsSync(newest)) return `FROM ${from(settled)}`;
  return `FROM ${from(settled)} UNION ALL BY NAME FROM ${from(newest)}
    WHERE block_height > (SELECT coalesce(max(block_height), -1) FROM ${from(settled)})`;
}

const damaged = (path: string, why: string): InputError =>
  new InputError(`${path} cannot be read: ${why}`, ['The file was damaged after the pull. Remove it and pull again.']);

/** Throws an Error if a file does not match the checksum file beside it, if any. */
export async function checkDigest(path: string): Promise<void> {
  const expected = expectedDigits({ path, name: path });
  if (expected !== undefined && expected !== (await sha256Of(path))) throw new Error('its SHA-256 differs from its checksum file');
}

/** Throws an InputError if the table of runes does not match its checksum file. */
export const checkRunes = (path: string): Promise<void> =>
  checkDigest(path).catch((error: unknown) => {
    throw damaged(path, messageOf(error));
  });

/**
 * Yields the blocks at these heights from a file of records: first the blocks with records, then empty ones. Throws an
 * InputError if the file is damaged.
 */
export async function* readBlocks(folder: string, file: PulledFile, heights: readonly number[] = heightsOf(file)): AsyncGenerator<Block> {
  const path = join(folder, file.path);
  const wanted = new Set(heights);
  const block = (height: number, lines: readonly unknown[]): Block => {
    const activity = lines.map((line) => activityInput.parse(line) as ActivityRecord);
    return { height, activity, ...identityOf(activity) };
  };
  try {
    await checkDigest(path);
    let [height, lines]: [number, unknown[]] = [-1, []];
    for await (const line of linesOf(path)) {
      if (line === '[]') continue;
      const record = JSON.parse(line) as { readonly location?: { readonly block_height?: number } } | null;
      const at = record?.location?.block_height;
      if (at === undefined) throw new Error('it does not contain activity records');
      if (at !== height) {
        if (wanted.delete(height)) yield block(height, lines);
        [height, lines] = [at, []];
      }
      if (wanted.has(at)) lines.push(record);
    }
    if (wanted.delete(height)) yield block(height, lines);
    for (const empty of wanted) yield block(empty, []);
  } catch (error) {
    throw damaged(path, error instanceof z.ZodError ? 'it does not contain activity records' : messageOf(error));
  }
}

/**
 * Yields the lines of a compressed file. Reads it as a stream, because a hundred blocks can be too large for one
 * string.
 */
async function* linesOf(path: string): AsyncGenerator<string> {
  let rest = '';
  // The loop below throws the errors of both streams, so the callback does nothing.
  const unpacked = pipeline(createReadStream(path), createGunzip(), () => undefined).setEncoding('utf8') as AsyncIterable<string>;
  for await (const text of unpacked) {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}
