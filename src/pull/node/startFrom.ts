/**
 * Starts a pull from a node at the ledger of another mirror, as it was after a block B. Downloads the documents of
 * etchings and unspent outputs (format/documents.ts) from the mirror's archive. Then writes runes and unspent outputs,
 * as if the pull had read all blocks up to B.
 *
 * B must be a block of the node. The digest of the ledger and the sums of each rune reveal damaged files, but not a
 * false ledger, because the mirror itself computed the digest. So several mirrors can be given, which must have the
 * same digest. When the pull has reached the tip, locateStart.ts also asks the node for outputs. Neither check finds
 * wrong amounts, mints or names; verifyStart.ts does.
 */
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../../cli/log.ts';
import { count } from '../../cli/log.ts';
import type { Progress } from '../../cli/progress.ts';
import { openFile } from '../../contract/archiveFile.ts';
import { type Manifest, misfitOfRune } from '../../contract/schemas.ts';
import type { Start } from '../../contract/sources.ts';
import { replaceFile, writeNew } from '../../disk/replaceFile.ts';
import type { Store } from '../../duckdb/store.ts';
import { valuesIn } from '../../engine/archive/documentWriter.ts';
import { LedgerHash, levelsUpTo, newestOf } from '../../engine/archive/readLedger.ts';
import { ChangedArchiveError, readStored, StoredArchive } from '../../engine/archive/storedArchive.ts';
import { BuildError, emptyIfMissing, InputError } from '../../errors.ts';
import { isFileName } from '../../format/fileName.ts';
import type { LedgerPoint, ListTables } from '../../format/listTables.ts';
import { MOST_FILE } from '../../format/root.ts';
import type { WorkLimits } from '../../limits.ts';
import { mintedUnits, parseCounts, parseEtching } from '../../lists/parseEtching.ts';
import { archivePath } from '../../pages/filePaths.ts';
import type { Dialect } from '../../pages/mirrorOptions.ts';
import { CONFIRMATIONS } from '../../runes/indexBlock.ts';
import { NETWORKS } from '../../runes/networks.ts';
import { type RuneId, runeIdText } from '../../runes/runeId.ts';
import { removeState, startLedger } from '../../unspent/diskLedger.ts';
import { findManifest } from '../mirror/mirrorSource.ts';
import type { PullOptions } from '../pullBlocks.ts';
import { NEWEST_RUNES_FILE, RUNES_FILE, STATE_FOLDER, WORK_FOLDER } from '../pulledFiles.ts';
import { removeFiles } from '../writePulled.ts';
import type { Check } from './chosenOutputs.ts';
import { claimedOutputs, DAMAGES, idOf, isNatural, unitsOf } from './claimedOutputs.ts';
import type { BitcoinNode, ChainInfo } from './coreNode.ts';
import { RowFiles } from './rowFiles.ts';
import { type Donor, fetchRows, START_FOLDER, wrong } from './rowsOfStart.ts';
import { StartFiles } from './startFiles.ts';
import { ahead } from './workAhead.ts';

/** Returns the folder for the files of the mirror. */
const mirrorFolder = (folder: string): string => join(folder, START_FOLDER, 'mirror');

/** Returns the path of the file with the outputs to check. It exists until the node has been asked for them. */
export const outputsFile = (folder: string): string => join(folder, START_FOLDER, 'outputs.txt');

interface StartOptions extends Pick<PullOptions, 'wanted' | 'concurrency' | 'signal'> {
  /** Path of the folder `pulled`. */
  readonly folder: string;
  readonly chain: ChainInfo;
  readonly limits: WorkLimits;
  /** Outputs to choose for the check against the node. */
  readonly check: Check;
}

/** Maximum number of attempts to read the mirror. An attempt fails if a build replaces the mirror's files meanwhile. */
const MOST_ATTEMPTS = 3;

/**
 * Starts a new folder at the newest block for which all mirrors have a digest. If older blocks are wanted, fetches
 * their rows. After a kill, continues with the downloaded files. Throws an InputError if there is no such block, if the
 * digests differ, if the node does not have the block, or if the files of the first mirror do not match the digest.
 */
