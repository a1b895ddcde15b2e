/**
 * Starts a pull from a node at the ledger of another mirror: downloads the documents of etchings and unspent outputs
 * after a block B from its archive, and writes the runes and the unspent outputs as if all blocks up to B had been read.
 *
 * The digest of the ledger and the sums of each rune find damage, and B must be a block of the node. But the digest is
 * the mirror's own. When the pull has reached the tip, locateStart.ts asks the node for outputs. A mirror that lies
 * about amounts, mints or names is not found. Several mirrors must have the same digest.
 */
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../../cli/log.ts';
import { count } from '../../cli/log.ts';
import type { Progress } from '../../cli/progress.ts';
import { openFile } from '../../contract/archiveFile.ts';
import type { Manifest } from '../../contract/schemas.ts';
import type { Start } from '../../contract/sources.ts';
import { replaceFile, writeNew } from '../../disk/replaceFile.ts';
import type { Store } from '../../duckdb/store.ts';
import { digestOf, levelsUpTo, newestOf } from '../../engine/archive/ledgerDigest.ts';
import { ChangedArchiveError, readStored, StoredArchive } from '../../engine/archive/storedArchive.ts';
import { BuildError, emptyIfMissing, InputError } from '../../errors.ts';
import { isFileName } from '../../format/fileName.ts';
import type { LedgerPoint, ListTables } from '../../format/listTables.ts';
import type { WorkLimits } from '../../limits.ts';
import { mintedUnits, parseCounts, parseEtching } from '../../lists/parseEtching.ts';
import { parseOutput } from '../../lists/unspentOutputs.ts';
import { archivePath } from '../../pages/filePaths.ts';
import type { Dialect } from '../../pages/mirrorOptions.ts';
import { scriptOfAddress } from '../../runes/address.ts';
import { CONFIRMATIONS } from '../../runes/indexBlock.ts';
import { NETWORKS } from '../../runes/networks.ts';
import { type RuneId, runeId, runeIdText } from '../../runes/runeId.ts';
import type { NewOutput } from '../../runes/unspentLedger.ts';
import { removeState, startLedger } from '../../unspent/diskLedger.ts';
import { findManifest } from '../mirror/mirrorSource.ts';
import type { PullOptions } from '../pullBlocks.ts';
import { RUNES_FILE, STATE_FOLDER, WORK_FOLDER } from '../pulledFiles.ts';
import type { BitcoinNode, ChainInfo } from './coreNode.ts';
import { hash256 } from './hash256.ts';
import { type Check, type ClaimedOutput, choosing, outpointBytes } from './locateStart.ts';
import { RowFiles } from './rowFiles.ts';
import { type Donor, fetchRows, START_FOLDER, wrong } from './rowsOfStart.ts';
import { StartFiles } from './startFiles.ts';
import { ahead } from './workAhead.ts';

/** Subfolder of it for the files of the mirror. */
const MIRROR_FOLDER = 'mirror';

/** Returns the path of the outputs to check. The file exists until they are checked. */
export const outputsFile = (folder: string): string => join(folder, START_FOLDER, 'outputs.txt');

interface StartOptions extends Pick<PullOptions, 'wanted' | 'concurrency' | 'signal'> {
  /** The folder `pulled`. */
  readonly folder: string;
  readonly chain: ChainInfo;
  readonly limits: WorkLimits;
  /** Which outputs to choose for a check by the node. */
  readonly check: Check;
}

/** Attempts to read a mirror that a build replaces meanwhile. */
const MOST_ATTEMPTS = 3;

