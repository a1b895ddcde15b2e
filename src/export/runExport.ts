/** Writes a complete list of a mirror into a CSV file. */
import { existsSync, renameSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Flags } from '../cli/flags.ts';
import { count, type Log } from '../cli/log.ts';
import { memoryLimitOf } from '../cli/memoryLimit.ts';
import { didYouMean } from '../cli/nearestWord.ts';
import { Progress } from '../cli/progress.ts';
import { costRows, peakMegabytes, Stopwatch } from '../cli/stopwatch.ts';
import { explainFiles } from '../disk/fileErrors.ts';
import { writeLines } from '../disk/lineFile.ts';
import { syncFile, syncFolder } from '../disk/sync.ts';
import { readCsv } from '../duckdb/readFilesSql.ts';
import { BuildError, CliError, EXIT, InputError, messageOf, UsageError } from '../errors.ts';
import { digitsOf, joinedParts, sumsOf } from '../lists/balanceChanges.sql.ts';
import { type CsvList, csvColumns, csvLine, csvLines } from '../lists/csv.ts';
import { findRunes, lettersOf, readSearchFile } from '../lists/searchFiles.ts';
import { shiftDecimals } from '../pages/decimalAmounts.ts';
import { parseRune } from '../pages/parseIds.ts';
import type { Holder, Page, WindowQuery } from '../serve/client/client.d.ts';
import { type Mirror, MirrorError } from '../serve/client/mirrorClient.ts';
import { type Verification, withScratchStore } from '../verify/verification.ts';
import { openMirror } from './openMirror.ts';

const LISTS = ['runes', 'holders', 'balances', 'activity', 'outputs'] as const;
type ListName = (typeof LISTS)[number];

/** Advice that is shown if a mirror lacks a list. It says which mirrors have the list. */
const complete = (list: ListName) =>
  `Mirrors have ${list} in layout archive, or if they are built with --lists, from all blocks since the first rune.`;
const NEEDS: Readonly<Record<ListName, string>> = {
  runes: 'Mirrors have etchings if their input has a runes table, as rows from a node and ledgers do.',
  holders: complete('holders'),
  balances: complete('balances'),
  activity: 'Mirrors have this list in layout archive, or if they are built with --lists.',
  outputs: 'Mirrors have outputs if they have balances, and their rows are from a node.',
};

interface Request {
  readonly list: ListName;
  /** Rune or address. Empty for all runes. */
  readonly subject: string;
  readonly isRune: boolean;
  readonly height: number | undefined;
  readonly out: string;
}

function requestOf(flags: Flags): Request {
  const [name = '', subject = '', ...more] = flags.positionals;
  const list = LISTS.find((one) => one === name);
  if (list === undefined)
    throw new UsageError(`unknown list ${JSON.stringify(name)}; lists are ${LISTS.join(', ')}${didYouMean(name, LISTS)}`);
  if (list === 'runes' && subject !== '') throw new UsageError('the list "runes" has all runes: it takes no rune or address');
  if (list !== 'runes' && subject === '') throw new UsageError(`a rune or an address must be given, as in ${list} 840000:3`);
  if (more.length > 0) throw new UsageError('only one rune or address can be given');
  const height = flags.has('height') ? flags.integer('height', 0, 0, Number.MAX_SAFE_INTEGER) : undefined;
  if (height !== undefined && list !== 'holders') throw new UsageError('--height can only be used with the list "holders"');
  const isRune = parseRune(subject) !== undefined;
  if (list === 'holders' && !isRune) throw new UsageError(`${JSON.stringify(subject)} is not a rune: give its id, number or name`);
  const words = [list, ...(subject === '' ? [] : subject.split(/[^0-9A-Za-z]+/)), ...(height === undefined ? [] : [height])];
  return { list, subject, isRune, height, out: flags.one('out') ?? `${words.join('-')}.csv` };
}

/**
 * Runs the command. Rejects with a UsageError for a wrong request, an InputError if the mirror lacks the list or the height or the file
 * exists, and a BuildError if the mirror cannot be read or the file not be written.
 */
