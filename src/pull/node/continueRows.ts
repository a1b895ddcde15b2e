/**
 * Makes the ledger of a pull from the rows in the folder `pulled`: those of a mirror, which the node then continues, or those of a pull
 * that lost its ledger. The ledger ends with the last hundred of settled blocks (`confirmations`). Rows above it are removed and their
 * blocks read from the node, so a fork among them needs no other care.
 */
import { join } from 'node:path';
import { attempt } from '../../attempt.ts';
import { count } from '../../cli/log.ts';
import { type FolderIndex, type RowFile, rowsName } from '../../contract/rowsSchemas.ts';
import { joinRuns } from '../../contract/sources.ts';
import { readFiles } from '../../duckdb/readFilesSql.ts';
import { rowParts } from '../../duckdb/sortedRows.ts';
import { int, type Store, text } from '../../duckdb/store.ts';
import { InputError } from '../../errors.ts';
import type { Limits } from '../../limits.ts';
import { checkFile, commitIndex, readIndex, wholeUpTo } from '../../rows/rowsFolder.ts';
import { HEIGHTS_PER_FILE, hundredOf } from '../../rows/rowsForm.ts';
import type { Network } from '../../runes/networks.ts';
import type { RuneId } from '../../runes/runeId.ts';
import { settledLedger } from '../../unspent/diskLedger.ts';
import { entryOf } from '../../unspent/entries.ts';
import { checkNetwork, STATE_FOLDER, workFile } from '../pulledFiles.ts';
import type { PullOptions, Tools } from '../pullOptions.ts';
import { type Check, ChosenOutputs } from './checkOutputs.ts';
import type { BitcoinNode, ChainInfo } from './coreNode.ts';
import { indexUpTo } from './nodeFolder.ts';
import { idOf, outputOf } from './replayRows.ts';
import type { RowFiles } from './rowFiles.ts';

/** Number of blocks whose headers are in memory at once, and bytes of memory that DuckDB needs to sort a row of an output. */
const [HEIGHTS_AT_ONCE, OUTPUT_BYTES] = [20 * HEIGHTS_PER_FILE, 1024];

interface Continuing extends Pick<PullOptions, 'folder' | 'confirmations'> {
  readonly index: FolderIndex;
  readonly network: Network;
  readonly chain: ChainInfo;
  readonly check: Check;
  readonly limits: Limits;
}

/** True if the ledger can be made from the folder: it has rows from the first block with runes on. */
export function hasAllRows(folder: string, network: Network): boolean {
  const index = attempt(() => readIndex(folder));
  return index !== undefined && index.files.length > 0 && isFromNodes(index) && firstRun(index)[0] <= network.firstHeight;
}

const isFromNodes = ({ spent, sources }: FolderIndex): boolean =>
  spent && sources.length > 0 && sources.every(({ rules }) => rules === 'ord');

/** The first range of blocks that were read without a gap. */
const firstRun = ({ sources }: FolderIndex): readonly [first: number, last: number] =>
  joinRuns(sources.flatMap(({ blocks }) => blocks))[0] ?? [0, -1];

/**
 * Makes the ledger. Removes the rows of a folder without settled blocks, so that the pull reads all of them. Throws an InputError, before
 * it changes anything, for rows that the node cannot continue.
 */
export async function continueRows(
  continuing: Continuing,
  node: BitcoinNode,
  rows: RowFiles,
  { store, log, progress }: Tools,
): Promise<void> {
  const { folder, index, network, chain, confirmations, check, limits } = continuing;
  if (!isFromNodes(index))
    throw new InputError(`${folder} has blocks of another source`, [
      `Blocks from a node do not continue them. Give another folder with --to, or remove ${folder}.`,
    ]);
  const [[first, top], { firstHeight }] = [firstRun(index), network];
  if (first > firstHeight)
    throw new InputError(
      `${folder} has rows from block ${first} on, but a node can continue only rows from block ${firstHeight} on: older blocks made outputs that newer ones spend`,
      [
        `Pull all rows of a mirror: pull --blocks ${firstHeight}.. with another --to.`,
        'Or follow the mirror itself. Builds of its newest rows have no balances, holders, outputs and counts of mints.',
      ],
    );
  checkNetwork(index.network, chain.network, node.name, folder);
  const newest = Math.min(top, Math.max(top, chain.blocks) - confirmations);
  const height = wholeUpTo({ files: index.files, runes: [] }, hundredOf(newest + 1).first - 1);
  const settled = index.files.filter(({ last }) => last <= height);
  if (settled.length === 0) return;
  if (chain.blocks < height)
    throw new InputError(`${node.name} has blocks up to ${chain.blocks}, but ${folder} has rows up to ${top}`, [
      'Run the pull again when the node has more blocks, or check --from.',
    ]);
  const next = await node.hashAt(height + 1);
  // Making the ledger takes long. If the node has pruned the block after it, this throws before that.
  if (next !== undefined) await node.readBlock(next, height + 1);
  progress.begin('rows');
  for (const [i, file] of settled.entries()) {
    progress.show(i, settled.length, 'files');
    await checkFile(folder, 'files', file);
  }
  progress.end();
  await checkBlocks(folder, settled, node, store);
  const paths = settled.map((file) => join(folder, rowsName('files', file)));
  const state = join(folder, STATE_FOLDER);
  const chosen = new ChosenOutputs(state, check, limits);
  const end = { height, hash: (await node.hashAt(height)) ?? '', network: chain.network, rowsFrom: firstHeight };
  const mints = await store.rows(
    `SELECT rune_id AS id, count(*) AS mints FROM ${readFiles('parquet', paths)} WHERE operation = 'mint' GROUP BY rune_id`,
    { id: text, mints: int },
  );
  const commit = await settledLedger({
    ...{ ...end, folder: state, limits },
    outputs: unspentIn(paths, continuing, chosen, store),
    most: await store.number(`SELECT count(*) AS number FROM ${readFiles('parquet', paths)} WHERE operation = 'receive'`),
    mints: new Map(mints.map((rune) => [idOf(rune.id), rune.mints])),
  });
  chosen.end();
  // A mirror may have all runes in one file, which cannot be cut at a block.
  const isDivided = index.runes.every(({ first, last }) => last <= hundredOf(first).last);
  const runes = isDivided ? index.runes : await rows.divideRunes(index.runes);
  // After a kill between these commits, the next pull makes the ledger again, from the same rows.
  commitIndex(folder, indexUpTo({ ...index, runes }, end), workFile(folder, '.json'));
  commit();
  const outputs = chosen.seen;
  log.info('continued', `Made the ledger of ${count(outputs, 'unspent output')} from the rows up to block ${height}.`, { height, outputs });
}

