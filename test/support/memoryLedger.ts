/** An indexer of raw blocks that keeps its ledger in memory. */
import { hash } from 'node:crypto';
import { hashText, outpointBytes, outpointText } from '../../src/runes/bytes.ts';
import { type Commitment, commitmentsOf, indexBlock, type PreviousOutput } from '../../src/runes/indexBlock.ts';
import type { LedgerRow } from '../../src/runes/ledgerRows.ts';
import type { Network } from '../../src/runes/networks.ts';
import { type Block, BlockError, readBlock } from '../../src/runes/parseBlock.ts';
import { type RuneId, runeIdText } from '../../src/runes/runeId.ts';
import type { Changes, Ledger, NewRune, RuneOutput } from '../../src/runes/unspentLedger.ts';

export const hash256 = (bytes: Uint8Array): Uint8Array => hash('sha256', hash('sha256', bytes, 'buffer'), 'buffer');

/**
 * Returns a copy of a block whose header names the previous block and has the right merkle root. The fixtures need this, because their
 * headers are invented.
 */
export function sealed(bytes: Uint8Array, previous: Uint8Array = new Uint8Array(32)): Uint8Array {
  const copy = Uint8Array.from(bytes);
  copy.set(previous, 4);
  let last: Uint8Array = new Uint8Array(32);
  const recording = (hashed: Uint8Array) => {
    last = hash256(hashed);
    return last;
  };
  try {
    readBlock(copy, recording);
  } catch (error) {
    // When readBlock rejects the header's merkle root, the last hash that it computed is the right one.
    if (!(error instanceof BlockError)) throw error;
  }
  copy.set(last, 36);
  return copy;
}

/** Returns the 36 bytes of an outpoint. */
export const outpointOf = (txid: string, index: number): Uint8Array => outpointBytes(`${txid}:${index}`);

/** Returns the script of an output, as a view of the block's bytes. */
const script = (block: Block, index: number): Uint8Array => {
  const from = block.scripts[index] ?? 0;
  return block.bytes.subarray(from, from + (block.scriptLengths[index] ?? 0));
};

class MemoryLedger implements Ledger {
  readonly outputs = new Map<string, RuneOutput>();
  readonly byId = new Map<RuneId, NewRune>();
  readonly #names = new Set<bigint>();

  output(bytes: Uint8Array, at: number): RuneOutput | undefined {
    return this.outputs.size === 0 ? undefined : this.outputs.get(outpointText(bytes, at));
  }

  rune(id: RuneId): NewRune | undefined {
    return this.byId.get(id);
  }

  nameTaken(name: bigint): boolean {
    return this.#names.has(name);
  }

  get runes(): number {
    return this.byId.size;
  }

  apply(changes: Changes): void {
    for (const outpoint of changes.spent) {
      if (!this.outputs.delete(outpointText(outpoint))) throw new Error(`spent twice, or never there: ${outpointText(outpoint)}`);
    }
    for (const { outpoint, ...output } of changes.created) this.outputs.set(outpointText(outpoint), output);
    for (const rune of changes.runes) {
      this.byId.set(rune.id, rune);
      this.#names.add(rune.name);
    }
    for (const [id, mints] of changes.mints) {
      const rune = this.byId.get(id);
      if (!rune) throw new Error(`mint of an unknown rune ${id}`);
      this.byId.set(id, { ...rune, mints: rune.mints + mints });
    }
  }
}

/** A chain of raw blocks with its ledger. Keeps all outputs, like a node. */
export class MemoryChain {
  readonly ledger = new MemoryLedger();
  readonly rows: LedgerRow[] = [];
  readonly asked: Commitment[] = [];
  readonly #outputs = new Map<string, PreviousOutput>();

  constructor(readonly network: Network) {}

  add(bytes: Uint8Array, height: number): { block: Block; rows: LedgerRow[]; changes: Changes } {
    const block = readBlock(bytes, hash256);
    block.transactions.forEach((transaction, index) => {
      for (let i = 0; i < transaction.outputs; i++) {
        this.#outputs.set(`${hashText(block.txids, 32 * index)}:${i}`, { script: script(block, transaction.firstOutput + i), height });
      }
    });
    const { network, ledger } = this;
    const listed = commitmentsOf(block, { height, network, ledger });
    this.asked.push(...listed);
    const rows: LedgerRow[] = [];
    const previousOutput = ({ transaction, input }: Commitment) => {
      if (!listed.some((other) => other.transaction === transaction && other.input === input))
        throw new Error('a commitment was not listed');
      const outpoint = outpointText(bytes, block.inputs[(block.transactions[transaction]?.firstInput ?? 0) + input]);
      const found = this.#outputs.get(outpoint);
      if (!found) throw new Error(`no output ${outpoint}`);
      return found;
    };
    const changes = indexBlock(block, { height, network, ledger, hash256, previousOutput, emit: (row) => rows.push(row) });
    ledger.apply(changes);
    for (const row of rows) this.rows.push(row);
    return { block, rows, changes };
  }
}

/** Returns the balances of the unspent outputs in the ledger. Each entry has the outpoint, and pairs of a rune and an amount. */
export function balancesOf({ ledger }: MemoryChain): [string, [string, string][]][] {
  return [...ledger.outputs]
    .map(([outpoint, { balances }]): [string, [string, string][]] => [
      outpoint,
      balances.map(({ rune, amount }) => [runeIdText(rune), String(amount)]),
    ])
    .sort();
}

/** Returns the outpoints that a row spends. */
export const spentBy = ({ spent }: Pick<LedgerRow, 'spent'>): string[] =>
  spent?.split(',').map((one) => one.split(':').slice(0, 2).join(':')) ?? [];

/** Computes the balances of unspent outputs from the rows alone, without the ledger. */
export function balancesByRows({ rows }: MemoryChain): [string, [string, string][]][] {
  const spent = new Set(rows.flatMap(spentBy));
  const outputs = new Map<string, Map<string, bigint>>();
  for (const { operation, tx_id, output, rune_id, amount } of rows) {
    const outpoint = `${tx_id}:${output}`;
    if (operation !== 'receive' || spent.has(outpoint)) continue;
    const runes = outputs.get(outpoint) ?? new Map<string, bigint>();
    outputs.set(outpoint, runes.set(rune_id, (runes.get(rune_id) ?? 0n) + (amount ?? 0n)));
  }
  const order = (id: string) => id.split(':').reduce((number, part) => number * 2 ** 20 + Number(part), 0);
  return [...outputs]
    .map(([outpoint, runes]): [string, [string, string][]] => [
      outpoint,
      [...runes].map(([id, amount]): [string, string] => [id, String(amount)]).sort(([a], [b]) => order(a) - order(b)),
    ])
    .sort();
}
