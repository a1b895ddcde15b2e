/** Allocates the runes of unconfirmed transactions, as if the next block had a coinbase and exactly these transactions, in this order. */
import { groupBy } from '../groupBy.ts';
import { joinBytes } from '../joinBytes.ts';
import { type Hash256, hashText, outpointText } from './bytes.ts';
import { BlockIndexer, etchedName, type Indexing, type PreviousOutput } from './indexBlock.ts';
import type { LedgerRow } from './ledgerRows.ts';
import { mintWindow } from './mintTerms.ts';
import { FIRST_RESERVED, nameText } from './name.ts';
import { readUnconfirmed } from './parseBlock.ts';
import { blockOf, knownId, type RuneId, runeId, runeIdText } from './runeId.ts';
import type { Message } from './runestone.ts';
import { isOpReturn } from './script.ts';
import type { Mintable, NewRune } from './unspentLedger.ts';

/** Unconfirmed transaction. Hashes are lower-case hex as Bitcoin displays them. */
export interface Unconfirmed {
  readonly bytes: Uint8Array;
  readonly txid: string;
  /** Outpoints that it spends, as `txid:vout`, in order. */
  readonly inputs: readonly string[];
  readonly outputs: number;
  readonly message: Message | undefined;
  /** Index of the output that gets the runes which no edict moves. -1 if they are burned. */
  readonly rest: number;
}

/** Reads the bytes of a transaction, with or without witnesses. Throws a BlockError for other bytes. */
export function readTransaction(bytes: Uint8Array, hash256: Hash256): Unconfirmed {
  const { txids, inputs, transactions, scripts, scriptLengths } = readUnconfirmed(bytes, 1, hash256);
  const { outputs = 0, message } = transactions[0] ?? {};
  const first = scripts.findIndex((at, i) => !isOpReturn(bytes, at, scriptLengths[i] ?? 0));
  const rest = message?.kind === 'cenotaph' ? -1 : (message?.pointer ?? first);
  return { bytes, txid: hashText(txids), inputs: Array.from(inputs, (at) => outpointText(bytes, at)), outputs, message, rest };
}

export const txidOf = (outpoint: string): string => outpoint.slice(0, 64);

/** Sorts transactions: parents before children. Keeps the given order if it already has all parents first. */
export function inOrder<One extends Unconfirmed>(transactions: ReadonlyMap<string, One>): One[] {
  const ordered = new Set<One>();
  for (const first of transactions.values()) {
    // A transaction stays on the stack until its parents are in `ordered`. As it contains their hashes, there are no cycles.
    const stack = [first];
    for (let one = stack.at(-1); one !== undefined; one = stack.at(-1)) {
      const parents = ordered.has(one) ? [] : new Set(one.inputs.flatMap((outpoint) => transactions.get(txidOf(outpoint)) ?? []));
      const missing = [...parents].filter((parent) => !ordered.has(parent));
      if (missing.length === 0) ordered.add(stack.pop() ?? one);
      else for (const parent of missing.reverse()) stack.push(parent);
    }
  }
  return [...ordered];
}

/** Uncertainty about the amount of a rune, which may be different once the transaction is in a block. */
interface Possible {
  readonly why: string;
  /** Index of the only output that may receive the rune, -1 for none. Undefined if every output may. */
  readonly output: number | undefined;
}

export interface Outcome {
  /** Rows as a pull from a node writes them, without hash and time of the block. Empty if the result is unknown. */
  readonly rows: readonly LedgerRow[];
  /** Rune that the transaction etches. Its id and number depend on the block. */
  readonly etched: NewRune | undefined;
  /** Runes whose amounts are not certain, because they depend on mints or etchings. */
  readonly possible: ReadonlyMap<RuneId, Possible>;
  /** Ids of transactions that exclude this one: they spend an output that it or one of its unconfirmed ancestors spends. */
  readonly conflicts: ReadonlySet<string>;
  /** Reasons why the result is unknown. */
  readonly unknown: readonly string[];
}

/** `height` is that of the next block. `ledger` is the ledger after the last block, without the outputs of the transactions. */
export interface Allocating extends Pick<Indexing, 'height' | 'network' | 'ledger' | 'hash256'> {
  /** Returns an output that may be the commitment to a name. Outputs of the transactions themselves have the height of the next block. */
  readonly previousOutput: (outpoint: string) => PreviousOutput;
  /** Returns the reasons why the caller lacks a part of the data that a transaction needs. Empty if it has all. */
  readonly unknown: (transaction: Unconfirmed) => readonly string[];
  /** Called before each row. Throws if there are too many rows. Then the result of the transaction is unknown. */
  readonly countRow: () => void;
}

/** A coinbase without scripts. It gives the other transactions the indexes that they would have in a block. */
const COINBASE = new Uint8Array(60);
COINBASE[4] = 1;
COINBASE[46] = 1;