export async function startFrom(
  donors: readonly Donor[],
  options: StartOptions,
  node: BitcoinNode,
  store: Store,
  log: Log,
  progress: Progress,
): Promise<void> {
  const { folder, chain, wanted, limits } = options;
  const [first] = donors;
  if (first === undefined) return;
  for (let attempt = 1; ; attempt++) {
    const manifests: Manifest[] = [];
    for (const donor of donors) manifests.push(await manifestOf(donor, chain));
    const [manifest] = manifests;
    if (manifest?.archive === undefined) return;
    const point = commonPoint(donors, manifests);
    await checkNode(point, chain, node);
    const { firstHeight } = NETWORKS[chain.network];
    const from = Math.max(typeof wanted.from === 'number' ? wanted.from : point.height + 1, firstHeight);
    const hasRows = from <= point.height;
    log.info('starting', `Starting at block ${point.height} with the ledger of ${first.base}, digest ${point.digest}.`, { ...point });
    try {
      const archive = await download(first, manifest.archive, point, mirrorFolder(folder), options);
      if (archive === undefined) {
        if (attempt < MOST_ATTEMPTS) continue;
        throw new BuildError(`the files of ${first.base} were replaced ${attempt} times while they were read`, [
          'Run the same command again: it continues from here.',
        ]);
      }
      const { lists } = archive.root;
      if (lists === undefined) throw wrong(first, 'its archive has no lists');
      const donor: Ledger = { from: first, lists, dialect: manifest.dialect, archive, point, network: chain.network };
      // Builds read StartFiles instead of the rows of older blocks. A folder that has these rows needs no StartFiles.
      const files = hasRows ? undefined : new StartFiles(folder, store);
      const sums = await writeRunes(donor, files, options, store);
      const start: Start = { class: 'consistent', ...point, donors: donors.map(({ base }) => base) };
      let placed: Promise<void> | undefined;
      // Begins to convert the rows before the ledger is written, so that DuckDB works while the outputs are sorted.
      const outputs = outputsOf(donor, files, sums, options, () => {
        placed = files?.putInPlace();
        placed?.catch(() => undefined);
      });
      const rowsFrom = Math.min(from, point.height + 1);
      const state = join(folder, STATE_FOLDER);
      const ledger = { folder: state, network: chain.network, start, rowsFrom, outputs, mints: sums.mints, limits };
      const commit = await startLedger(ledger);
      await placed;
      if (hasRows) {
        const rows = { ...options, from, firstHeight, network: chain.network, point, folder };
        await fetchRows(first, manifest, rows, node, { store, log, progress }).catch((error: unknown) => {
          rmSync(state, { recursive: true });
          throw error;
        });
      }
      commit();
    } catch (error) {
      // The parsers throw these errors for an invalid document, such as one that is not JSON.
      if (DAMAGES.some((Damage) => error instanceof Damage)) throw wrong(first, 'a file of its archive has an invalid document');
      throw error;
    }
    log.info(
      'started',
      `Started at block ${point.height}: the ledger is as ${count(donors.length, 'mirror')} published it, and the block is on the chain of ${node.name}. Outputs are checked when the pull has reached the tip. Nothing checks amounts, mints and names.`,
      { height: point.height, class: 'consistent' },
    );
    return;
  }
}

/** Removes the downloaded files of a start. Removes also the file with the outputs to check, unless `keepsOutputs`. */
export function removeDownloads(folder: string, keepsOutputs: boolean): void {
  const path = join(folder, START_FOLDER);
  const names = keepsOutputs ? emptyIfMissing(() => readdirSync(path)) : [''];
  for (const name of names) if (join(path, name) !== outputsFile(folder)) rmSync(join(path, name), { recursive: true, force: true });
}

/** Removes the ledger and all pulled files, so that the next pull begins like the first one. */
export function discardStart(folder: string): void {
  removeState(join(folder, STATE_FOLDER));
  for (const name of readdirSync(folder))
    if (name !== STATE_FOLDER && name !== WORK_FOLDER) rmSync(join(folder, name), { recursive: true, force: true });
}

interface Ledger {
  readonly from: Donor;
  readonly lists: ListTables;
  readonly dialect: Dialect;
  readonly archive: StoredArchive;
  readonly point: LedgerPoint;
  readonly network: keyof typeof NETWORKS;
}

async function manifestOf(donor: Donor, chain: ChainInfo): Promise<Manifest> {
  const found = await findManifest(donor.base, donor.client);
  if (found === undefined) throw wrong(donor, 'it has no manifest of a mirror');
  if (found.archive === undefined || found.ledger === undefined)
    throw wrong(donor, 'it has no digest of its ledger; mirrors have one in layout archive, if their data is from a node');
  if (found.ledger.network !== chain.network) throw wrong(donor, `it is of the network ${found.ledger.network}, not ${chain.network}`);
  return found;
}

