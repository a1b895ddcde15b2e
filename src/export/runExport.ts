/** Writes a complete list of a mirror into a file, and a description of it beside the file. */
import { existsSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { Flags } from '../cli/flags.ts';
import { count, type Log } from '../cli/log.ts';
import { memoryLimitOf } from '../cli/memoryLimit.ts';
import { didYouMean } from '../cli/nearestWord.ts';
import { Progress } from '../cli/progress.ts';
import { costRows, peakMegabytes, Stopwatch } from '../cli/stopwatch.ts';
import { explainFiles } from '../disk/fileErrors.ts';
import { writeLines } from '../disk/lineFile.ts';
import { replaceDurably } from '../disk/replaceFile.ts';
import { syncFile, syncFolder } from '../disk/sync.ts';
import { readCsv } from '../duckdb/readFilesSql.ts';
import type { Store } from '../duckdb/store.ts';
import { BuildError, EXIT, InputError, UsageError } from '../errors.ts';
import { type CsvList, csvColumns, csvLine, csvLines } from '../lists/csv.ts';
import { findRunes, lettersOf, readSearchFile } from '../lists/searchFiles.ts';
import { parseRune } from '../pages/parseIds.ts';
import { copyRows, stampOf } from '../rows/rowsForm.ts';
import type { ActivityPage, Etching, HolderPage, MirrorManifest, Rune } from '../serve/client/client.d.ts';
import { withScratchStore } from '../verify/verification.ts';
import { holdersAt } from './holdersAt.ts';
import { AbsentError, OpenedMirror } from './pinnedMirror.ts';

const LISTS = ['holders', 'balances', 'activity', 'outputs'] as const;
type ListName = (typeof LISTS)[number];

/** Advice that is shown if a mirror lacks a list. It says which mirrors have the list. */
const NEEDS: Readonly<Record<ListName, string>> = {
  holders: 'Mirrors have holders in layout archive, or if they are built with --lists, from all blocks since the first rune.',
  balances: 'Mirrors have balances in layout archive, or if they are built with --lists, from all blocks since the first rune.',
  activity: 'Mirrors have this list in layout archive, or if they are built with --lists.',
  outputs: 'Mirrors have outputs if they have balances, and their rows are from a node.',
};

interface Request {
  readonly list: ListName;
  readonly subject: string;
  readonly height: number | undefined;
  readonly isParquet: boolean;
  readonly out: string;
}

function requestOf(flags: Flags): Request {
  const [name = '', subject = '', ...more] = flags.positionals;
  const list = LISTS.find((one) => one === name);
  if (list === undefined)
    throw new UsageError(`unknown list ${JSON.stringify(name)}; lists are ${LISTS.join(', ')}${didYouMean(name, LISTS)}`);
  if (more.length > 0) throw new UsageError('only one rune or address can be given');
  const height = flags.has('height') ? flags.integer('height', 0, 0, Number.MAX_SAFE_INTEGER) : undefined;
  if (height !== undefined && list !== 'holders') throw new UsageError('--height can only be used with the list "holders"');
  if (list === 'holders' && parseRune(subject) === undefined)
    throw new UsageError(`${JSON.stringify(subject)} is not a rune: give its id, number or name`);
  const format = flags.choice('format', ['csv', 'parquet']);
  const words = [list, ...subject.split(/[^0-9A-Za-z]+/), ...(height === undefined ? [] : [height])];
  return { list, subject, height, isParquet: format === 'parquet', out: flags.one('out') ?? `${words.join('-')}.${format}` };
}

/**
 * Runs the command. Rejects with a UsageError for a wrong request. Rejects with an InputError if the mirror lacks the
 * list or the height, or if the file exists. Rejects with a BuildError if the mirror cannot be read, or the file cannot
 * be written.
 */
export async function runExport(flags: Flags, log: Log): Promise<void> {
  const request = requestOf(flags);
  const { out, list } = request;
  const [progress, memory, clock] = [Progress.of(flags, log), memoryLimitOf(flags), new Stopwatch()];
  for (const path of [out, `${out}.json`])
    if (existsSync(path)) throw new InputError(`${path} exists, and export never replaces a file`, ['Choose another file with --out.']);
  if (!existsSync(dirname(out))) throw new InputError(`the folder ${dirname(out)} does not exist`, ['Create it first.']);
  const mirror = OpenedMirror.of(flags, log);
  // The name contains the process id, so that two exports to the same file do not write the same temporary file.
  const temporary = `${out}.${process.pid}.tmp`;
  const stop = () => {
    rmSync(temporary, { force: true });
    log.error(`stopped; ${out} was not written`, ['Run the same command again.'], EXIT.interrupted);
    process.exit(EXIT.interrupted);
  };
  process.once('SIGINT', stop).once('SIGTERM', stop);
  try {
    const description = await withScratchStore(memory, ({ store, scratch }) =>
      explainFiles(async () => {
        const made = await describe(mirror, request);
        const entries = made.entries({ store, scratch });
        const written = await writeEntries(entries, { ...request, ...made, temporary }, progress, { store, scratch });
        const about = { file: basename(out), ...written, ...made.about };
        // Writes the description first, so that the file never exists without it.
        replaceDurably(`${out}.json`, `${JSON.stringify(about, null, 2)}\n`);
        renameSync(temporary, out);
        syncFolder(dirname(resolve(out)));
        return about;
      }),
    );
    const { rows, height } = description;
    const message = `Wrote ${count(rows, 'row')} of ${list} as of block ${height.toLocaleString('en-US')} to ${out} in ${clock.total} s.`;
    log.info('exported', message, { ...description, seconds: clock.total, peak_rss_mb: peakMegabytes() });
    log.summary([['SHA-256', description.sha256], ...costRows(clock)]);
  } catch (error) {
    throw error instanceof AbsentError ? new InputError(error.message, [NEEDS[list]]) : error;
  } finally {
    progress.end();
    process.off('SIGINT', stop).off('SIGTERM', stop);
    rmSync(temporary, { force: true });
    await mirror.close();
  }
}

interface Described {
  readonly csv: CsvList;
  readonly entries: (scratch: Scratch) => AsyncIterable<object>;
  readonly about: { readonly height: number; readonly [fact: string]: unknown };
}

type Scratch = { readonly store: Store; readonly scratch: string };

/**
 * Finds the list in the mirror. Returns the list's entries, and a description: the rune or address, and the last block
 * that the list takes into account.
 */
async function describe(mirror: OpenedMirror, { list, subject, height: asked }: Request): Promise<Described> {
  const manifest = await mirror.manifest();
  const isRune = parseRune(subject) !== undefined;
  const rune = isRune ? await findRune(mirror, manifest, subject) : undefined;
  const tip = manifest.tip?.height ?? -1;
  const from = { list, [isRune ? 'rune' : 'address']: rune ?? subject };
  const about = async (height: number) => ({
    ...from,
    ...(await blockOf(mirror, manifest, height)),
    dialect: manifest.dialect,
    ...(mirror.url === undefined ? {} : { mirror: mirror.url }),
    ...(manifest.sample ? { sample: true } : {}),
  });
  const path = `${isRune ? 'etchings' : 'addresses'}/${encodeURIComponent(rune?.id ?? subject)}`;
  const csv = list === 'activity' && isRune ? 'rune_activity' : list;
  const all = () => mirror.all<object>(`${path}/${list}`);
  if (list !== 'holders') return { csv, about: await about(tip), entries: all };
  const { block_height: listed = tip } = await mirror.window<HolderPage>(`${path}/holders`, {});
  const height = asked ?? listed;
  const start = startOf(manifest);
  if (height > tip) throw new InputError(`the mirror has blocks up to ${tip}, so the holders as of block ${height} are unknown`);
  if (height < start)
    throw new InputError(`the mirror began with the ledger as of block ${start}, so the holders as of block ${height} are unknown`, [
      'Use a mirror of all blocks since the first rune.',
    ]);
  const moment = { path, height, tip, isStarted: start >= 0 };
  const entries = asked === undefined ? all : (scratch: Scratch) => holdersAt(mirror, moment, scratch);
  return { csv, about: await about(height), entries };
}

/** Returns the height of the mirror's start (contract/sources.ts); -1 if the mirror has all activity. */
function startOf({ start, heights }: MirrorManifest): number {
  // A mirror with a start has all activity too if its pull also fetched the rows of the blocks up to the start.
  return start === undefined || (heights[0]?.[0] ?? Number.POSITIVE_INFINITY) <= start.height ? -1 : start.height;
}

/**
 * Finds a rune by its id, number or name. Returns undefined if the mirror has no etchings. Throws an InputError for an
 * unknown rune.
 */
async function findRune(mirror: OpenedMirror, { lists }: MirrorManifest, subject: string): Promise<Rune | undefined> {
  if (lists?.etchings === undefined) return undefined;
  const etching = await mirror.get<Etching>(`etchings/${encodeURIComponent(subject)}`);
  if (etching === undefined)
    throw new InputError(`there is no rune ${JSON.stringify(subject)} in the mirror`, await similarNames(mirror, subject));
  const { id, number, name, spaced_name } = etching;
  return { id, number, name, spaced_name };
}

/**
 * Returns advice with up to 5 runes whose names have the longest common prefix with `subject`, of at least 2 letters.
 */
async function similarNames(mirror: OpenedMirror, subject: string): Promise<string[]> {
  const letters = lettersOf(subject) ?? '';
  const read = async (path: string) => readSearchFile((await mirror.file(path)) ?? '');
  for (let length = letters.length; length >= 2; length -= 1) {
    const found = await findRunes(letters.slice(0, length), read);
    const names = found.slice(0, 5).map(([name]) => name);
    if (names.length > 0) return [`Similar names: ${names.join(', ')}`];
  }
  return [];
}

/**
 * Returns height and hash of a block, and the digest of the ledger after the block. Omits values that the mirror does
 * not have.
 */
async function blockOf(mirror: OpenedMirror, { tip, ledger, start }: MirrorManifest, height: number) {
  const point = [ledger, ledger?.lower, start].find((one) => one?.height === height);
  const hash =
    tip?.height === height
      ? tip.hash
      : (point?.hash ?? (await mirror.window<ActivityPage>(`blocks/${height}/activity`, {})).results[0]?.location.block_hash);
  return {
    height,
    ...(hash === undefined ? {} : { hash: hash.replace(/^0x/, '') }),
    ...(point === undefined ? {} : { ledger: point.digest }),
  };
}

interface Target {
  readonly csv: CsvList;
  readonly isParquet: boolean;
  readonly temporary: string;
}

/** Writes the entries into the temporary file, and syncs it. Returns the numbers of rows and bytes, and the SHA-256. */
async function writeEntries(
  entries: AsyncIterable<object>,
  { csv, isParquet, temporary }: Target,
  progress: Progress,
  { store, scratch }: Scratch,
) {
  const path = isParquet ? join(scratch, 'entries.csv') : temporary;
  let [done, rows] = [0, 0];
  progress.watch('export', () => ({ done, what: 'entries' }));
  await writeLines(path, async (lines) => {
    const add = (line: string) => lines.add(line.slice(0, -1));
    add(csvLine(csvColumns(csv)));
    for await (const entry of entries) {
      const made = csvLines(csv, entry);
      made.forEach(add);
      rows += made.length;
      done += 1;
    }
  });
  if (isParquet) await store.run(copyRows(typedRows(path, csv), temporary));
  syncFile(temporary);
  const stamp = await stampOf(temporary);
  if (stamp === undefined) throw new BuildError(`${temporary} was removed while it was written`);
  return { rows, ...stamp };
}

/**
 * Returns SQL that reads a CSV file. Numbers become BIGINT. Amounts stay text, because no number type of DuckDB has
 * room for 39 digits with decimals.
 */
function typedRows(path: string, csv: CsvList): string {
  const columns = csvColumns(csv);
  const isNumber = (name: string) => ['rune_number', 'block_height', 'tx_index', 'vout', 'timestamp'].includes(name);
  const typed = columns.map((name) => (isNumber(name) ? `"${name}"::BIGINT AS "${name}"` : `"${name}"`));
  return `SELECT ${typed.join(', ')} FROM ${readCsv([path], columns, '\\r\\n', ['header = true'])}`;
}
