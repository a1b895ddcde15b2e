/**
 * The files that pulls write to the folder `pulled`. The name of a file says which blocks it has, so a directory
 * listing tells a pull what was fetched before.
 *
 *     pulled/840000/840100-840199.parquet                      ledger rows of settled blocks
 *     pulled/runes.parquet                                     the runes that these rows refer to
 *     pulled/newest-runes.parquet                              of these, the runes of blocks that are not settled
 *     pulled/start/                                            the ledger that a pull with --start-from began with
 *     pulled/blocks.json                                       the blocks that were read, and by which rules
 *     pulled/.state/                                           the ledger of a pull from a node (unspent/diskLedger.ts)
 *     pulled/.work/                                            temporary files and the lock
 *
 * Parquet files have a checksum file beside them, with `.sha256` after their name. A block without rows has a file too,
 * so it is not fetched again.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readFiles } from '../duckdb/readFilesSql.ts';
import type { Store } from '../duckdb/store.ts';
import { BuildError, InputError, messageOf } from '../errors.ts';
import { expectedDigits, sha256Of } from '../input/checksums.ts';
import type { BlockIdentity } from './blockIdentity.ts';
import { identitiesOf } from './identifyRows.ts';

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
}

const folderOf = (height: number): string => String(height - (height % HEIGHTS_PER_FOLDER));

/** Returns the path of the file with the ledger rows of these heights, relative to the folder `pulled`. */
export const ledgerFile = (first: number, last: number): string => `${folderOf(first)}/${first}-${last}.parquet`;

const NAME = /^([0-9]{1,8})-([0-9]{1,8})\.parquet$/;

/** Lists the files of pulled blocks, heights ascending. Throws a BuildError if a folder cannot be read. */
export function listPulledFiles(folder: string): PulledFile[] {
  if (!existsSync(folder)) return [];
  const files: PulledFile[] = [];
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (!entry.isDirectory() || !/^[0-9]+$/.test(entry.name)) continue;
      for (const name of readdirSync(join(folder, entry.name))) {
        const [, first, last] = NAME.exec(name) ?? [];
        if (first !== undefined) files.push({ path: `${entry.name}/${name}`, first: Number(first), last: Number(last) });
      }
    }
  } catch (error) {
    throw new BuildError(`${folder} cannot be read: ${messageOf(error)}`, ['Check the permissions of its folders.']);
  }
  return files.sort((a, b) => a.first - b.first || a.last - b.last);
}

/** Reads the identities of the blocks at these heights from a file. Throws an InputError if the file is damaged. */
export async function readIdentities(
  folder: string,
  file: PulledFile,
  heights: readonly number[],
  store: Store,
): Promise<Map<number, BlockIdentity>> {
  const [path, runes] = [join(folder, file.path), join(folder, RUNES_FILE)];
  try {
    await checkDigest(path);
    const tables = { ledger: readFiles('parquet', [path]), runes: existsSync(runes) ? readFiles('parquet', [runes]) : undefined };
    return await identitiesOf(tables, heights, store);
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