/** Returns the outcome of each transaction. They must be sorted by `inOrder`. */
export function allocate(transactions: readonly Unconfirmed[], allocating: Allocating): Outcome[] {
  const { height, hash256, countRow } = allocating;
  const block = readUnconfirmed(joinBytes([COINBASE, ...transactions.map(({ bytes }) => bytes)]), transactions.length + 1, hash256);
  const all = new Map(transactions.map((one) => [one.txid, one]));
  const spends = transactions.flatMap(({ txid, inputs }) => inputs.map((outpoint) => ({ outpoint, txid })));
  const spenders = groupBy(spends, ({ outpoint }) => outpoint);
  /** Outcomes by transaction id. `ancestors` has this id, and those of all unconfirmed transactions that the transaction depends on. */
  const known = new Map<string, Outcome & { readonly ancestors: ReadonlySet<string> }>();
  let rows: LedgerRow[] = [];
  const indexer = new BlockIndexer(block, {
    ...allocating,
    previousOutput: ({ transaction, input }) => allocating.previousOutput(transactions[transaction - 1]?.inputs[input] ?? ''),
    emit: (row) => {
      countRow();
      rows.push(row);
    },
  });
  for (const [i, transaction] of transactions.entries()) {
    const { txid, inputs } = transaction;
    const ancestors = new Set([txid]);
    const conflicts = new Set(inputs.flatMap((outpoint) => (spenders.get(outpoint) ?? []).map((spender) => spender.txid)));
    conflicts.delete(txid);
    const why = new Map<RuneId, string>();
    const unknown = new Set(allocating.unknown(transaction));
    for (const outpoint of inputs) {
      const [parent, vout] = [txidOf(outpoint), Number(outpoint.slice(65))];
      if (vout >= (all.get(parent)?.outputs ?? Number.POSITIVE_INFINITY)) unknown.add(`it spends ${outpoint}, which does not exist`);
      const outcome = known.get(parent);
      for (const [rune, { output, why: reason }] of outcome?.possible ?? [])
        if (output === undefined || output === vout) addReason(why, rune, reason);
      if (outcome?.unknown.length) unknown.add(`it spends an output of ${parent}, whose result is unknown`);
    }
    for (const parent of new Set(inputs.map(txidOf))) {
      for (const each of known.get(parent)?.ancestors ?? []) ancestors.add(each);
      for (const each of known.get(parent)?.conflicts ?? []) conflicts.add(each);
    }
    if (new Set(inputs).size < inputs.length || [...conflicts].some((each) => ancestors.has(each)))
      unknown.add('it can never be confirmed, because it or its parents spend an output twice');
    const id = runeId(height, i + 1);
    for (const [rune, reason] of uncertain(transaction, id, allocating)) addReason(why, rune, reason);
    rows = [];
    let etched: NewRune | undefined;
    try {
      const place = block.transactions[i + 1];
      etched = place && indexer.index(place, i + 1);
    } catch (error) {
      unknown.add(error instanceof Error ? error.message : String(error));
    }
    const possible = destinations(why, transaction, id, height);
    known.set(txid, { rows: unknown.size === 0 ? rows : [], etched, possible, conflicts, unknown: [...unknown], ancestors });
  }
  return [...known.values()];
}

/** Adds a reason. A rune id of the next block may have two: a parent may mint this rune, and this transaction may etch it. */
function addReason(why: Map<RuneId, string>, rune: RuneId, reason: string): void {
  const before = why.get(rune);
  if (!before?.includes(reason)) why.set(rune, before === undefined ? reason : `${before}; ${reason}`);
}

/** Lists the runes that a transaction may mint or etch, and why that is not certain. `id` is the id of an etched rune. */
function uncertain({ message }: Unconfirmed, id: RuneId, { height, ledger }: Allocating): [rune: RuneId, why: string][] {
  const found: [RuneId, string][] = [];
  const mint = message?.mint === undefined ? -1 : knownId(message.mint);
  const rune = ledger.rune(mint);
  if (blockOf(mint) >= height) found.push([mint, `the mint of ${runeIdText(mint)} fails if no transaction before it etches this rune`]);
  else if (rune && mayBeMinted(rune, height))
    found.push([mint, `the mint of ${runeIdText(mint)} fails if other mints reach its cap before, or outside of its heights`]);
  if (message?.etching !== undefined) {
    const name = etchedName(message);
    if (name === undefined) found.push([id, 'the id and the name of an etching without a name depend on its place in a block']);
    else if (name < FIRST_RESERVED && !ledger.nameTaken(name))
      found.push([id, `the etching of ${nameText(name)} fails if another one takes the name before, or if its commitment is too young`]);
  }
  return found;
}

/** Returns which outputs may receive each rune in `why`: any output if an edict moves the rune, otherwise only output `rest`. */
function destinations(
  why: ReadonlyMap<RuneId, string>,
  { message, rest }: Unconfirmed,
  own: RuneId,
  height: number,
): Map<RuneId, Possible> {
  const edicts = message?.kind === 'runestone' ? message.edicts : [];
  const moved = new Set(edicts.map(({ id }) => (id.block === 0n && id.tx === 0n ? own : knownId(id))));
  // Ids of the next block's new runes are uncertain, so an edict with one of these ids may move any of these runes.
  const movesLater = [...moved].some((rune) => blockOf(rune) >= height);
  const isMoved = (rune: RuneId) => moved.has(rune) || (movesLater && blockOf(rune) >= height);
  return new Map([...why].map(([rune, reason]) => [rune, { why: reason, output: isMoved(rune) ? undefined : rest }]));
}

/** False if no later block can have a mint of the rune. */
function mayBeMinted({ block, terms, mints }: Mintable, height: number): boolean {
  if (!terms) return false;
  const { end } = mintWindow(block, [terms.heightStart, terms.offsetStart], [terms.heightEnd, terms.offsetEnd]);
  return (end === undefined || height < end) && BigInt(mints) < (terms.cap ?? 0n);
}