/** Throws an InputError if a block in the rows has another hash or time than in the headers of the node. */
async function checkBlocks(folder: string, files: readonly RowFile[], node: BitcoinNode, store: Store): Promise<void> {
  const [first, last] = [files[0]?.first ?? 0, files.at(-1)?.last ?? -1];
  for (let begin = first; begin <= last; begin += HEIGHTS_AT_ONCE) {
    const end = Math.min(begin + HEIGHTS_AT_ONCE - 1, last);
    const paths = files.filter((file) => file.first <= end && begin <= file.last).map((file) => join(folder, rowsName('files', file)));
    if (paths.length === 0) continue;
    const headers = await node.headers(begin, end);
    const blocks = await store.rows(
      `SELECT DISTINCT block_height AS height, block_hash AS hash, "timestamp" AS time FROM ${readFiles('parquet', paths)}
       WHERE block_height BETWEEN ${begin} AND ${end} ORDER BY height`,
      { height: int, hash: text, time: int },
    );
    const other = blocks.find(({ height, hash, time }) => headers[height - begin]?.hash !== hash || headers[height - begin]?.time !== time);
    if (other !== undefined)
      throw new InputError(`${folder} has rows of block ${other.height} (${other.hash}), which ${node.name} does not have`, [
        `Check --from. If the node is right, remove ${folder} and pull from another mirror.`,
      ]);
  }
}

/** SQL expression of a byte of a transaction id in hex. The ledger has the bytes in the order of blocks, the reverse of the text. */
const byteOf = (txId: string, byte: number): string => `substr(${txId}, ${63 - 2 * byte}, 2)`;

/** SQL expression of the 36 bytes of an outpoint in hex, by which the ledger is sorted. */
const keyOf = (txId: string, output: string): string =>
  `${Array.from({ length: 32 }, (_, i) => byteOf(txId, i)).join(' || ')} || ` +
  `printf('%02x%02x%02x%02x', ${[0, 8, 16, 24].map((bits) => `((${output} >> ${bits}) & 255)::INTEGER`).join(', ')})`;

/** SQL expression of the first four bytes of the key, by which rows are divided: many more rows are divided than sorted. */
const placeOf = (txId: string): string => `('0x' || ${[0, 1, 2, 3].map((byte) => byteOf(txId, byte)).join(' || ')})::UINTEGER`;

/** Yields the unspent outputs in parts, ascending by outpoint. Also adds them to `chosen`. */
async function* unspentIn(
  paths: readonly string[],
  { network, folder, limits }: Continuing,
  chosen: ChosenOutputs,
  store: Store,
): AsyncGenerator<readonly Buffer[]> {
  const from = `FROM ${readFiles('parquet', paths)}`;
  const rows = `SELECT ${placeOf('tx_id')} AS place, false AS is_spent, tx_id || ':' || "output" AS name, block_height, address, rune_id, amount
      ${from} WHERE operation = 'receive' AND "output" IS NOT NULL
    UNION ALL BY NAME SELECT ${placeOf('one')} AS place, true AS is_spent, split_part(one, ':', 1) || ':' || split_part(one, ':', 2) AS name
      FROM (SELECT unnest(string_split(spent, ',')) AS one ${from} WHERE spent IS NOT NULL)`;
  let open: { key: string; name: string; height: number; address: string; units: Map<RuneId, bigint> } | undefined;
  let entries: Buffer[] = [];
  const endOutput = (): void => {
    if (open === undefined) return;
    const { key, name, height, address, units } = open;
    chosen.add({ name, height, address: address || '-' });
    entries.push(entryOf(Buffer.from(key, 'hex'), outputOf(address, units, network, folder)));
  };
  for await (const part of rowParts({ rows, key: 'place', hashEnd: 2 ** 32, rowBytes: OUTPUT_BYTES }, limits, store)) {
    const unspent = `SELECT ${keyOf('name', "split_part(name, ':', 2)::BIGINT")} AS key, name, block_height, coalesce(address, ''), rune_id, amount
      FROM (FROM (${part}) WHERE NOT is_spent) ANTI JOIN (FROM (${part}) WHERE is_spent) USING (name) ORDER BY key`;
    for await (const chunk of store.stream(unspent)) {
      for (const [key, name, height, address, rune, amount] of chunk.getRows()) {
        if (open === undefined || key !== open.key) {
          endOutput();
          open = { key: String(key), name: String(name), height: Number(height), address: String(address), units: new Map() };
        }
        const id = idOf(String(rune));
        open.units.set(id, (open.units.get(id) ?? 0n) + BigInt(String(amount)));
      }
      yield entries;
      entries = [];
    }
  }
  endOutput();
  yield entries;
}
