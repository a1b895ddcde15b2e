/**
 * The files that pulls wrote to the folder `pulled`. A file's name says which blocks it has, so a directory listing
 * is the whole state of a pull: there is no other record of what was fetched.
 *
 *     pulled/840000/840157-1f2e3d4c5b6a7988.ndjson.gz   one block's records, in served order; named by its digest
 *     pulled/840000/840100-840199.parquet               rows of the indexer's ledger for blocks 840100 to 840199
 *     pulled/runes.parquet                              the indexer's runes, which these rows refer to
 *
 * A block without records has a file too (an empty array, or no rows), so it is not fetched again.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { z } from 'zod';
import type { ActivityRecord } from '../contract/contractJson.ts';
import { activityInput } from '../contract/schemas.ts';
import { BuildError, InputError, messageOf } from '../errors.ts';
import { Checksums, sha256Of } from '../input/checksums.ts';
import { nullable, type Store, text } from '../store/duckdb.ts';
import { readFiles } from '../store/files.ts';
import { type BlockIdentity, identityOf } from './block.ts';
import { identitiesSql, readIdentityRows } from './rows.ts';

/** Subfolder of the input folder. Pulls replace and remove files only here. */
export const PULLED_FOLDER = 'pulled';

/** Subfolder for temporary files. Builds ignore it. */
export const WORK_FOLDER = '.work';

export const RUNES_FILE = 'runes.parquet';

/** Heights per subfolder. */
const HEIGHTS_PER_FOLDER = 1000;

export interface PulledFile {
  /** Relative to the folder `pulled`. */
  readonly path: string;
  readonly first: number;
  readonly last: number;
  /** The first 16 digits of the block's digest; undefined for a file of ledger rows. */
  readonly digest: string | undefined;
}

const folderOf = (height: number): string => String(height - (height % HEIGHTS_PER_FOLDER));

/** Path of a block's file, relative to the folder `pulled`. `digest` has all 64 digits. */
export const blockFile = (height: number, digest: string): string => `${folderOf(height)}/${height}-${digest.slice(0, 16)}.ndjson.gz`;

/** Path of the file with the ledger rows of these heights, relative to the folder `pulled`. */
export const ledgerFile = (first: number, last: number): string => `${folderOf(first)}/${first}-${last}.parquet`;

const NAME = /^([0-9]{1,8})-(?:([0-9a-f]{16})\.ndjson\.gz|([0-9]{1,8})\.parquet)$/;

/**
 * Lists the files of pulled blocks, heights ascending. Ignores files with other names.
 * Throws a BuildError if a folder cannot be read.
 */
export function listPulledFiles(folder: string): PulledFile[] {
  if (!existsSync(folder)) return [];
  const files: PulledFile[] = [];
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (!entry.isDirectory() || !/^[0-9]+$/.test(entry.name)) continue;
      for (const name of readdirSync(join(folder, entry.name))) {
        const [, first, digest, last] = NAME.exec(name) ?? [];
        if (first === undefined) continue;
        files.push({ path: `${entry.name}/${name}`, first: Number(first), last: Number(last ?? first), digest });
      }
    }
  } catch (error) {
    throw new BuildError(`${folder} cannot be read: ${messageOf(error)}`, ['Check the permissions of its folders.']);
  }
  return files.sort((a, b) => a.first - b.first || a.last - b.last);
}

/**
 * Reads the identities of the blocks at these heights from a file. `withRows` adds the MD5 of their ledger rows.
 * Throws an InputError if the file is damaged.
 */
export async function readIdentities(
  folder: string,
  file: PulledFile,
  heights: readonly number[],
  withRows: boolean,
  store: Store,
): Promise<Map<number, BlockIdentity>> {
  const [path, runes] = [join(folder, file.path), join(folder, RUNES_FILE)];
  try {
    if (file.digest !== undefined) return new Map([[file.first, blockIdentity(path)]]);
    await checkDigest(path);
    const tables = { ledger: readFiles('parquet', [path]), runes: existsSync(runes) ? readFiles('parquet', [runes]) : undefined };
    const columns = { height: text, hash: nullable(text), records: text, rows_md5: nullable(text) };
    return readIdentityRows(await store.rows(identitiesSql(tables, heights, withRows), columns), heights);
  } catch (error) {
    const why = error instanceof z.ZodError ? 'it does not contain activity records' : messageOf(error);
    throw new InputError(`${why.includes(runes) ? runes : path} cannot be read: ${why}`, [
      'The file was damaged after the pull. Remove it and pull again.',
    ]);
  }
}

/** Throws an Error if a file does not match the checksum file beside it, if any. */
export async function checkDigest(path: string): Promise<void> {
  const expected = new Checksums().expected({ path, name: path });
  if (expected !== undefined && expected !== (await sha256Of(path))) throw new Error('its SHA-256 differs from its checksum file');
}

function blockIdentity(path: string): BlockIdentity {
  const lines = gunzipSync(readFileSync(path)).toString('utf8').trimEnd();
  if (lines === '[]') return identityOf([]);
  return identityOf(lines.split('\n').map((line) => activityInput.parse(JSON.parse(line)) as ActivityRecord));
}
