/**
 * What earlier pulls brought: the names of the files in the folder `pulled` tell which blocks they hold, so a listing is all that a pull has to
 * know, and a file that was renamed into its place is all that it has to remember.
 *
 *     pulled/840000/840157-1f2e3d4c5b6a7988.ndjson.gz   one block's records, in served order; the digits begin its digest
 *     pulled/840000/840100-840199.parquet               rows of the indexer's ledger, of all blocks from 840100 to 840199
 *     pulled/runes.parquet                              what these rows need of the indexer's runes
 *
 * A block without records is a file too (an empty array, or no rows): it need not be asked for again.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { z } from 'zod';
import type { ActivityRecord } from '../contract/contractJson.ts';
import { activityInput } from '../contract/schemas.ts';
import { BuildError, InputError, messageOf } from '../errors.ts';
import { Checksums, sha256Of } from '../input/checksums.ts';
import type { Store } from '../store/duckdb.ts';
import { readFiles } from '../store/files.ts';
import { type BlockIdentity, identityOf } from './block.ts';
import { identitiesSql, readIdentityRows } from './rows.ts';

/** Where in the input folder pulls write; nothing else is ever replaced or removed. */
export const PULLED_FOLDER = 'pulled';

/** Working files, passed over by builds. */
export const WORK_FOLDER = '.work';

export const RUNES_FILE = 'runes.parquet';

/** Heights that share a folder. */
const HEIGHTS_PER_FOLDER = 1000;

export interface HeldFile {
  /** Relative to the folder `pulled`. */
  readonly path: string;
  readonly first: number;
  readonly last: number;
  /** The first 16 digits of the block's digest; undefined in a file of ledger rows. */
  readonly digest: string | undefined;
}

const folderOf = (height: number): string => String(height - (height % HEIGHTS_PER_FOLDER));

/** The name of a block's file from its whole digest. */
export const blockFile = (height: number, digest: string): string => `${folderOf(height)}/${height}-${digest.slice(0, 16)}.ndjson.gz`;

/** The name of a file with the ledger rows of these blocks. */
export const ledgerFile = (first: number, last: number): string => `${folderOf(first)}/${first}-${last}.parquet`;

const NAME = /^([0-9]{1,8})-(?:([0-9a-f]{16})\.ndjson\.gz|([0-9]{1,8})\.parquet)$/;

/** The files that pulls made, lowest blocks first; files with other names are left out. Throws a BuildError when a folder cannot be read. */
export function listHeld(folder: string): HeldFile[] {
  if (!existsSync(folder)) return [];
  const held: HeldFile[] = [];
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (!entry.isDirectory() || !/^[0-9]+$/.test(entry.name)) continue;
      for (const name of readdirSync(join(folder, entry.name))) {
        const [, first, digest, last] = NAME.exec(name) ?? [];
        if (first === undefined) continue;
        held.push({ path: `${entry.name}/${name}`, first: Number(first), last: Number(last ?? first), digest });
      }
    }
  } catch (error) {
    throw new BuildError(`${folder} cannot be read: ${messageOf(error)}`, ['Check the rights of its folders.']);
  }
  return held.sort((a, b) => a.first - b.first || a.last - b.last);
}

/** What the file holds of the blocks at these heights, `withRows` with the MD5 of ledger rows. Throws an InputError when it cannot be read. */
export async function readIdentities(
  folder: string,
  file: HeldFile,
  heights: readonly number[],
  withRows: boolean,
  store: Store,
): Promise<Map<number, BlockIdentity>> {
  const [path, runes] = [join(folder, file.path), join(folder, RUNES_FILE)];
  try {
    if (file.digest !== undefined) return new Map([[file.first, blockIdentity(path)]]);
    await checkDigest(path);
    const tables = { ledger: readFiles('parquet', [path]), runes: existsSync(runes) ? readFiles('parquet', [runes]) : undefined };
    return readIdentityRows(await store.rows(identitiesSql(tables, heights, withRows)), heights);
  } catch (error) {
    const why = error instanceof z.ZodError ? 'it has no activity records' : messageOf(error);
    throw new InputError(`${why.includes(runes) ? runes : path} cannot be read: ${why}`, [
      'It was damaged after it was pulled. Remove it and pull again.',
    ]);
  }
}

/** Throws an Error when a file does not have the checksum that stands beside it. */
export async function checkDigest(path: string): Promise<void> {
  const expected = new Checksums().expected({ path, name: path });
  if (expected !== undefined && expected !== (await sha256Of(path))) throw new Error('its SHA-256 is not the one beside it');
}

function blockIdentity(path: string): BlockIdentity {
  const lines = gunzipSync(readFileSync(path)).toString('utf8').trimEnd();
  if (lines === '[]') return identityOf([]);
  return identityOf(lines.split('\n').map((line) => activityInput.parse(JSON.parse(line)) as ActivityRecord));
}
