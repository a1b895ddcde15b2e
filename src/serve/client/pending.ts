/**
 * A separate bundle, pending.js: finds the runes that unconfirmed transactions move, by the rules of the protocol (src/runes). The runes of
 * their inputs come from the mirror, or from other unconfirmed transactions. If anything that a transaction depends on cannot be read, its
 * result is `unknown`.
 */
import { inParallel } from '../../atOnce.ts';
import { messageOf } from '../../errors.ts';
import { sha256 } from '../../format/sha256.ts';
import { groupBy } from '../../groupBy.ts';
import { exceeds, PENDING_LIMITS, type PendingLimits } from '../../limits.ts';
import { shiftDecimals } from '../../pages/decimalAmounts.ts';
import { parseHexId } from '../../pages/parseIds.ts';
import { scriptOfAddress } from '../../runes/address.ts';
import { outpointText } from '../../runes/bytes.ts';
import { etchedName, type PreviousOutput } from '../../runes/indexBlock.ts';
import { nameText, spacedName } from '../../runes/name.ts';
import { NETWORKS, type Network } from '../../runes/networks.ts';
import { blockOf, knownId, type RuneId, runeId, runeIdText } from '../../runes/runeId.ts';
import { allocate, inOrder, type Outcome, readTransaction, txidOf, type Unconfirmed } from '../../runes/unconfirmed.ts';
import type { Ledger, Mintable } from '../../runes/unspentLedger.ts';
import type {
  ClassifiedOutput,
  ConfirmedOutput,
  Mirror,
  OutputToClassify,
  PendingAmount,
  PendingAnswer,
  PendingQuery,
  PendingRune,
  PendingTransaction,
  RawTransaction,
} from './client.d.ts';

export type MirrorReads = Pick<Mirror, 'manifest' | 'classify' | 'etching' | 'activity'>;

const hash256 = (bytes: Uint8Array): Uint8Array => sha256(sha256(bytes));

/** An unconfirmed transaction, and the outputs that it spends, as the caller describes them. */
interface Given extends Unconfirmed {
  readonly spends: readonly ConfirmedOutput[];
}

/** Implements `Mirror.pending`. */
export async function pendingRunes(query: PendingQuery, mirror: MirrorReads, limits = PENDING_LIMITS): Promise<PendingAnswer> {
  const { network = 'main', signal } = query;
  if (!Object.hasOwn(NETWORKS, network)) throw new TypeError(`unknown network ${network}`);
  if (query.transactions === undefined) throw new TypeError('a query for unconfirmed transactions must have transactions');
  const given = readGiven(query.transactions, limits);
  try {
    const { tip } = await mirror.manifest();
    if (tip === undefined) throw new TypeError('the mirror is too old: its manifest does not name its highest block');
    const state = new MirrorState(mirror, NETWORKS[network], tip.height + 1, limits, signal);
    const ordered = inOrder(given);
    await state.load(ordered, given);
    signal?.throwIfAborted();
    const transactions = render(ordered, state.allocate(ordered), state);
    return { block_height: tip.height, block_hash: parseHexId(tip.hash) ?? tip.hash, transactions };
  } catch (error) {
    throw signal?.aborted ? signal.reason : error;
  }
}

/** Returns the bytes of hex. Undefined for other text. */
function bytesOf(hex: string): Uint8Array | undefined {
  if (typeof hex !== 'string' || !/^(?:[0-9a-f]{2})+$/i.test(hex)) return undefined;
  const bytes = new Uint8Array(hex.length / 2);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = Number.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
  return bytes;
}

/** Parses the transactions of a query, by id. Throws a TypeError if one of them is not a transaction, or if there are too many. */
function readGiven(transactions: readonly RawTransaction[], limits: PendingLimits): Map<string, Given> {
  const all = new Map<string, Given>();
  let total = 0;
  for (const [i, { hex, inputs: spends = [] }] of transactions.entries()) {
    const bytes = bytesOf(hex);
    if (bytes === undefined) throw new TypeError(`transactions[${i}].hex is not hex`);
    total += bytes.length;
    if (exceeds(limits, 'transactionBytes', total)) throw new TypeError(`the transactions have more than ${limits.transactionBytes} bytes`);
    let read: Unconfirmed;
    try {
      read = readTransaction(bytes, hash256);
    } catch (error) {
      throw new TypeError(`transactions[${i}].hex is not a transaction: ${messageOf(error)}`);
    }
    all.set(read.txid, { ...read, spends: read.inputs.map((_, input) => spends[input] ?? {}) });
    if (exceeds(limits, 'transactions', all.size)) throw new TypeError(`there are more than ${limits.transactions} transactions`);
  }
  return all;
}