export async function runExport(flags: Flags, log: Log): Promise<void> {
  const request = requestOf(flags);
  const { out, list } = request;
  const [progress, memory, clock] = [Progress.of(flags, log), memoryLimitOf(flags), new Stopwatch()];
  if (existsSync(out)) throw new InputError(`${out} exists, and export never replaces a file`, ['Choose another file with --out.']);
  if (!existsSync(dirname(out))) throw new InputError(`the folder ${dirname(out)} does not exist`, ['Create it first.']);
  const mirror = openMirror(flags, log);
  // The name contains the process id, so that two exports to the same file do not write the same temporary file.
  const temporary = `${out}.${process.pid}.tmp`;
  const stop = () => {
    rmSync(temporary, { force: true });
    log.error(`stopped; ${out} was not written`, ['Run the same command again.'], EXIT.interrupted);
    process.exit(EXIT.interrupted);
  };
  process.once('SIGINT', stop).once('SIGTERM', stop);
  try {
    const { rows, height, tip, rest } = await withScratchStore(memory, (scratch) =>
      explainFiles(async () => {
        const { csv, entries, current, ...about } = await listOf(mirror, request, scratch);
        const written = await writeEntries(entries, csv, temporary, progress);
        renameSync(temporary, out);
        syncFolder(dirname(resolve(out)));
        return { ...about, rows: written.rows, rest: current && restOf(current, written.units) };
      }),
    );
    const message = `Wrote ${count(rows, 'row')} of ${list} as of block ${height.toLocaleString('en-US')} to ${out} in ${clock.total} s.`;
    log.info('exported', message, {
      file: out,
      list,
      rows,
      without_address: rest,
      height,
      tip,
      seconds: clock.total,
      peak_rss_mb: peakMegabytes(),
    });
    log.summary([
      ...(rest === undefined ? [] : [['on outputs without an address', rest] as const]),
      ['mirror up to', `block ${tip.height}, ${tip.hash}`],
      ...costRows(clock),
    ]);
  } catch (error) {
    throw explained(error, list);
  } finally {
    progress.end();
    process.off('SIGINT', stop).off('SIGTERM', stop);
    rmSync(temporary, { force: true });
  }
}

function explained(error: unknown, list: ListName): unknown {
  for (let cause = error; cause instanceof Error; cause = cause.cause) if (cause instanceof CliError) return cause;
  const status = error instanceof MirrorError ? error.statusCode : undefined;
  if (status === 400) return new UsageError(messageOf(error));
  if (status === 501) return new InputError(messageOf(error), [NEEDS[list]]);
  return new BuildError(messageOf(error), ['Run the same command again, or verify the mirror.']);
}

type Scratch = Pick<Verification, 'store' | 'scratch'>;

interface FoundList {
  readonly csv: CsvList;
  readonly entries: AsyncIterable<object>;
  /** Last block that the list takes into account. */
  readonly height: number;
  readonly tip: { readonly height: number; readonly hash: string };
  /** For holders after the tip: how much of the rune exists, with its decimals, if all of it is in records. */
  readonly current?: string | undefined;
}

async function listOf(mirror: Mirror, { list, subject, isRune, height: asked }: Request, scratch: Scratch): Promise<FoundList> {
  const { tip = { height: -1, hash: '' }, lists, sources = [] } = await mirror.manifest();
  const isKnown = list === 'runes' || !isRune || lists?.etchings === undefined || (await mirror.etching(subject)) !== undefined;
  if (!isKnown) throw new InputError(`there is no rune ${JSON.stringify(subject)} in the mirror`, await similarNames(mirror, subject));
  const windows: Readonly<Record<ListName, (window: WindowQuery) => Promise<Page<object>>>> = {
    runes: (window) => mirror.etchings(window),
    holders: (window) => mirror.holders(subject, window),
    balances: (window) => mirror.balances(subject, window),
    activity: (window) => (isRune ? mirror.runeActivity(subject, window) : mirror.addressActivity(subject, window)),
    outputs: (window) => mirror.outputs(subject, window),
  };
  const entries = mirror.all(windows[list]);
  const csv = list === 'runes' ? 'newest' : list === 'activity' && isRune ? 'rune_activity' : list;
  if (list !== 'holders') return { csv, entries, tip, height: tip.height };
  if (asked !== undefined && asked > tip.height)
    throw new InputError(`the mirror has blocks up to ${tip.height}, so the holders as of block ${asked} are unknown`);
  // The list of a rune with many holders may be as of an older block.
  const { block_height: listed = tip.height } = await mirror.holders(subject, { limit: 1 });
  const height = asked ?? listed;
  // Only the rules of ord account for all units of a rune.
  const isCounted = height === tip.height && sources.every(({ rules }) => rules === 'ord');
  const { current } = (isCounted ? await mirror.etching(subject) : undefined)?.supply ?? {};
  return { csv: list, entries: asked === undefined ? entries : holdersAt(mirror, subject, asked, scratch), tip, height, current };
}

