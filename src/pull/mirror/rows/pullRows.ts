/**
 * Pulls the rows of another mirror: reads its index, fetches the files that the folder lacks, checks each (readerProcesses.ts), and
 * replaces the index of the folder. The manifest has the hash of the mirror's index, which has the hash of each file. After a kill, files
 * that were fetched are not fetched again. No text of an index becomes a path: paths are computed from checked heights and digests.
 */
import { createHash, randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { inParallel } from '../../../atOnce.ts';
import { attempt } from '../../../attempt.ts';
import { count } from '../../../cli/log.ts';
import {
  type FolderIndex,
  KINDS,
  type Kind,
  namesOf,
  type RowFile,
  type RowsIndex,
  rowsIndex,
  rowsName,
} from '../../../contract/rowsSchemas.ts';
import type { Manifest } from '../../../contract/schemas.ts';
import { joinRuns, joinSources } from '../../../contract/sources.ts';
import { readFiles } from '../../../duckdb/readFilesSql.ts';
import { flag, int } from '../../../duckdb/store.ts';
import { InputError } from '../../../errors.ts';
import { ROWS_FOLDER, rowsIndexPath } from '../../../pages/filePaths.ts';
import { checkSizes, commitIndex, EMPTY_INDEX, mirrorsUpTo, moveIn, readIndex } from '../../../rows/rowsFolder.ts';
import { HEIGHTS_PER_FILE, hundredOf, stampOf } from '../../../rows/rowsForm.ts';
import type { Client } from '../../httpClient.ts';
import { checkNetwork, workFile } from '../../pulledFiles.ts';
import { HIGHEST, type PullOptions, type PullResult, type Tools } from '../../pullOptions.ts';
import { BadDataError, findManifest, impossible as impossibleManifest, MOST_BLOCKS } from '../mirrorSource.ts';
import { type RowsLimits, RowsReader } from './readerProcesses.ts';
import { mostBytes } from './readStrangersRows.ts';

/** Maximum size of an index, in bytes. A file takes some 240 bytes in it, so that of a testnet with 100,000 files has 24 MB. */
const INDEX_BYTES = 64 * 1024 * 1024;

/** Maximum number of rows of a file, and of runes. No block has that many records; mainnet has 270,000 runes in 2026. */
const [MOST_RECORDS, MOST_RUNES] = [2 ** 24 - 1, 10_000_000];

/** Maximum number of times that a mirror may replace its index during a pull. */
const MOST_ROUNDS = 5;

/** Thrown if the mirror has another index now. */
class MovedError extends Error {}

type Options = PullOptions & { readonly limits: RowsLimits };

/** Throws an InputError for no mirror, no rows, an impossible index or another settled block, and a BuildError if a file is wrong. */
export async function pullRows(options: Options, base: string, client: Client, tools: Tools): Promise<PullResult> {
  const reader = new RowsReader(options.limits, tools.store.processMemory);
  try {
    for (let round = 1; ; round++) {
      const theirs = await client.persist(base, () => readTheirs(base, client, options.limits));
      try {
        return await new RowsPull(options, base, client, theirs, reader, tools).run(round === 1);
      } catch (error) {
        if (!(error instanceof MovedError) || round === MOST_ROUNDS) throw error;
      }
    }
  } finally {
    reader.close();
  }
}

class RowsPull {
  readonly #name: string;
  readonly #ours: FolderIndex;

  constructor(
    private readonly options: Options,
    private readonly base: string,
    private readonly client: Client,
    private readonly theirs: PublishedIndex,
    private readonly reader: RowsReader,
    private readonly tools: Tools,
  ) {
    this.#name = `${base} (a mirror of this program)`;
    this.#ours = readIndex(options.folder) ?? { ...EMPTY_INDEX, spent: theirs.spent };
  }

  async run(isFirst: boolean): Promise<PullResult> {
    const { folder, wanted } = this.options;
    const { theirs, tools } = this;
    const [ours, name] = [this.#ours, this.#name];
    checkNetwork(ours.network, theirs.network, name, folder);
    if (ours.files.length > 0 && theirs.spent !== ours.spent)
      throw new InputError(`unlike ${folder}, ${name} has rows ${theirs.spent ? 'with' : 'without'} spent outputs`, [
        'Give another folder with --to.',
      ]);
    checkSizes(folder, ours);
    const [tip, own = Number.MAX_SAFE_INTEGER, lowest = 0] = [theirs.tip?.height ?? -1, beginOf(ours), beginOf(theirs)];
    // Blocks between the pulled ones and the wanted ones are fetched, too, so that no block is missing in between.
    const from =
      typeof wanted.from === 'object' ? Math.max(tip - wanted.from.last + 1, 0) : Math.min(wanted.from ?? beginOf(ours) ?? 0, own);
    const known = new Map(KINDS.flatMap((kind) => ours[kind].map((file) => [rowsName(kind, file), file] as const)));
    // A file that the folder has keeps its entry, so that a mirror cannot make it look damaged.
    const chosen = (kind: Kind, all: readonly RowFile[]) => all.map((file) => known.get(rowsName(kind, file)) ?? file);
    const files = chosen('files', theirs.files).filter(({ last }) => last >= from);
    const runes = chosen('runes', theirs.runes);
    const kept = ours.files.filter(({ last }) => last < lowest && last >= from);
    const cut = ours.files.find(({ first, last }) => from < lowest && first < lowest && lowest <= last);
    if (cut !== undefined)
      throw new InputError(`${name} begins at block ${lowest}, in the middle of ${join(folder, rowsName('files', cut))}`, [
        'Pull from the source of this file, or remove the folder and pull again.',
      ]);
    const isNew = (kind: Kind) => (file: RowFile) => !known.has(rowsName(kind, file));
    const [newFiles, newRunes] = [files.filter(isNew('files')), runes.filter(isNew('runes'))];
    const blocks = newFiles.reduce((sum, { first, last }) => sum + last - first + 1, 0);
    if (isFirst) {
      const todo = newFiles.length === 0 ? 'nothing to fetch' : `${count(newFiles.length, 'file')} to fetch`;
      const fields = { source: name, tip, blocks, files: newFiles.length };
      tools.log.info('looked', `${name} has blocks up to ${tip}: ${todo}.`, fields);
      if (from > tip) tools.log.notice(`the source has none of the wanted blocks: its last block is ${tip}`);
    }
    await this.#fetch({ runes: newRunes, files: newFiles });

    const names = new Set(namesOf(theirs));
    const dropped = ours.files.filter((file) => file.last >= lowest && !names.has(rowsName('files', file)));
    const replaced = await this.#compare(dropped, newFiles, Math.max(lowest, from));
    const isBehind = tip < (ours.tip?.height ?? -1) && replaced === 0;
    let index = ours;
    if (isBehind) tools.log.notice(`${name} is behind: its last block is ${tip}, and block ${ours.tip?.height} was pulled before`);
    else {
      const older = kept.length === 0 ? [] : ours.runes.filter((file) => !names.has(rowsName('runes', file)));
      index = this.#indexOf([...kept, ...files], [...older, ...runes], from, lowest);
      commitIndex(folder, index, workFile(folder, '.json'));
    }
    const read = index.sources.flatMap((source) => source.blocks);
    const runs = read.length > 0 ? read : index.files.map(({ first, last }) => [first, last] as const);
    return {
      blocks,
      records: newFiles.reduce((total, { rows }) => total + rows, 0),
      bytes: [...newFiles, ...newRunes].reduce((total, { bytes }) => total + bytes, 0),
      replaced,
      heights: joinRuns(runs).map(([first, last]) => ({ first, last })),
    };
  }

  /** Fetches runes before rows, because rows are checked with the premines of their runes. */
  async #fetch(all: Readonly<Record<Kind, readonly RowFile[]>>): Promise<void> {
    const { progress } = this.tools;
    let done = 0;
    progress.begin('fetch');
    for (const kind of ['runes', 'files'] as const)
      await inParallel(all[kind], this.options.concurrency, async (file) => {
        await this.#fetchFile(kind, file);
        done += 1;
        progress.show(done, all.runes.length + all.files.length, 'files');
      });
    progress.end();
  }

  async #fetchFile(kind: Kind, file: RowFile): Promise<void> {
    const { folder, signal } = this.options;
    const { base, client, theirs } = this;
    const { first, last, rows, bytes, sha256 } = file;
    const path = `${ROWS_FOLDER}/${rowsName(kind, file)}`;
    // A killed pull has checked this file, but not written the index.
    if ((await stampOf(join(folder, rowsName(kind, file))))?.sha256 === sha256) return;
    let attempts = 0;
    await client.persist(`the ${kind === 'files' ? 'rows' : 'runes'} of blocks ${first}..${last}`, async () => {
      signal.throwIfAborted();
      // A build of the mirror may have replaced its files.
      if (attempts > 0 && (await findManifest(base, client))?.rows?.sha256 !== theirs.sha256) throw new MovedError();
      attempts += 1;
      const temporary = workFile(folder, '.fetched');
      try {
        const { status, digest } = await client.save(`${base}/${path}`, temporary, bytes);
        if (status !== 200) throw new BadDataError(`need ${path}, but the mirror answered with status ${status}`);
        if (digest !== sha256) throw new BadDataError(`need ${path}, which is damaged on the mirror`);
        const needed = kind === 'runes' ? [] : theirs.runes.filter((one) => one.first <= last && first <= one.last);
        const runes = needed.map((one) => join(folder, rowsName('runes', one)));
        await this.reader.read({ path: temporary, kind, rows, first, last, hasSpent: theirs.spent, runes });
        await moveIn(folder, temporary, kind, file);
      } finally {
        rmSync(temporary, { force: true });
      }
    });
  }

  /** Returns how many pulled blocks have other rows in the new files. Throws an InputError if one of them is settled. */
  async #compare(dropped: readonly RowFile[], added: readonly RowFile[], lowest: number): Promise<number> {
    const { folder, confirmations } = this.options;
    const { tip } = this.#ours;
    if (tip === undefined) return 0;
    const low = Math.max(lowest, beginOf(this.#ours) ?? 0);
    const high = Math.min(tip.height, this.theirs.tip?.height ?? -1);
    const within = (all: readonly RowFile[]) => all.filter(({ first, last }) => last >= low && first <= high);
    const [ours, theirs] = [within(dropped), within(added)];
    const paths = [...ours, ...theirs].map((file) => join(folder, rowsName('files', file)));
    if (paths.length === 0) return 0;
    // With random bytes before each row, a mirror cannot choose other rows of a settled block that have the same sum.
    const sum = `sum(md5_number_lower('${randomBytes(16).toString('hex')}' || r::VARCHAR)::HUGEINT)`;
    const isOurs = `file_index < ${ours.length}`;
    const differing = await this.tools.store.rows(
      `SELECT block_height AS height, bool_or(${isOurs}) AS "isOurs" FROM ${readFiles('parquet', paths)} r
       WHERE block_height BETWEEN ${low} AND ${high} GROUP BY height
       HAVING ${sum} FILTER (${isOurs}) IS DISTINCT FROM ${sum} FILTER (NOT ${isOurs}) ORDER BY height`,
      { height: int, isOurs: flag },
    );
    const [fork] = differing;
    if (fork !== undefined && fork.height <= tip.height - confirmations)
      throw new InputError(
        `block ${fork.height} differs between ${folder} and ${this.#name}; the last ${count(tip.height - fork.height + 1, 'block')} would have to be replaced, but this pull replaces only the last ${confirmations}`,
        [
          `If the chain was reorganised, pull with --confirmations ${tip.height - fork.height + 1} or more.`,
          `If it was not, check --from; or remove ${folder}, and pull again.`,
        ],
      );
    return differing.filter(({ isOurs }) => isOurs).length;
  }

  /** `from` is the first wanted height, `lowest` the first of the mirror. */
  #indexOf(files: RowFile[], runes: RowFile[], from: number, lowest: number): FolderIndex {
    const [ours, { tip, network, ends, spent, ...theirs }] = [this.#ours, this.theirs];
    const sources = joinSources([theirs.sources, ours.sources], [[Math.min(from, files[0]?.first ?? from), tip?.height ?? -1]]);
    const read = joinRuns(sources.flatMap(({ blocks }) => blocks)).filter(([, last]) => last >= lowest);
    const { mirrors: others = [] } = mirrorsUpTo(lowest - 1, ours.mirrors);
    const mirrors = [...others, { url: this.base, blocks: read.map(([a, b]): [number, number] => [Math.max(a, lowest), b]) }];
    return { version: 1, sources, tip, network, ends, mirrors, spent, runes, files };
  }
}

/** First height of the blocks of an index. Undefined if it has none. */
const beginOf = ({ sources, files }: RowsIndex): number | undefined => sources[0]?.blocks[0]?.[0] ?? files[0]?.first;

/** The index of a mirror, and its SHA-256, which the manifest has. */
type PublishedIndex = RowsIndex & { readonly sha256: string };

async function readTheirs(base: string, client: Client, limits: RowsLimits): Promise<PublishedIndex> {
  const manifest = await findManifest(base, client);
  if (manifest === undefined)
    throw new InputError(
      `${base} is not a mirror of this program: give a mirror, or save the answers of the server and build them with --input`,
    );
  if (manifest.rows === undefined)
    throw new InputError(`${base} publishes no rows: give another mirror, or ask its operator to build without --no-rows`);
  const { sha256 } = manifest.rows;
  const path = rowsIndexPath(sha256);
  const { status, body } = await client.get(`${base}/${path}`, (bytes) => bytes, INDEX_BYTES);
  if (body === undefined) throw new BadDataError(`answers ${path} with status ${status}`);
  if (createHash('sha256').update(body).digest('hex') !== sha256)
    throw new BadDataError(`has ${path} with other content than its manifest says`);
  const found = rowsIndex.safeParse(attempt(() => JSON.parse(new TextDecoder().decode(body))));
  const why = found.success ? impossible(found.data, manifest, limits) : 'is not a list of rows';
  if (found.success && why === undefined) return { ...found.data, sha256 };
  throw new InputError(`${base}/${path} ${why}`, [
    'No mirror of this program has such a list. Check that --from is a mirror to be trusted.',
  ]);
}

/**
 * Maximum number of heights above the last file of rows, and of all heights without a file. On no network were 100,000 blocks in a row
 * without runes since its first rune, and the sample has a gap of 1.2 million heights.
 */
const [MOST_ABOVE, MOST_WITHOUT] = [100_000, 2_000_000];

/** Describes the first impossible value in an index, such as too many rows. Returns undefined if there is none. */
function impossible(index: RowsIndex, manifest: Manifest, limits: RowsLimits): string | undefined {
  const { files, runes, tip, sources } = index;
  if (tip?.height !== manifest.tip?.height || tip?.hash !== manifest.tip?.hash)
    return `ends at block ${tip?.height} (${tip?.hash}), but the manifest at block ${manifest.tip?.height} (${manifest.tip?.hash})`;
  const last = tip?.height ?? -1;
  const wrong = impossibleManifest({ ...manifest, sources });
  if (wrong !== undefined) return wrong;
  if (files.length + runes.length > MOST_BLOCKS) return `has ${files.length + runes.length} files, more than ${MOST_BLOCKS}`;
  const sum = runes.reduce((total, { rows }) => total + rows, 0);
  const large = runes.find(({ first, last: end, rows, bytes }) => end < first || end > HIGHEST || bytes > mostBytes(rows, 1, limits));
  if (sum > MOST_RUNES || large !== undefined) return `has files of runes with ${sum} rows, which are too large or in no place`;
  const begin = beginOf(index) ?? 0;
  let [before, without] = [-1, last - begin + 1];
  for (const { first, last: end, rows, bytes } of files) {
    const what = `has a file of blocks ${first}..${end}`;
    if (first <= before || end < first || end > Math.min(hundredOf(first).last, last, HIGHEST))
      return `${what}, which is not a range within ${HEIGHTS_PER_FILE} blocks above ${before} and up to ${last}`;
    if (rows > MOST_RECORDS) return `${what} with ${rows} rows, more than ${MOST_RECORDS}`;
    if (bytes > mostBytes(rows, end - first + 1, limits)) return `${what} with ${bytes} bytes, too many for ${rows} rows`;
    [before, without] = [end, without - (end - first + 1)];
  }
  const above = last - Math.max(before, begin);
  if (above > MOST_ABOVE) return `ends ${above} blocks above its last file, more than ${MOST_ABOVE}`;
  if (without > MOST_WITHOUT) return `has no file for ${without} of its blocks, more than ${MOST_WITHOUT}`;
  const names = namesOf(index);
  return new Set(names).size < names.length ? 'names a file twice' : undefined;
}
