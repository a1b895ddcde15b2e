/**
 * Fetches the rows of older blocks for a pull that starts from a mirror's ledger (startFrom.ts), if `--blocks` asks for
 * these blocks. Pulls the files of rows that the mirror publishes. All rows must belong to blocks that the node has. If
 * the rows begin at the first block with runes, the ledger that follows from the rows must have the mirror's digest.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Log } from '../../cli/log.ts';
import type { Progress } from '../../cli/progress.ts';
import type { Manifest } from '../../contract/schemas.ts';
import type { LastRead, Start } from '../../contract/sources.ts';
import { syncFolder } from '../../disk/sync.ts';
import { readFiles } from '../../duckdb/readFilesSql.ts';
import { int, type Store, text } from '../../duckdb/store.ts';
import { InputError } from '../../errors.ts';
import type { LedgerPoint } from '../../format/listTables.ts';
import { CHECKSUM_ENDING } from '../../input/discover.ts';
import type { WorkLimits } from '../../limits.ts';
import { digestOfRows } from '../../rows/ledgerOfRows.ts';
import { HEIGHTS_PER_FILE } from '../../rows/rowsForm.ts';
import type { Heights } from '../heightRange.ts';
import type { Client } from '../httpClient.ts';
import { RowsSource } from '../mirror/rows/rowsSource.ts';
import { type PullOptions, pull } from '../pullBlocks.ts';
import { listPulledFiles, PULLED_FOLDER, type PulledFile, RUNES_FILE, readRunes, WORK_FOLDER } from '../pulledFiles.ts';
import { removeFiles } from '../writePulled.ts';
import type { BitcoinNode } from './coreNode.ts';

/** A mirror from whose ledger a pull can start. */
export interface Donor {
  /** Base URL of the mirror's files. */
  readonly base: string;
  readonly client: Client;
}

/** Subfolder of the folder `pulled` for files of a start. Builds ignore it. */
export const START_FOLDER = '.start';

/** Returns the path of the folder for the fetched rows of a mirror. `from` is the first wanted height. */
export const rowsFolder = (folder: string, from: number, base: string): string =>
  join(folder, START_FOLDER, `rows-${from}-${createHash('sha256').update(base).digest('hex').slice(0, 16)}`);

export const wrong = ({ base }: Donor, why: string): InputError =>
  new InputError(`${base} cannot be a start: ${why}`, ['Give another mirror with --start-from, or tell the operator of this mirror.']);

interface RowsOptions extends Pick<PullOptions, 'concurrency' | 'signal'> {
  /** First wanted block. */
  readonly from: number;
  /** First block with runes. */
  readonly firstHeight: number;
  readonly network: string;
  readonly point: LedgerPoint;
  /** Path of the folder `pulled`. */
  readonly folder: string;
  readonly limits: WorkLimits;
}

/** Number of headers that are read and compared together. */
const HEIGHTS_AT_ONCE = 20 * HEIGHTS_PER_FILE;

/**
 * Fetches the rows. Throws an InputError if the mirror lacks rows, if a row belongs to a block that the node does not
 * have, or if the ledger that follows from the rows has another digest. After a kill, continues with the files that
 * were fetched.
 */