/** An output. Its runes are amounts in smallest units, ascending by rune id. */
interface Held {
  readonly address: string | undefined;
  readonly runes: ReadonlyMap<RuneId, bigint>;
}

const ascending = (runes: Iterable<[RuneId, bigint]>): Held['runes'] => new Map([...runes].sort(([a], [b]) => a - b));

/** A taproot script: used for an output whose script is not given. */
const TAPROOT = Uint8Array.from({ length: 34 }, (_, i) => [0x51, 32][i] ?? 0);

/** The data of the mirror that transactions depend on: `load` reads it, then `allocate` applies the protocol. */
class MirrorState {
  readonly held = new Map<string, Held & { readonly script: Uint8Array }>();
  readonly known = new Map<RuneId, { readonly rune: PendingRune; readonly divisibility: number }>();
  readonly #mintable = new Map<RuneId, Mintable>();
  readonly #taken = new Set<bigint>();
  /** Spent outputs that are in blocks, as the query describes them. */
  readonly #confirmed = new Map<string, PreviousOutput>();
  /**
   * Names of the parts that each transaction needs, by its id. A part is the result of one look-up in the mirror: an output, a rune,
   * whether a rune with a name exists, or whether a transaction is confirmed.
   */
  readonly #needs = new Map<string, Set<string>>();
  /** Reasons why parts could not be loaded, by their names. */
  readonly #failed = new Map<string, string>();
  #spentRunes = 0;

  constructor(
    readonly mirror: MirrorReads,
    readonly network: Network,
    /** Height of the next block. */
    readonly height: number,
    readonly limits: PendingLimits,
    readonly signal: AbortSignal | undefined,
  ) {}