/** Returns the newest block for which all mirrors have a digest. Throws an InputError if a digest differs. */
function commonPoint(donors: readonly Donor[], manifests: readonly Manifest[]): LedgerPoint {
  const points = manifests.map(({ ledger }) => (ledger === undefined ? [] : [ledger, ledger.lower ?? ledger]));
  const common = points[0]?.find(({ height }) => points.every((others) => others.some((other) => other.height === height)));
  if (common === undefined)
    throw new InputError('the mirrors of --start-from have no block in common for which each has a digest of its ledger', [
      'One of them is behind. Try again later, or leave it out.',
    ]);
  const { height, hash, digest } = common;
  for (const [i, donor] of donors.entries()) {
    const other = points[i]?.find((point) => point.height === height);
    if (other?.digest !== digest)
      throw new InputError(`${donors[0]?.base} and ${donor.base} have different ledgers as of block ${height}`, [
        'At least one of them is wrong. Compare both with a mirror that you trust.',
      ]);
  }
  return { height, hash, digest };
}

/** Throws an InputError if the node does not have the block, or has pruned the blocks after it. */
async function checkNode({ height, hash }: LedgerPoint, chain: ChainInfo, node: BitcoinNode): Promise<void> {
  const found = await node.hashAt(height);
  if (found === undefined)
    throw new InputError(`${node.name} does not have block ${height} yet`, ['Wait until it has, then run the same command again.']);
  if (found !== hash)
    throw new InputError(`block ${height} of the mirror is not in the chain of ${node.name}: ${hash} instead of ${found}`, [
      'Start again from a newer height, or give another mirror with --start-from.',
    ]);
  // To check the etchings in the first blocks after the start, the pull also reads the last blocks up to the start: a
  // commitment that is only a few blocks older than its etching is too young.
  if (chain.firstStored > height + 2 - CONFIRMATIONS)
    throw new InputError(`${node.name} has pruned blocks after ${height}: the first block that it still has is ${chain.firstStored}`, [
      'Start again from a newer height, when the mirror has one, or use another node.',
    ]);
}

/**
 * Downloads the root of the archive and the documents of the ledger to `folder`, except files that the folder already
 * has completely. Returns undefined if the mirror no longer has a file.
 */
async function download(
  { base, client }: Donor,
  name: NonNullable<Manifest['archive']>,
  { height }: LedgerPoint,
  folder: string,
  { concurrency, signal }: StartOptions,
): Promise<StoredArchive | undefined> {
  const fetchFile = async (file: string): Promise<boolean> => {
    signal.throwIfAborted();
    const path = join(folder, archivePath(file));
    if (existsSync(path) && isComplete(folder, file)) return true;
    const { body } = await client.getBytes(`${base}/${archivePath(file)}`, MOST_FILE);
    if (body === undefined || openFile(file, Buffer.from(body.buffer, body.byteOffset, body.length)) === undefined) return false;
    mkdirSync(join(path, '..'), { recursive: true });
    replaceFile(path, (temporary) => writeNew(temporary, body));
    return true;
  };
  if (!(await fetchFile(name.root))) return undefined;
  const archive = new StoredArchive(folder, name);
  const { etchings, outputs } = levelsUpTo(height, archive.root.lists);
  const files = [...etchings, ...outputs].flatMap((level) => level.files.map(({ file }) => file));
  // The names become paths on this machine, so a wrong name could lead outside of the folder.
  if (!files.every(isFileName)) throw new ChangedArchiveError('the root names a file whose name is invalid');
  for await (const isThere of ahead(0, files.length - 1, concurrency, (i) => fetchFile(files[i] ?? ''))) if (!isThere) return undefined;
  return archive;
}

function isComplete(folder: string, file: string): boolean {
  try {
    readStored(folder, file);
    return true;
  } catch (error) {
    if (error instanceof ChangedArchiveError) return false;
    throw error;
  }
}

/** Sums of the runes. `hash` covers the runes of the ledger; the outputs are added later. */
interface RuneSums {
  readonly mints: Map<RuneId, number>;
  /** Number of units that all unspent outputs of a rune must have together: premine and mints minus burns. */
  readonly supply: Map<RuneId, bigint>;
  readonly hash: LedgerHash;
}