/**
 * Starts a new folder. Throws an InputError if the mirrors have no common block with equal digests, if the node does
 * not have this block, or if the first mirror's files are not the ledger of its digest. If older blocks are wanted,
 * fetches their rows. A killed start continues with the downloaded files.
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
  node.checkRest('a start asks for outputs');
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
      const archive = await download(first, manifest.archive, point, join(folder, START_FOLDER, MIRROR_FOLDER), options);
      if (archive === undefined) {
        if (attempt < MOST_ATTEMPTS) continue;
        throw new BuildError(`the files of ${first.base} were replaced ${attempt} times while they were read`, [
          'Run the same command again: it continues from here.',
        ]);
      }
      const { lists } = archive.root;
      if (lists === undefined) throw wrong(first, 'its archive has no lists');
      const donor: Ledger = { from: first, lists, dialect: manifest.dialect, archive, point, network: chain.network };
      const digest = await digestOf(chain.network, point, lists, manifest.dialect, archive);
      if (digest !== point.digest) throw wrong(first, `its files have the digest ${digest} instead of ${point.digest}`);
      if (hasRows) {
        const rows = { ...options, from, firstHeight, network: chain.network, point, folder };
        await fetchRows(first, manifest, rows, node, { store, log, progress });
      }
      // With the rows of older blocks, a build needs no ledger to begin with.
      const files = hasRows ? undefined : new StartFiles(folder, store);
      const { mints, supply } = await writeRunes(donor, files, folder, store);
      const start: Start = { class: 'consistent', ...point, donors: donors.map(({ base }) => base) };
      const outputs = choosing(outputsOf(donor, files, supply), outputsFile(folder), options.check, limits);
      const rowsFrom = Math.min(from, point.height + 1);
      await startLedger({ folder: join(folder, STATE_FOLDER), network: chain.network, start, rowsFrom, outputs, mints, limits });
    } catch (error) {
      // Errors of these kinds mean that the text of a file is not what a build writes.
      if (error instanceof ChangedArchiveError || error instanceof SyntaxError || error instanceof TypeError || error instanceof RangeError)
        throw wrong(first, 'a file has a document that no build writes');
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

/** Removes the downloaded files of a start; and the outputs to check, unless `keepsOutputs`. */
export function removeDownloads(folder: string, keepsOutputs: boolean): void {
  const path = join(folder, START_FOLDER);
  const names = keepsOutputs ? emptyIfMissing(() => readdirSync(path)) : [''];
  for (const name of names) if (join(path, name) !== outputsFile(folder)) rmSync(join(path, name), { recursive: true, force: true });
}

/** Removes everything that follows from a start, so that the next pull starts anew. */
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
    throw wrong(donor, 'only a mirror of a node in layout archive has a digest of its ledger');
  if (found.ledger.network !== chain.network) throw wrong(donor, `it is of the network ${found.ledger.network}, not ${chain.network}`);
  return found;
}

/** Returns the newest block for which all mirrors have a digest. Throws an InputError if a digest differs. */
function commonPoint(donors: readonly Donor[], manifests: readonly Manifest[]): LedgerPoint {
  const points = manifests.map(({ ledger }) => (ledger === undefined ? [] : [ledger, ledger.lower ?? ledger]));
  const common = points[0]?.find(({ height }) => points.every((others) => others.some((other) => other.height === height)));
  if (common === undefined)
    throw new InputError('the mirrors of --start-from have no digest of the ledger after the same block', [
      'One of them is behind. Try again later, or leave it out.',
    ]);
  const { height, hash, digest } = common;
  for (const [i, donor] of donors.entries()) {
    const other = points[i]?.find((point) => point.height === height);
    if (other?.digest !== digest)
      throw new InputError(`${donors[0]?.base} and ${donor.base} have different ledgers after block ${height}`, [
        'At least one of them is wrong. Compare both with a mirror that you trust.',
      ]);
  }
  return { height, hash, digest };
}

/** Throws an InputError if the node does not have the block, or not the blocks after it. */
async function checkNode({ height, hash }: LedgerPoint, chain: ChainInfo, node: BitcoinNode): Promise<void> {
  const found = await node.hashAt(height);
  if (found === undefined)
    throw new InputError(`${node.name} does not have block ${height} yet`, ['Wait until it has, then run the same command again.']);
  if (found !== hash)
    throw new InputError(`block ${height} of the mirror is not in the chain of ${node.name}: ${hash} instead of ${found}`, [
      'Start again from a newer height, or give another mirror with --start-from.',
    ]);
  // An etching needs the blocks in which its commitment would be too young.
  if (chain.firstStored > height + 2 - CONFIRMATIONS)
    throw new InputError(`${node.name} has pruned blocks after ${height}: its first block is ${chain.firstStored}`, [
      'Start again from a newer height, when the mirror has one, or use another node.',
    ]);
}

/**
 * Downloads the root and the documents of the ledger to `folder`, except files that are already there. Returns
 * undefined if the mirror no longer has a file.
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
    const { body } = await client.getBytes(`${base}/${archivePath(file)}`);
    if (body === undefined || openFile(file, Buffer.from(body.buffer, body.byteOffset, body.length)) === undefined) return false;
    mkdirSync(join(path, '..'), { recursive: true });
    replaceFile(path, (temporary) => writeNew(temporary, body));
    return true;
  };
  if (!(await fetchFile(name.root))) return undefined;
  const archive = new StoredArchive(folder, name);
  const { etchings, outputs } = levelsUpTo(height, archive.root.lists);
  const files = [...etchings, ...outputs].flatMap((level) => level.files.map(({ file }) => file));
  // Names become paths of this machine.
  if (!files.every(isFileName)) throw new ChangedArchiveError('the root names a file that no archive has');
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

/** Mints of each rune, and its units in all unspent outputs. */
interface RuneSums {
  readonly mints: Map<RuneId, number>;
  readonly supply: Map<RuneId, bigint>;
}