  /** Loads all parts that the transactions need. If a part cannot be loaded, the results that need it become `unknown`. */
  async load(ordered: readonly Given[], given: ReadonlyMap<string, Given>): Promise<void> {
    const { mirror, limits, signal } = this;
    const outputs = new Map<string, OutputToClassify>();
    const loads = new Map<string, () => Promise<void>>();
    // Limits cut off the largest transactions: a stranger's transaction with many inputs could use them up for all others.
    const smallFirst = [...ordered].sort((a, b) => a.inputs.length - b.inputs.length);
    for (const { txid, inputs, spends, message } of smallFirst) {
      const needs = new Set<string>();
      this.#needs.set(txid, needs);
      for (const [i, outpoint] of inputs.entries()) {
        if (given.has(txidOf(outpoint))) continue;
        // Some wallets write an empty script where they do not know it.
        const { height, blockHash, script: hex = '' } = spends[i] ?? {};
        const script = hex === '' ? TAPROOT : bytesOf(hex);
        const part = [outpoint, height, blockHash, hex].join(' ');
        needs.add(part);
        if (height === undefined) this.#failed.set(part, `the height of ${outpoint} is missing, and its transaction is not among these`);
        else if (script === undefined) this.#failed.set(part, `the script of ${outpoint} is not hex`);
        else {
          this.#confirmed.set(outpoint, { script, height });
          outputs.set(part, { outpoint, height, blockHash });
        }
      }
      const need = (part: string, load: () => Promise<void>) => {
        needs.add(part);
        loads.set(part, load);
      };
      const mint = message?.mint === undefined ? -1 : knownId(message.mint);
      if (mint >= 0 && blockOf(mint) < this.height) need(`rune ${mint}`, () => this.#loadRune(mint));
      const name = message && etchedName(message);
      if (name !== undefined) need(`name ${name}`, () => this.#loadName(name));
      needs.add(txid);
    }
    for (const [i, part] of [...outputs.keys(), ...loads.keys()].entries()) {
      if (!exceeds(limits, 'lookUps', i + 1)) continue;
      this.#failed.set(part, `the transactions need more than ${limits.lookUps} look-ups in the mirror`);
      outputs.delete(part);
      loads.delete(part);
    }
    const [classes] = await Promise.all([
      outputs.size === 0 ? [] : mirror.classify([...outputs.values()], { signal }),
      inParallel(loads, limits.requestsAtOnce, ([part, load]) => this.#try(part, load)),
    ]);
    const parts = [...outputs.keys()];
    for (const [i, one] of classes.entries()) await this.#try(parts[i] ?? '', () => this.#hold(one));
    // This check comes last: while the inputs are read, the mirror may get a block with one of these transactions.
    await inParallel(ordered, limits.requestsAtOnce, ({ txid }) => this.#try(txid, () => this.#checkUnconfirmed(txid)));
  }

  async #try(part: string, load: () => void | Promise<void>): Promise<void> {
    this.signal?.throwIfAborted();
    try {
      await load();
    } catch (error) {
      this.#failed.set(part, messageOf(error));
    }
  }

  /** Stores the runes of an output. Throws if the mirror does not know the output, or if the output is spent. */
  #hold(one: ClassifiedOutput): void {
    const { network, limits } = this;
    const { outpoint } = one;
    if (one.kind === 'unknown') throw new Error(`${outpoint}: ${one.reason}`);
    if (one.kind === 'spent') throw new Error(`${outpoint} is spent in a block of the mirror`);
    if (one.kind !== 'runes') return;
    const { address, runes } = one;
    this.#spentRunes += runes.length;
    if (exceeds(limits, 'spentRunes', this.#spentRunes)) throw new Error(`the transactions spend more than ${limits.spentRunes} runes`);
    const script = address === undefined ? new Uint8Array() : scriptOfAddress(address, network, hash256);
    if (script === undefined) throw new Error(`${address} is not an address of this network`);
    const units = runes.map(({ rune, balance }): [RuneId, bigint] => {
      const id = idOf(rune.id);
      this.known.set(id, { rune, divisibility: /\.(.*)/.exec(balance)?.[1]?.length ?? 0 });
      return [id, unitsOf(balance)];
    });
    this.held.set(outpoint, { address, runes: ascending(units), script });
  }

  async #loadRune(id: RuneId): Promise<void> {
    const etching = await this.mirror.etching(runeIdText(id), this.signal);
    if (etching === undefined) return;
    const { number, name, spaced_name, divisibility, mint_terms, supply } = etching;
    if (supply.total_mints === undefined) throw new Error(`the mirror's etching of ${runeIdText(id)} lacks supply.total_mints`);
    const units = (value: string | number | null) => (value === null ? undefined : unitsOf(String(value)));
    const terms = {
      amount: units(mint_terms.amount),
      // In dialect `hiro` the cap has decimals like an amount.
      cap: units(mint_terms.cap),
      heightStart: units(mint_terms.height_start),
      heightEnd: units(mint_terms.height_end),
      offsetStart: units(mint_terms.offset_start),
      offsetEnd: units(mint_terms.offset_end),
    };
    this.#mintable.set(id, { block: blockOf(id), terms, mints: Number(supply.total_mints) });
    this.known.set(id, { rune: { id: etching.id, number, name, spaced_name }, divisibility });
  }

  async #loadName(name: bigint): Promise<void> {
    if ((await this.mirror.etching(nameText(name), this.signal)) !== undefined) this.#taken.add(name);
  }

  async #checkUnconfirmed(txid: string): Promise<void> {
    const [record] = (await this.mirror.activity({ transaction: txid, limit: 1, signal: this.signal })).results;
    if (record !== undefined) throw new Error(`the transaction is confirmed: the mirror has it in block ${record.location.block_height}`);
  }

  allocate(ordered: readonly Unconfirmed[]): Outcome[] {
    const { height, network, limits } = this;
    const ledger: Ledger = {
      runes: 0,
      output: (bytes, at) => {
        const held = this.held.get(outpointText(bytes, at));
        return held && { script: held.script, balances: [...held.runes].map(([rune, amount]) => ({ rune, amount })) };
      },
      rune: (id) => this.#mintable.get(id),
      nameTaken: (name) => this.#taken.has(name),
    };
    let rows = 0;
    return allocate(ordered, {
      height,
      network,
      hash256,
      ledger,
      // An output of an unconfirmed transaction has no confirmations, so it is no commitment of an etching, whatever its script.
      previousOutput: (outpoint) => this.#confirmed.get(outpoint) ?? { script: TAPROOT, height },
      unknown: ({ txid }) => [...(this.#needs.get(txid) ?? [])].flatMap((part) => this.#failed.get(part) ?? []),
      countRow: () => {
        rows += 1;
        if (exceeds(limits, 'movedRows', rows)) throw new Error(`the transactions move runes more than ${limits.movedRows} times`);
      },
    });
  }
}

/** Converts a decimal string in units of a rune to smallest units. Throws for any other text. */
function unitsOf(amount: string): bigint {
  if (!/^[0-9]+(?:\.[0-9]+)?$/.test(amount)) throw new Error(`the mirror has the amount ${amount}, which is not a number`);
  return BigInt(amount.replace('.', ''));
}

/** Parses the id of a rune, `block:tx`. Throws for any other text. */
function idOf(text: string): RuneId {
  const [, block, tx] = /^([0-9]{1,10}):([0-9]{1,7})$/.exec(text) ?? [];
  const id = block === undefined || tx === undefined ? -1 : knownId({ block: BigInt(block), tx: BigInt(tx) });
  if (id < 0) throw new Error(`${text} is not the id of a rune`);
  return id;
}

/** Renders results. `ordered` has parents before children. */
function render(ordered: readonly Unconfirmed[], outcomes: readonly Outcome[], state: MirrorState): PendingTransaction[] {
  const runes = new Map(state.known);
  for (const [i, { txid, message }] of ordered.entries()) {
    if (message?.etching === undefined) continue;
    const { rune: name, spacers = 0 } = message.kind === 'cenotaph' ? { rune: message.etching } : message.etching;
    const names = name === undefined ? {} : { name: nameText(name), spaced_name: spacedName(nameText(name), spacers) };
    const divisibility = outcomes[i]?.etched?.row.divisibility ?? 0;
    runes.set(runeId(state.height, i + 1), { rune: { etching: txid, ...names }, divisibility });
  }
  const runeOf = (id: RuneId): PendingRune => runes.get(id)?.rune ?? { id: runeIdText(id) };
  const made = new Map<string, Held>();
  return outcomes.map(({ rows, possible, conflicts, unknown }, i) => {
    const { txid, inputs } = ordered[i] ?? { txid: '', inputs: [] };
    const amountOf = (id: RuneId, units: bigint, output?: string, address?: string | null): PendingAmount => ({
      rune: runeOf(id),
      amount: shiftDecimals(units, runes.get(id)?.divisibility ?? 0),
      ...(output === undefined ? {} : { output }),
      ...(address === undefined || address === null ? {} : { address }),
      ...(possible.has(id) ? { possible: true } : {}),
    });
    const amountsOf = (outpoint: string, held: Held | undefined): PendingAmount[] =>
      [...(held?.runes ?? [])].map(([id, units]) => amountOf(id, units, outpoint, held?.address));
    const outputs = receivedBy(rows).map(([vout, held]) => [`${txid}:${vout}`, held] as const);
    for (const [outpoint, held] of outputs) made.set(outpoint, held);
    const isKnown = unknown.length === 0;
    const coming = outputs.flatMap(([outpoint, held]) => amountsOf(outpoint, held));
    const going = isKnown ? inputs.flatMap((outpoint) => amountsOf(outpoint, made.get(outpoint) ?? state.held.get(outpoint))) : [];
    const burned = rows
      .filter(({ operation }) => operation === 'burn')
      .map(({ rune_id, amount, output, address }) =>
        amountOf(idOf(rune_id), amount ?? 0n, output === null ? undefined : `${txid}:${output}`, address),
      );
    const mayChange = isKnown ? [...possible].map(([id, { why }]) => ({ rune: runeOf(id), why })) : [];
    const hasRunes = [coming, going, burned, mayChange].some(({ length }) => length > 0);
    return {
      tx_id: txid,
      unconfirmed: true,
      result: isKnown ? (hasRunes ? 'runes' : 'none') : 'unknown',
      unknown,
      coming,
      going,
      burned,
      possible: mayChange,
      conflicts: [...conflicts],
    };
  });
}

/** Returns the runes that outputs receive, sorted by vout. */
function receivedBy(rows: Outcome['rows']): [vout: number, held: Held][] {
  const received = rows.filter(({ operation, output }) => operation === 'receive' && output !== null);
  return [...groupBy(received, ({ output }) => output ?? 0)]
    .sort(([a], [b]) => a - b)
    .map(([vout, group]) => {
      const runes = new Map<RuneId, bigint>();
      for (const { rune_id, amount } of group) runes.set(idOf(rune_id), (runes.get(idOf(rune_id)) ?? 0n) + (amount ?? 0n));
      return [vout, { address: group[0]?.address ?? undefined, runes: ascending(runes) }];
    });
}