/** Writes the table of runes. Adds the counts of mints and burns of each rune to `files`. */
async function writeRunes(
  { lists, dialect, archive, point, network }: Ledger,
  files: StartFiles | undefined,
  { folder, limits }: StartOptions,
  store: Store,
): Promise<RuneSums> {
  // A killed start may have left a table, to which `RowFiles` would add the rows.
  removeFiles(folder, [{ path: RUNES_FILE }, { path: NEWEST_RUNES_FILE }]);
  const rows = new RowFiles(folder, limits, store);
  const sums: RuneSums = { mints: new Map(), supply: new Map(), hash: new LedgerHash(network, point) };
  let number = 0;
  for await (const line of newestOf(levelsUpTo(point.height, lists).etchings, archive)) {
    const [json = ''] = valuesIn(line);
    const rune = parseEtching(json, dialect);
    const counts = parseCounts(json);
    const { mints, burns, burned } = counts;
    sums.hash.addRune(rune, counts);
    if (!isPossible(rune, point.height) || rune.number !== number++ || ![mints, burns].every(isNatural))
      throw new ChangedArchiveError(`the rune ${number} is missing or not valid`);
    const big = (digits: string | null) => (digits === null ? null : BigInt(digits));
    rows.addRune({
      ...{ id: rune.id, number: rune.number, name: rune.name, spaced_name: rune.spaced_name, block_hash: rune.block_hash },
      ...{ block_height: rune.block_height, tx_index: rune.tx_index, tx_id: rune.tx_id, divisibility: rune.divisibility },
      ...{ premine: BigInt(rune.premine), symbol: rune.symbol, turbo: rune.turbo, timestamp: rune.timestamp },
      ...{ terms_amount: big(rune.terms_amount), terms_cap: big(rune.terms_cap) },
      ...{ terms_height_start: big(rune.terms_height_start), terms_height_end: big(rune.terms_height_end) },
      ...{ terms_offset_start: big(rune.terms_offset_start), terms_offset_end: big(rune.terms_offset_end) },
      // Unknown, because the documents of an archive do not have this field.
      cenotaph: null,
    });
    const { height, hash, digest } = point;
    const minted = mintedUnits(rune, mints);
    files?.addRune({
      ...{ rune_id: rune.id, mints, minted, burns, burned: unitsOf(String(burned)) },
      ...{ start_height: height, start_hash: hash, start_digest: digest },
    });
    if (mints > 0) sums.mints.set(idOf(rune.id), mints);
    sums.supply.set(idOf(rune.id), BigInt(rune.premine) + minted - burned);
  }
  await rows.putInPlace(point.height, point.height);
  return sums;
}

/** True if the values are possible for a rune that was etched up to block `height`. */
function isPossible(rune: ReturnType<typeof parseEtching>, height: number): boolean {
  const { name, block_hash, tx_id, block_height, tx_index, timestamp } = rune;
  const hasPlace = [tx_index, timestamp].every(isNatural) && block_height <= height && HASH.test(block_hash);
  return hasPlace && /^(?:[0-9a-f]{64})?$/.test(tx_id) && /^[A-Z]{1,28}$/.test(name) && misfitOfRune(rune) === undefined;
}

const HASH = /^[0-9a-f]{64}$/;

/**
 * Yields the unspent outputs for the ledger, and adds them to `files`. After the last output, checks the digest and the
 * sums, and then calls `onChecked`. Throws an InputError if the digest differs, or if the outputs of a rune have more
 * or fewer units than its supply. Throws the reason of `signal` when it aborts.
 */
async function* outputsOf(
  { from, lists, point, network }: Ledger,
  files: StartFiles | undefined,
  { supply, hash }: RuneSums,
  { folder, check, limits, signal }: StartOptions,
  onChecked: () => void,
): AsyncGenerator<Uint8Array> {
  const { etchings, outputs } = lists;
  const task = { folder: mirrorFolder(folder), lists: { etchings, outputs }, point, network, supply };
  const chosen = { check, chosen: outputsFile(folder), needsRows: files !== undefined };
  let wrongRune: readonly [RuneId, bigint] | undefined;
  for await (const { ledger, csv, rows, outputs, lacking } of claimedOutputs({ ...task, ...chosen }, limits)) {
    signal.throwIfAborted();
    hash.addLines(ledger);
    files?.addOutputs(csv, rows);
    yield outputs;
    wrongRune ??= lacking;
  }
  const digest = hash.digest();
  if (digest !== point.digest) throw wrong(from, `its files have the digest ${digest} instead of ${point.digest}`);
  if (wrongRune !== undefined) {
    const [rune, units] = wrongRune;
    throw wrong(from, `the outputs of rune ${runeIdText(rune)} lack ${units} units of its premine, mints and burns`);
  }
  onChecked();
}
