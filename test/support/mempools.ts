/** Makes random mempools that follow a random chain. Computes their effect on runes with an independent model, and with the client. */
import { join } from 'node:path';
import { expect } from 'vitest';
import { hashText, outpointText } from '../../src/runes/bytes.ts';
import type { PreviousOutput } from '../../src/runes/indexBlock.ts';
import { readBlock, scriptOf } from '../../src/runes/parseBlock.ts';
import {
  type ClassifiedOutput,
  Mirror,
  type OutputToClassify,
  type PendingAmount,
  type PendingAnswer,
  type PendingTransaction,
  type RawTransaction,
} from '../../src/serve/client/mirrorClient.ts';
import { type MirrorReads, pendingRunes } from '../../src/serve/client/pending.ts';
import { compact } from '../rehearsal/blockWriter.ts';
import { ChainMaker, ROWS_PER_BLOCK } from '../rehearsal/chain.ts';
import { Model, type TransactionRows } from '../rehearsal/model/model.ts';
import { temporaryFolder, testBuild, writeFiles } from './build.ts';
import { clientIn } from './builtClient.ts';
import { fetchOver, readFiles } from './lyingHost.ts';
import { hash256, sealed } from './memoryLedger.ts';
import { filesOf } from './modelRows.ts';

/**
 * One movement of runes in a transaction: an output receives runes, or runes burn. The text has operation, rune, output, address and units,
 * but nothing that depends on the position in the block. Movements from the model and the client have the same form.
 */
type Move = string;

/** An unconfirmed transaction. */
export interface RawPending {
  readonly txid: string;
  readonly bytes: Buffer;
  readonly inputs: readonly string[];
}

/** Splits the bytes of a block into transactions. */
function transactionsOf(bytes: Buffer): RawPending[] {
  const { txids, transactions, inputs } = readBlock(bytes, hash256);
  return transactions.map(({ start, firstInput, inputs: count }, index) => ({
    txid: hashText(txids, 32 * index),
    bytes: bytes.subarray(start, transactions[index + 1]?.start),
    inputs: Array.from({ length: count }, (_, i) => outpointText(bytes, inputs[firstInput + i])),
  }));
}

/** Splits a raw transaction into its parts. */
function pendingOf(bytes: Buffer): RawPending {
  const [one] = transactionsOf(blockOf([bytes], '00'.repeat(32)));
  if (one === undefined) throw new Error('no transaction');
  return one;
}

/** Makes a block of these transactions. */
function blockOf(transactions: readonly Uint8Array[], previous: string): Buffer {
  const parts = [new Uint8Array(68), Uint8Array.of(0, 0xf1, 0x53, 0x65), new Uint8Array(8), compact(transactions.length), ...transactions];
  return Buffer.from(sealed(Buffer.concat(parts), Buffer.from(previous, 'hex').reverse()));
}

export class MempoolChain {
  readonly model: Model;
  readonly #maker: ChainMaker;
  readonly tip: number;
  readonly lastBlock: readonly RawPending[];
  hash = '00'.repeat(32);
  readonly hashes: string[] = [];
  /** Heights and scripts of all outputs of the chain, by outpoint. */
  readonly outputs = new Map<string, PreviousOutput>();
  /** Heights of blocks with runes. */
  readonly #heights: ReadonlySet<number>;
  /** Transactions of the chain with rows. */
  readonly transactions: readonly TransactionRows[];
  /** Those of the blocks that were applied last. */
  #rows: TransactionRows[] = [];

