/** Makes chains in which blocks spend their own outputs. An independent model gives the expected answers about every output. */
import type { OutputToClassify } from '../../src/serve/client/client.d.ts';
import { hexOfId, parseBlock } from '../rehearsal/model/block.ts';
import { decimal, Model, type OutputAnswer } from '../rehearsal/model/model.ts';
import type { FakeBlock } from './fakeNode.ts';
import { hash256, outpointOf } from './memoryLedger.ts';
import { blockBytes, messageScript, type Transaction, taproot } from './runeBlocks.ts';
import { generateTransaction, memoryOf } from './runeChains.ts';

/** An output that a transaction of a chain created, with or without runes. */
export interface MadeOutput {
  readonly outpoint: string;
  readonly height: number;
  readonly blockHash: string;
}

/** Returns all outputs that the transactions of some blocks created. */
export const outputsMade = (blocks: readonly FakeBlock[]): MadeOutput[] =>
  blocks.flatMap(({ bytes, height, hash }) =>
    parseBlock(Buffer.from(bytes)).transactions.flatMap(({ id, scripts }) =>
      scripts.map((_, vout) => ({ outpoint: `${hexOfId(id)}:${vout}`, height, blockHash: hash })),
    ),
  );

/** Makes the block that follows the blocks `before`. Its time is random, so no two branches have the same block. */
function blockOf(before: readonly FakeBlock[], transactions: readonly Transaction[], draw: (below: number) => number): FakeBlock {
  const bytes = Buffer.from(blockBytes(before.length, transactions));
  bytes.writeUInt32LE(1_600_000_000 + draw(1e8), 68);
  Buffer.from(before.at(-1)?.hash ?? '00'.repeat(32), 'hex')
    .reverse()
    .copy(bytes, 4);
  return {
    hash: Buffer.from(hash256(bytes.subarray(0, 80)))
      .reverse()
      .toString('hex'),
    height: before.length,
    bytes,
  };
}

/** Returns these blocks and random blocks after them. Some transactions spend outputs of their own block. */
export function grown(blocks: readonly FakeBlock[], count: number, draw: (below: number) => number): FakeBlock[] {
  const all = [...blocks];
  const memory = memoryOf(blocks);
  const { ledger } = memory;
  for (let i = 0; i < count; i += 1) {
    const unspent = [...ledger.outputs.keys()].filter(() => draw(8) === 0);
    const ids = [...ledger.byId.values()].map(({ row }) => row.id);
    const first = Array.from({ length: all.length === 0 ? 0 : draw(5) }, () => generateTransaction(draw, unspent, ids));
    const fresh = outputsMade([blockOf(all, first, draw)])
      .map(({ outpoint }) => outpoint)
      .slice(1);
    const second = Array.from({ length: fresh.length > 0 ? draw(3) : 0 }, () => generateTransaction(draw, fresh, ids));
    const block = blockOf(all, [...first, ...second], draw);
    all.push(block);
    memory.add(block.bytes, block.height);
  }
  return all;
}

/** Returns a transaction whose inputs have no runes, and which gives one unit of a new rune to each of `count` outputs. */
export const airdrop = (count: number): Transaction => ({
  inputs: [{ outpoint: outpointOf('77'.repeat(32), count) }],
  // The message etches a rune with a premine. Its edict gives each output the same amount.
  outputs: [...Array.from({ length: count }, (_, i) => taproot(i % 8)), messageScript([2, 1, 6, count, 0, 0, 0, 1, count + 1])],
});

export const extendedBy = (
  blocks: readonly FakeBlock[],
  transactions: readonly Transaction[],
  draw: (below: number) => number,
): FakeBlock[] => [...blocks, blockOf(blocks, transactions, draw)];

/** Returns the independent model with these blocks applied. */
export function modelOf(blocks: readonly FakeBlock[]): Model {
  const model = new Model('regtest');
  for (const { bytes, height } of blocks) model.apply(Buffer.from(bytes), height);
  return model;
}

const runesOf = ({ held }: OutputAnswer) =>
  held.map(({ rune: { id, number, letters, spacedName, divisibility }, amount }) => ({
    rune: { id, number, name: letters, spaced_name: spacedName },
    balance: decimal(amount, divisibility),
  }));

/** Returns the expected answer for an output in dialect `hiro`, without the height and hash of the mirror's last block. */
export function answerAbout(outpoint: string, model: Model): object {
  const known = model.output(outpoint);
  if (known === null) return { output: outpoint, runes: [], spent: null };
  const { blockHash, height, txid, txIndex, timestamp } = known.location;
  return {
    output: outpoint,
    ...(known.address === null ? {} : { address: known.address }),
    location: { block_hash: blockHash, block_height: height, tx_id: txid, tx_index: txIndex, timestamp },
    ...(known.spent ? { runes: [], spent: true, held: runesOf(known) } : { runes: runesOf(known), spent: false }),
  };
}

/** Values that callers may give as the height of an output, though no output's block has such a height. */
export const NO_HEIGHTS = [0, -0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, null, '1', true] as unknown as readonly number[];

/**
 * Returns the expected result when a client classifies an output. `hasRows` is true for the height of a block with records. Clients cannot
 * know the hashes of other blocks.
 */
export function classAbout(
  { outpoint, height, blockHash }: OutputToClassify,
  model: Model,
  tip: number,
  hasRows: (height: number) => boolean,
): object {
  const known = model.output(outpoint);
  const isElsewhere = known !== null && known.location.height !== height;
  const isHeight = typeof height === 'number' && Number.isSafeInteger(height) && height > 0;
  if (!isHeight || height > tip || isElsewhere) return { outpoint, kind: 'unknown' };
  const isOther = blockHash !== undefined && (!hasRows(height) || model.block(height).hash !== blockHash);
  if (isOther) return { outpoint, kind: 'unknown' };
  if (known === null) return { outpoint, kind: 'none' };
  if (known.spent) return { outpoint, kind: 'spent' };
  return { outpoint, kind: 'runes', runes: runesOf(known), ...(known.address === null ? {} : { address: known.address }) };
}