export async function fetchRows(
  donor: Donor,
  manifest: Manifest,
  options: RowsOptions,
  node: BitcoinNode,
  { store, log, progress }: { readonly store: Store; readonly log: Log; readonly progress: Progress },
): Promise<void> {
  const { base, client } = donor;
  const { from, point, concurrency, signal, limits } = options;
  const last = point.height;
  const lacking = (why: string) =>
    new InputError(`${base} does not have the rows of blocks ${from}..${last}: ${why}`, [
      `Give another mirror with --start-from, or leave out --blocks: then rows begin above block ${last}.`,
    ]);
  const [read] = manifest.sources?.[0]?.blocks[0] ?? [];
  if (manifest.rows === undefined) throw lacking('it publishes no rows');
  if (read === undefined || read > from) throw lacking(`its rows begin at block ${read}`);
  const to = rowsFolder(options.folder, from, base);
  const folder = join(to, PULLED_FOLDER);
  mkdirSync(join(folder, WORK_FOLDER), { recursive: true });
  // Removes files of blocks above the start. A killed pull may have fetched such files, if it was given fewer mirrors:
  // the newest block that these have in common may be higher.
  removeFiles(
    folder,
    listPulledFiles(folder).filter((file) => file.last > last),
  );
  const source = new RowsSource(base, manifest, client, folder, limits, store.processMemory);
  try {
    // All blocks up to the start count as settled, so the pull fetches complete files, which also cover blocks without
    // rows.
    const confirmations = (manifest.tip?.height ?? last) - last;
    await pull({ to, wanted: { from, to: last }, confirmations, concurrency, signal }, source, store, log, progress);
  } finally {
    await source.close();
  }
  const fault = await faultOf(folder, options, node, store);
  if (fault === undefined) return;
  rmSync(to, { recursive: true });
  throw wrong(donor, fault);
}

/** Describes why fetched rows do not match the node's chain or the ledger. Returns undefined if they match. */
async function faultOf(
  folder: string,
  { from, firstHeight, network, point, limits }: RowsOptions,
  node: BitcoinNode,
  store: Store,
): Promise<string | undefined> {
  const files = listPulledFiles(folder);
  const other = await otherBlock({ first: from, last: point.height }, { folder, files }, node, store);
  if (other !== undefined) return `it has rows of block ${other.height} (${other.hash}), which ${node.name} does not have`;
  if (from > firstHeight) return undefined;
  const paths = files.map(({ path }) => join(folder, path));
  const digest = await digestOfRows({ network, point, paths, runes: readRunes(folder) }, limits, store);
  return digest === point.digest ? undefined : `its rows add up to the digest ${digest} instead of ${point.digest}`;
}

/**
 * Compares hashes and times of blocks in the rows with the headers of the node. Returns the first block that differs.
 */
async function otherBlock(
  { first, last }: Heights,
  { folder, files }: { readonly folder: string; readonly files: readonly PulledFile[] },
  node: BitcoinNode,
  store: Store,
): Promise<LastRead | undefined> {
  for (let begin = first; begin <= last; begin += HEIGHTS_AT_ONCE) {
    const end = Math.min(begin + HEIGHTS_AT_ONCE - 1, last);
    const headers = await node.headers(begin, end);
    const paths = files.filter((file) => file.first <= end && begin <= file.last).map(({ path }) => join(folder, path));
    const blocks = await store.rows(
      `SELECT DISTINCT block_height AS height, block_hash AS hash, "timestamp" AS time FROM ${readFiles('parquet', paths)}
       WHERE block_height BETWEEN ${begin} AND ${end} ORDER BY height`,
      { height: int, hash: text, time: int },
    );
    const other = blocks.find(({ height, hash, time }) => headers[height - begin]?.hash !== hash || headers[height - begin]?.time !== time);
    if (other !== undefined) return other;
  }
  return undefined;
}

/**
 * Moves the fetched rows of a valid start to the folder `pulled`. `from` is the first height of the rows. If the rows
 * begin at the first block with runes, also takes their table of runes, which has more columns than the table that was
 * made from the mirror's etchings. Continues after a kill.
 */
export function takeRows(folder: string, { donors: [base = ''] }: Start, from: number, firstHeight: number): void {
  const fetched = join(rowsFolder(folder, from, base), PULLED_FOLDER);
  const paths = [...(from <= firstHeight ? [RUNES_FILE] : []), ...listPulledFiles(fetched).map(({ path }) => path)];
  for (const path of paths.flatMap((one) => [`${one}${CHECKSUM_ENDING}`, one])) {
    if (!existsSync(join(fetched, path))) continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    renameSync(join(fetched, path), join(folder, path));
  }
  for (const path of new Set(['.', ...listPulledFiles(folder).map(({ path }) => dirname(path))])) syncFolder(join(folder, path));
}