  /** Makes a chain with at least this many blocks. The last block has runes. */
  constructor(seed: number, blocks: number) {
    this.#maker = new ChainMaker({ seed, blocks, rows: ROWS_PER_BLOCK, endsSoon: true });
    this.model = new Model('regtest', { onRows: (rows) => this.#rows.push(rows) });
    let height: number;
    let bytes: Buffer;
    do {
      ({ height, bytes } = this.#maker.next());
      const block = readBlock(bytes, hash256);
      this.hash = block.hash;
      this.hashes.push(block.hash);
      this.model.apply(bytes, height);
      block.transactions.forEach((transaction, index) => {
        for (let vout = 0; vout < transaction.outputs; vout++)
          this.outputs.set(`${hashText(block.txids, 32 * index)}:${vout}`, { script: scriptOf(block, transaction, vout), height });
      });
    } while (height + 1 < blocks || this.#rows.at(-1)?.height !== height);
    this.tip = height;
    this.lastBlock = transactionsOf(bytes);
    this.transactions = this.#rows;
    this.#heights = new Set(this.transactions.map((transaction) => transaction.height));
  }

  /**
   * Builds a mirror of the chain in `out`. Returns a client that reads its files. With `bundled`, the client's code comes from the build,
   * otherwise from the source.
   */
  async mirror(dialect: 'hiro' | 'contract', out = join(temporaryFolder(), 'out'), bundled = false): Promise<Mirror> {
    const input = temporaryFolder();
    writeFiles(input, filesOf(this.model, this.transactions));
    await testBuild(out, { inputs: [input], dialect, layout: 'archive', lists: true });
    const files = readFiles(out);
    const client = bundled ? await clientIn(out) : { Mirror };
    return new client.Mirror('http://host/', { fetch: fetchOver((path) => files.get(path)), freshMs: 1e9 });
  }

  /** Returns transactions that may follow the chain, parents before children. */
  mempool(seed: number, random: (below: number) => number): RawPending[] {
    this.#maker.rewind(this.tip, seed, this.tip + 1);
    const blocks = Array.from({ length: 1 + random(5) }, () => this.#maker.next());
    const pool = blocks.flatMap(({ bytes }) => transactionsOf(bytes).slice(1));
    return pool.length > 0 ? pool : this.mempool(seed + 1, random);
  }

  /** Converts transactions to the form in which a wallet passes them to the client. */
  given(transactions: readonly RawPending[]): RawTransaction[] {
    return transactions.map(({ bytes, inputs }) => ({
      hex: bytes.toString('hex'),
      inputs: inputs.map((outpoint) => {
        const output = this.outputs.get(outpoint);
        // Some outputs that the mempool spends come from invented coinbases, which are not in the chain.
        if (output === undefined) return { height: 1 };
        const { height, script } = output;
        // The mirror knows hashes only of blocks with runes.
        const blockHash = this.#heights.has(height) ? this.hashes[height] : undefined;
        return { height, script: Buffer.from(script).toString('hex'), blockHash };
      }),
    }));
  }

  /** Returns the rune movements that the model finds in a block of these transactions, by transaction id. */
  modelled(transactions: readonly RawPending[], height = this.tip + 1): Map<string, Move[]> {
    const add = (all: readonly RawPending[]) =>
      this.model.apply(blockOf([this.#coinbase(), ...all.map(({ bytes }) => bytes)], this.model.tip.hash), this.model.tip.height + 1);
    while (this.model.tip.height + 1 < height) add([]);
    this.#rows = [];
    add(transactions);
    const etched = new Map(this.model.runes.filter((rune) => rune.height === height).map(({ id, txid }) => [id, txid]));
    const moves = new Map<string, Move[]>();
    for (const { txid, rows } of this.#rows) {
      const shown = rows.filter(({ operation }) => operation === 'receive' || operation === 'burn');
      const all = shown.map(({ operation, rune, output, address, amount }) =>
        moveOf(operation, etched.get(rune) ?? rune, output, address, amount ?? 0n),
      );
      if (all.length > 0) moves.set(txid, all);
    }
    this.model.rewind(this.tip);
    return moves;
  }

  #coinbase(): Buffer {
    const bytes = Buffer.alloc(60);
    bytes.set([1], 4);
    bytes.writeUInt32LE(0xffffffff, 37);
    bytes.set([1], 46);
    return bytes;
  }
}

const moveOf = (operation: string, rune: string, output: number | null, address: string | null, units: bigint): Move =>
  [operation, rune, output, address, units].join(' ');

const unitsOf = (amount: string) => BigInt(amount.replace('.', ''));

/** Returns the rune movements of a transaction in the client's answer. */
function movesOf(transaction: PendingTransaction, isShown: (amount: PendingAmount) => boolean = () => true): Move[] {
  const move = (operation: string) => (one: PendingAmount) =>
    moveOf(
      operation,
      one.rune.etching ?? one.rune.id ?? '',
      one.output === undefined ? null : Number(one.output.slice(65)),
      one.address ?? null,
      unitsOf(one.amount),
    );
  return [...transaction.coming.filter(isShown).map(move('receive')), ...transaction.burned.filter(isShown).map(move('burn'))];
}

/** Adds the amounts of movements that differ only in the amount. */
function summed(moves: readonly Move[]): Move[] {
  const sums = new Map<string, bigint>();
  for (const move of moves) {
    const at = move.lastIndexOf(' ');
    const key = move.slice(0, at);
    sums.set(key, (sums.get(key) ?? 0n) + BigInt(move.slice(at + 1)));
  }
  return [...sums].map(([key, units]) => `${key} ${units}`).sort();
}

/** Wraps a mirror and caches its answers, because decompression takes most of the time of an answer. */
export function remembering(mirror: MirrorReads): MirrorReads {
  const answers = new Map<string, Promise<unknown>>();
  const once = <Answer>(key: string, ask: () => Promise<Answer>): Promise<Answer> => {
    const known = answers.get(key) ?? ask();
    answers.set(key, known);
    return known as Promise<Answer>;
  };
  return {
    manifest: () => once('manifest', () => mirror.manifest()),
    classify: async (outputs, options) => {
      const keyOf = (output: OutputToClassify) => JSON.stringify(output);
      const missing = outputs.filter((output) => !answers.has(keyOf(output)));
      const asked = missing.length === 0 ? undefined : mirror.classify(missing, options);
      for (const [i, output] of missing.entries())
        answers.set(
          keyOf(output),
          Promise.resolve(asked).then((all) => all?.[i]),
        );
      return Promise.all(outputs.map((output) => answers.get(keyOf(output)) as Promise<ClassifiedOutput>));
    },
    etching: (rune) => once(String(rune), () => mirror.etching(rune)),
    activity: (query) => once(JSON.stringify(query), () => mirror.activity(query)),
  };
}

/** Counts of the kinds of results. Random mempools must contain each kind at least once. */
const NONE = { mempools: 0, transactions: 0, none: 0, moved: 0, burned: 0, possible: 0, chained: 0, conflicts: 0, certain: 0, named: 0 };
type Seen = typeof NONE;

/**
 * Sends random mempools to the client, and checks the answers. If the next block has exactly these transactions, all results must equal
 * those of the model. Results that the client calls certain must also hold for blocks with other heights, another order, or other
 * transactions.
 */
export async function checkMempools(
  chain: MempoolChain,
  mirror: MirrorReads,
  count: number,
  random: (below: number) => number,
): Promise<Seen> {
  const seen: Seen = { ...NONE };
  for (; seen.mempools < count; seen.mempools += 1) {
    const pool = chain.mempool(random(2 ** 31), random);
    const ids = new Set(pool.map(({ txid }) => txid));
    const answer = await pendingRunes({ transactions: chain.given(pool), network: 'regtest' }, mirror);
    expect([answer.block_height, answer.block_hash.replace('0x', '')]).toEqual([chain.tip, chain.hash]);
    expect(answer.transactions.map(({ tx_id }) => tx_id)).toEqual(pool.map(({ txid }) => txid));
    const modelled = chain.modelled(pool);
    for (const [i, transaction] of answer.transactions.entries()) {
      const { tx_id, unknown, result, going } = transaction;
      expect(unknown).toEqual([]);
      expect(summed(movesOf(transaction))).toEqual(summed(modelled.get(tx_id) ?? []));
      const spent = pool[i]?.inputs ?? [];
      expect(going.map(({ output, rune, amount }) => [output, rune.etching ?? rune.id, unitsOf(amount)])).toEqual(
        spent.flatMap((outpoint) => heldBy(chain, answer, outpoint)),
      );
      seen.transactions += 1;
      seen.none += Number(result === 'none');
      seen.moved += Number(transaction.coming.length > 0);
      seen.burned += Number(transaction.burned.length > 0);
      seen.possible += Number(transaction.possible.length > 0);
      seen.chained += Number(going.some(({ output = '' }) => ids.has(output.slice(0, 64))));
      seen.named += Number(transaction.coming.some(({ rune }) => rune.etching !== undefined && rune.name !== undefined));
    }
    await checkCertain(chain, mirror, pool, random, seen);
  }
  return seen;
}

/** Returns the runes of an output, which is in the chain or belongs to a transaction in the answer. */
function heldBy(chain: MempoolChain, answer: PendingAnswer, outpoint: string): [string, string | undefined, bigint][] {
  const parent = answer.transactions.find(({ tx_id }) => tx_id === outpoint.slice(0, 64));
  const coming = parent?.coming.filter(({ output }) => output === outpoint) ?? [];
  if (parent !== undefined) return coming.map(({ rune, amount }) => [outpoint, rune.etching ?? rune.id, unitsOf(amount)]);
  const output = chain.model.output(outpoint);
  return output === null || output.spent ? [] : output.held.map(({ rune, amount }) => [outpoint, rune.id, amount]);
}

/**
 * Adds double spends to the mempool, and sends all transactions to the client in any order. Results that the client calls certain must hold
 * for a later block with some of these transactions.
 */
async function checkCertain(
  chain: MempoolChain,
  mirror: MirrorReads,
  pool: readonly RawPending[],
  random: (below: number) => number,
  seen: Seen,
) {
  const others = pool.flatMap(({ bytes }) => {
    if (random(6) > 0) return [];
    const other = Buffer.from(bytes);
    other.writeUInt32LE(1 + random(1000), other.length - 4);
    return [pendingOf(other)];
  });
  const all = shuffled([...pool, ...others], random);
  const answer = await pendingRunes({ transactions: chain.given(all), network: 'regtest' }, mirror);
  const byId = new Map(all.map((one) => [one.txid, one]));
  expect(answer.transactions.map(({ tx_id }) => tx_id).sort()).toEqual([...byId.keys()].sort());
  const ancestors = new Map<string, Set<string>>();
  for (const { tx_id } of answer.transactions) {
    const parents = (byId.get(tx_id)?.inputs ?? []).map((outpoint) => outpoint.slice(0, 64)).filter((txid) => byId.has(txid));
    // Parents must come before their children.
    for (const parent of parents) expect(ancestors.has(parent)).toBe(true);
    ancestors.set(tx_id, new Set([tx_id, ...parents.flatMap((parent) => [...(ancestors.get(parent) ?? [])])]));
  }
  const exclude = (a: string, b: string) => {
    const spends = (txid: string) => new Set([...(ancestors.get(txid) ?? [])].flatMap((one) => byId.get(one)?.inputs ?? []));
    const direct = byId.get(b)?.inputs ?? [];
    return !ancestors.get(a)?.has(b) && direct.some((outpoint) => spends(a).has(outpoint));
  };
  const block = new Map<string, RawPending>();
  const spent = new Set<string>();
  for (const transaction of answer.transactions) {
    const { tx_id, conflicts, unknown } = transaction;
    expect(unknown).toEqual([]);
    expect([...conflicts].sort()).toEqual([...byId.keys()].filter((other) => exclude(tx_id, other)).sort());
    seen.conflicts += Number(conflicts.length > 0);
    const one = byId.get(tx_id);
    const isFree = one?.inputs.every(
      (outpoint) => !spent.has(outpoint) && (!byId.has(outpoint.slice(0, 64)) || block.has(outpoint.slice(0, 64))),
    );
    if (one === undefined || !isFree || random(5) === 0) continue;
    block.set(tx_id, one);
    for (const outpoint of one.inputs) spent.add(outpoint);
  }
  const confirmed = chain.modelled(reordered([...block.values()], random), chain.tip + 1 + random(8));
  for (const transaction of answer.transactions) {
    if (!block.has(transaction.tx_id)) continue;
    const changing = new Set(transaction.possible.map(({ rune }) => rune.etching ?? rune.id ?? ''));
    for (const { possible, rune } of [...transaction.coming, ...transaction.burned])
      expect(possible === true).toBe(changing.has(rune.etching ?? rune.id ?? ''));
    // A mint may name an id that no rune has yet. Any rune that one of the transactions etches may get this id.
    const mintsLater = transaction.possible.some(({ why }) => why.includes('no transaction before it etches'));
    const mayChange = (rune = '') => changing.has(rune) || (mintsLater && rune.length === 64);
    const certain = (moves: readonly Move[]) => summed(moves).filter((move) => !mayChange(move.split(' ')[1]));
    const found = confirmed.get(transaction.tx_id) ?? [];
    expect(certain(movesOf(transaction))).toEqual(certain(found));
    if (transaction.result === 'none') expect(found).toEqual([]);
    seen.certain += certain(found).length;
  }
}

function shuffled<T>(items: readonly T[], random: (below: number) => number): T[] {
  const left = [...items];
  return items.flatMap(() => left.splice(random(left.length), 1));
}

/** Returns the transactions in another order, with parents before children. */
function reordered(transactions: readonly RawPending[], random: (below: number) => number): RawPending[] {
  const left = [...transactions];
  const ordered: RawPending[] = [];
  while (left.length > 0) {
    const waiting = new Set(left.map(({ txid }) => txid));
    const ready = left.filter(({ inputs }) => inputs.every((outpoint) => !waiting.has(outpoint.slice(0, 64))));
    const next = ready[random(ready.length)];
    if (next === undefined) throw new Error('a cycle');
    ordered.push(next);
    left.splice(left.indexOf(next), 1);
  }
  return ordered;
}