/** Writes the table of runes, and their counts to `files`. */
async function writeRunes(
  { lists, dialect, archive, point }: Ledger,
  files: StartFiles | undefined,
  folder: string,
  store: Store,
): Promise<RuneSums> {
  // A killed start may have left a table, and `RowFiles` adds rows to a table.
  for (const path of [RUNES_FILE, `${RUNES_FILE}.sha256`]) rmSync(join(folder, path), { force: true });
  const rows = new RowFiles(folder, store);
  const sums: RuneSums = { mints: new Map(), supply: new Map() };
  let number = 0;
  for await (const { values } of newestOf(levelsUpTo(point.height, lists).etchings, archive)) {
    const [json = ''] = values;
    const rune = parseEtching(json, dialect);
    const { mints, burns, burned } = parseCounts(json);
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
      // No answer has this column, so no archive has it.
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
  await rows.putInPlace(point.height);
  return sums;
}

const isNatural = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;

/** True for texts and numbers that a rune up to block `height` can have. Values of other kinds throw a TypeError. */
function isPossible(
  { name, block_hash, tx_id, block_height, tx_index, timestamp }: ReturnType<typeof parseEtching>,
  height: number,
): boolean {
  const hasPlace = [tx_index, timestamp, block_height].every(isNatural) && block_height <= height;
  return hasPlace && /^[A-Z]{1,28}$/.test(name) && /^[0-9a-f]{64}$/.test(block_hash) && /^(?:[0-9a-f]{64})?$/.test(tx_id);
}

function unitsOf(text: string): bigint {
  if (!/^[0-9]{1,39}$/.test(text)) throw new ChangedArchiveError(`${JSON.stringify(text.slice(0, 64))} is not an amount`);
  return BigInt(text);
}

function idOf(text: string): RuneId {
  const [, block, tx] = /^([0-9]{1,9}):([0-9]{1,6})$/.exec(text) ?? [];
  if (block === undefined || tx === undefined) throw new ChangedArchiveError(`${JSON.stringify(text.slice(0, 64))} is not a rune id`);
  return runeId(Number(block), Number(tx));
}

/**
 * Yields the unspent outputs. Writes them to `files`, and puts the files in place after the last output. Throws an
 * InputError if the outputs of a rune have more or fewer units than its premine and mints without its burns, which are
 * `supply`.
 */
async function* outputsOf(
  { from, lists, archive, point, network }: Ledger,
  files: StartFiles | undefined,
  supply: Map<RuneId, bigint>,
): AsyncGenerator<NewOutput & ClaimedOutput> {
  for await (const { key: name, values } of newestOf(levelsUpTo(point.height, lists).outputs, archive)) {
    const output = parseOutput(name, values);
    if (output === undefined) continue;
    const { address, place } = output;
    const [height, hash, txIndex, timestamp] = place;
    const script = address === undefined ? new Uint8Array() : scriptOfAddress(address, NETWORKS[network], hash256);
    const hasPlace = [height, txIndex, timestamp].every(isNatural) && height <= point.height && /^[0-9a-f]{64}$/.test(hash);
    if (!hasPlace || !/^[0-9a-f]{64}:(?:0|[1-9][0-9]{0,9})$/.test(name) || script === undefined)
      throw new ChangedArchiveError(`the output ${name.slice(0, 100)} is not valid`);
    const balances = output.runes
      .map(([id, , , , , units]) => ({ rune: idOf(id), amount: unitsOf(units) }))
      .sort((a, b) => a.rune - b.rune);
    for (const { rune, amount } of balances) supply.set(rune, (supply.get(rune) ?? 0n) - amount);
    const location = { block_height: height, block_hash: hash, tx_index: txIndex, timestamp };
    for (const [rune_id, , , , , units] of output.runes)
      files?.addOutput({ outpoint: name, ...location, address: address ?? null, rune_id, units });
    yield { name, height, address: address ?? '-', outpoint: outpointBytes(name), script, balances };
  }
  for (const [rune, units] of supply)
    if (units !== 0n) throw wrong(from, `the outputs of rune ${runeIdText(rune)} lack ${units} units of its premine, mints and burns`);
  await files?.putInPlace();
}