/**
 * Yields the holders of `rune` as of block `height`, in the order of the API. Adds up the activity up to this block, so the mirror must
 * have all of it: the balance of an address is receive minus send minus burn. DuckDB computes the sums, because it can move them to disk if
 * memory is short. Throws the errors of the client and of the store.
 */
async function* holdersAt(mirror: Mirror, rune: string, height: number, { store, scratch }: Scratch): AsyncIterable<Holder> {
  let decimals = 0;
  const written = await writeLines(join(scratch, 'changes.csv'), async (lines) => {
    for await (const { address, amount, operation, location } of mirror.all((window) => mirror.runeActivity(rune, window))) {
      const isMoved = operation === 'receive' || operation === 'send' || operation === 'burn';
      if (location.block_height > height || !isMoved || address === undefined || amount === undefined) continue;
      if (!/^[0-9]+(?:\.[0-9]+)?$/.test(amount))
        throw new InputError(`the mirror has the amount ${JSON.stringify(amount)}, which is not a number`);
      decimals = amount.includes('.') ? amount.length - amount.indexOf('.') - 1 : 0;
      lines.add(csvLine([address, operation === 'receive' ? 1 : -1, amount.replace('.', '')]).trimEnd());
    }
  });
  // DuckDB cannot read an empty file.
  if (written.count === 0) return;
  const changes = readCsv([written.file], ['address', 'sign', 'units'], '\\n', ['header = false']);
  const sums = `SELECT address, ${joinedParts('upper', 'lower')} FROM (SELECT address, ${sumsOf('units', 'sign::INTEGER')} FROM ${changes} GROUP BY address)`;
  const held = `SELECT address, ${digitsOf('upper', 'lower')} FROM (${sums}) WHERE upper > 0 OR lower > 0 ORDER BY upper DESC, lower DESC, address`;
  for await (const chunk of store.stream(held)) {
    for (const [address, units] of chunk.getRows())
      yield { address: String(address), balance: shiftDecimals(BigInt(String(units)), decimals) };
  }
}

/** Returns advice with runes whose names have the longest common prefix with `subject`, of at least 2 letters. */
async function similarNames(mirror: Mirror, subject: string): Promise<string[]> {
  const letters = lettersOf(subject) ?? '';
  const read = async (path: string) => {
    const { status, body } = await mirror.get(`/${path}`);
    return readSearchFile(status === 200 ? body : '');
  };
  for (let length = letters.length; length >= 2; length -= 1) {
    const found = await findRunes(letters.slice(0, length), read);
    const names = found.slice(0, 5).map(([name]) => name);
    if (names.length > 0) return [`Similar names: ${names.join(', ')}`];
  }
  return [];
}

const unitsOf = (amount: string): bigint => BigInt(amount.replace('.', ''));

/** Returns how much of a rune is on outputs without an address: what exists, minus the `units` of all holders. */
const restOf = (current: string, units: bigint): string =>
  shiftDecimals(unitsOf(current) - units, current.includes('.') ? current.length - current.indexOf('.') - 1 : 0);

/** Writes the entries into a new file, and syncs it. Returns the number of rows, and the sum of the balances of holders in smallest units. */
async function writeEntries(entries: AsyncIterable<object>, csv: CsvList, file: string, progress: Progress) {
  let [done, rows, units] = [0, 0, 0n];
  progress.watch('export', () => ({ done, what: 'entries' }));
  await writeLines(file, async (lines) => {
    const add = (line: string) => lines.add(line.slice(0, -1));
    add(csvLine(csvColumns(csv)));
    for await (const entry of entries) {
      const made = csvLines(csv, entry);
      made.forEach(add);
      rows += made.length;
      done += 1;
      if (csv === 'holders') units += unitsOf((entry as Holder).balance);
    }
  });
  syncFile(file);
  return { rows, units };
}
