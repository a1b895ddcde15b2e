/**
 * A model of a mirror's state, for the rehearsal. Its author knew only the rules, and had not read the program. The model parses blocks,
 * follows ord's rules, and keeps balances in maps. Amounts are bigints in a rune's smallest unit.
 *
 *     const model = new Model('regtest', { onRows: ({ height, txid, rows }) => ... });
 *     model.apply(bytes, height);          // blocks in order; the first may have any height
 *     model.rewind(height);                // undoes the blocks above this height, at most `undoBlocks` (200) of them
 *     model.tip                            // { height, hash, time } of the last block
 *
 * `onRows` is called once for each transaction that has rows, in order of the chain. Its argument is `{ height, blockHash, timestamp,
 * txIndex, txid, rows, folded }`. A row is `{ eventIndex, operation, rune, address, receiver, amount, output }`: `rune` is `block:tx`,
 * `output` is a vout, and a missing value is null. `folded` is true if the rows are sums, because the transaction would have more than
 * 10,000 rows. Sums have no defined order.
 *
 * Expected answers, all as of `tip`:
 *
 *     model.output('txid:vout')            // runes of an output, or those that it had if it is spent; null if it never had runes
 *     model.outputs()                      // iterates over all outputs that have or had runes
 *     model.outputsOf(address)             // unspent outputs, in the order of /addresses/{address}/outputs
 *     model.balances(address)              // [{ rune, amount }] above zero, in the order of /addresses/{address}/balances
 *     model.holding(rune, address)         // amount; 0n: only had some before; null: never had any (404)
 *     model.holders(rune)                  // [{ address, amount }] above zero, in the order of /etchings/{rune}/holders
 *     model.holders(rune, height)          // the same after an older block, as far back as `rewind` goes
 *     model.supply(rune)                   // { current, premine, minted, mints, mintPercentage, mintable, burned, burnRows, rows, unaddressed }
 *     model.runes                          // all runes by number; `Rune` has every column, see runes.ts
 *     model.etchings()                     // all runes, newest first, as /etchings
 *     model.rune('840000:1')               // a rune by id; also by number ('0'), or by name without spacers ('UNCOMMONGOODS')
 *     model.addresses()                    // iterates over all addresses that have or had runes
 *     model.block(height)                  // { hash, time } of a block that was applied
 *
 * Other functions: `decimal(amount, divisibility)` writes an amount as the API does; `addressOf`, `parseBlock`, `decipher`, `minimumName`
 * and `commitmentOf` are in other files. A rune's `symbol` is null where the API shows `¤`.
 */
import { type AddressForm, addressOf } from './address.ts';
import { hexOfId, outpointKey, outpointText, parseBlock, parseOutpoint, type Transaction } from './block.ts';
import { Heights } from './heights.ts';
import { commitmentOf, FIRST_RESERVED, lettersOf, minimumName, reservedName, spacedName } from './names.ts';
import type { Row, Target } from './rows.ts';
import { type Counts, compareRunes, mintAmount, mintable, NO_COUNTS, type Rune } from './runes.ts';
import { type Cenotaph, decipher, instructions, type Runestone } from './runestone.ts';
import { transact } from './transact.ts';

export type Chain = 'mainnet' | 'signet' | 'regtest';

export interface TransactionRows {
  readonly height: number;
  readonly blockHash: string;
  /** Time of the block in seconds since 1970. */
  readonly timestamp: number;
  readonly txIndex: number;
  readonly txid: string;
  readonly rows: readonly Row[];
  readonly folded: boolean;
  /** Outputs with runes that the transaction spends, in the order of its inputs: `txid:vout:address`, or `txid:vout`. */
  readonly spent: readonly string[];
}

export interface ModelOptions {
  /** Number of blocks that can be undone, 200 by default. */
  readonly undoBlocks?: number;
  readonly onRows?: (transaction: TransactionRows) => void;
  /** Replaces addresses, so that tests can have some that no chain has. */
  readonly renamed?: (address: string) => string;
}

export interface Balance {
  readonly rune: Rune;
  readonly amount: bigint;
}

export interface Holder {
  readonly address: string;
  readonly amount: bigint;
}

export interface OutputAnswer {
  /** Outpoint in the form `txid:vout`. */
  readonly outpoint: string;
  readonly address: string | null;
  readonly location: { blockHash: string; height: number; txid: string; txIndex: number; timestamp: number };
  readonly spent: boolean;
  /** Height of the block that spends the output, or null while it is unspent. */
  readonly spentHeight: number | null;
  /** Runes of the output, or for a spent output the runes that it had. Sorted by id. */
  readonly held: readonly Balance[];
}

export interface Supply {
  readonly current: bigint;
  readonly premine: bigint;
  readonly minted: bigint;
  readonly mints: number;
  /** Number of mints as a percentage of the cap, with four decimals. */
  readonly mintPercentage: string;
  /** True if a mint in the block after the tip would succeed. */
  readonly mintable: boolean;
  readonly burned: bigint;
  readonly burnRows: number;
  readonly rows: number;
  /** Sum of the units that unspent outputs without an address have. They belong to no holder. */
  readonly unaddressed: bigint;
}

/** What a mirror answers. Without supplies if the mirror lacks the block of an etching. */
export interface Answers
  extends Pick<
    Model,
    'addresses' | 'balances' | 'block' | 'etchings' | 'holders' | 'holding' | 'output' | 'outputs' | 'outputsOf' | 'rune' | 'runes' | 'tip'
  > {
  supply(rune: Rune): Supply | undefined;
}

interface ChainRules {
  readonly firstHeight: number;
  readonly addresses: AddressForm;
}

const CHAINS: Record<Chain, ChainRules> = {
  mainnet: { firstHeight: 840_000, addresses: { hrp: 'bc', key: 0x00, script: 0x05 } },
  signet: { firstHeight: 0, addresses: { hrp: 'tb', key: 0x6f, script: 0xc4 } },
  regtest: { firstHeight: 0, addresses: { hrp: 'bcrt', key: 0x6f, script: 0xc4 } },
};
const COMMIT_CONFIRMATIONS = 6;

interface Output {
  readonly key: string;
  readonly height: number;
  readonly txIndex: number;
  readonly address: string | null;
  readonly held: readonly Balance[];
  spentHeight: number | null;
}

interface Holding {
  readonly rune: Rune;
  readonly address: string;
  amount: bigint;
}

interface Account {
  readonly holdings: Map<Rune, Holding>;
  readonly unspent: Set<Output>;
}

/** Data that undoes a block. `holdings` and `counts` have the values before the block, or null for a holding that the block created. */
interface Undo {
  readonly steps: (() => void)[];
  readonly holdings: Map<Holding, bigint | null>;
  readonly counts: Map<Rune, Counts>;
}

export class Model {
  /** All runes. The index of a rune is its number. */
  readonly runes: Rune[] = [];
  readonly #rules: ChainRules;
  readonly #undoBlocks: number;
  readonly #onRows: (transaction: TransactionRows) => void;
  readonly #renamed: (address: string) => string;
  readonly #runesById = new Map<string, Rune>();
  readonly #runesByName = new Map<bigint, Rune>();
  readonly #holders = new Map<Rune, Map<string, Holding>>();
  readonly #accounts = new Map<string, Account>();
  readonly #outputs = new Map<string, Output>();
  /** Heights of unspent P2TR outputs. A named etching must spend one that is old enough. */
  readonly #taproot = new Heights();
  /** Addresses of recently seen scripts. Sharing these strings saves memory. */
  readonly #addresses = new Map<string, string | null>();
  /** Blocks from height `#firstHeight` on. */
  readonly #blocks: { hash: string; time: number }[] = [];
  #firstHeight = 0;
  readonly #undo: Undo[] = [];

  constructor(chain: Chain, { undoBlocks = 200, onRows = () => {}, renamed = (address) => address }: ModelOptions = {}) {
    this.#rules = CHAINS[chain];
    this.#undoBlocks = undoBlocks;
    this.#onRows = onRows;
    this.#renamed = renamed;
    if (chain === 'mainnet') this.#enter(uncommonGoods());
  }

  /** The last block. Throws a RangeError if there is no block. */
  get tip(): { height: number; hash: string; time: number } {
    const height = this.#firstHeight + this.#blocks.length - 1;
    return { height, ...this.block(height) };
  }

  /** Returns hash and time of a block. Throws a RangeError if the block was not applied. */
  block(height: number): { hash: string; time: number } {
    const block = this.#blocks[height - this.#firstHeight];
    if (block === undefined) throw new RangeError(`the model has no block ${height}`);
    return block;
  }

  /** Applies the next block, serialised as a node sends it. Throws a RangeError if the block does not follow the tip, or is cut. */
  apply(bytes: Uint8Array, height: number): void {
    const { hash, previous, time, transactions } = parseBlock(bytes);
    if (this.#blocks.length === 0) this.#firstHeight = height;
    else if (this.tip.height + 1 !== height || this.tip.hash !== previous) {
      throw new RangeError(`block ${height} ${hash} does not follow ${this.tip.height} ${this.tip.hash}`);
    }
    this.#blocks.push({ hash, time });
    const undo: Undo = { steps: [], holdings: new Map(), counts: new Map() };
    this.#undo.push(undo);
    if (this.#undo.length > this.#undoBlocks) this.#undo.shift();
    for (const [txIndex, transaction] of transactions.entries()) {
      if (height >= this.#rules.firstHeight) this.#applyTransaction(transaction, height, txIndex, undo);
      this.#rememberTaproot(transaction, height, undo);
    }
  }

  /** Undoes all blocks above a height. Throws a RangeError if there are more of them than the model can undo. */
  rewind(height: number): void {
    const count = this.#newBlocks(height);
    for (let left = count; left > 0; left--) {
      const undo = this.#undo.pop();
      for (const step of undo?.steps.reverse() ?? []) step();
      for (const [rune, counts] of undo?.counts ?? []) rune.counts = counts;
      for (const [holding, amount] of undo?.holdings ?? []) {
        if (amount !== null) holding.amount = amount;
        else this.#forget(holding);
      }
      this.#blocks.pop();
    }
  }

  /** Returns a rune by id, number or name without spacers. */
  rune(text: string): Rune | undefined {
    if (text.includes(':')) return this.#runesById.get(text);
    return /^\d+$/.test(text) ? this.runes[Number(text)] : this.runes.find(({ letters }) => letters === text);
  }

  /** Returns all runes, newest first. */
  etchings(): Rune[] {
    return [...this.runes].sort((a, b) => b.height - a.height || b.txIndex - a.txIndex);
  }

  /** Returns the runes that an output (`txid:vout`) has or had, or null if it never had runes. */
  output(outpoint: string): OutputAnswer | null {
    const output = this.#outputs.get(parseOutpoint(outpoint));
    return output === undefined ? null : this.#answer(output);
  }

  /** Iterates over all outputs that have or had runes. They are in order of the chain, except after a rewind. */
  *outputs(): Generator<OutputAnswer> {
    for (const output of this.#outputs.values()) yield this.#answer(output);
  }

  /** Returns the unspent outputs of an address, sorted by height descending, then by txid and vout ascending. */
  outputsOf(address: string): OutputAnswer[] {
    const answers = [...(this.#accounts.get(address)?.unspent ?? [])].map((output) => this.#answer(output));
    const vout = ({ outpoint }: OutputAnswer) => Number(outpoint.slice(65));
    return answers.sort(
      (a, b) => b.location.height - a.location.height || compareText(a.location.txid, b.location.txid) || vout(a) - vout(b),
    );
  }

  /** Iterates over all addresses that have or had runes. */
  addresses(): IterableIterator<string> {
    return this.#accounts.keys();
  }

  /** Returns the balances of an address, sorted by amount descending, then by rune id ascending. */
  balances(address: string): Balance[] {
    const holdings = [...(this.#accounts.get(address)?.holdings.values() ?? [])].filter(({ amount }) => amount > 0n);
    return holdings
      .map(({ rune, amount }) => ({ rune, amount }))
      .sort((a, b) => compareBig(b.amount, a.amount) || compareRunes(a.rune, b.rune));
  }

  /** Returns an address's amount of a rune. 0n means that the address only had some before, null that it never had any. */
  holding(rune: Rune, address: string): bigint | null {
    return this.#holders.get(rune)?.get(address)?.amount ?? null;
  }

  /** Returns the holders of a rune after a block, sorted by amount descending, then by address ascending. */
  holders(rune: Rune, height = this.tip.height): Holder[] {
    const before = new Map<Holding, bigint | null>();
    const undone = this.#undo.slice(this.#undo.length - this.#newBlocks(height));
    for (const { holdings } of undone.reverse()) {
      for (const [holding, amount] of holdings) if (holding.rune === rune) before.set(holding, amount);
    }
    return [...(this.#holders.get(rune)?.values() ?? [])]
      .map((holding) => ({ address: holding.address, amount: before.has(holding) ? (before.get(holding) ?? 0n) : holding.amount }))
      .filter(({ amount }) => amount > 0n)
      .sort((a, b) => compareBig(b.amount, a.amount) || Buffer.compare(Buffer.from(a.address), Buffer.from(b.address)));
  }

  /** Returns the supply of a rune and the counts of its rows. */
  supply(rune: Rune): Supply {
    const { mints, burned } = rune.counts;
    const minted = BigInt(mints) * mintAmount(rune);
    const cap = rune.terms?.cap ?? 0n;
    // Rounds twice like the recorded server, both times half up: the share to 20 decimals, then the percentage to four.
    const share = cap === 0n ? 0n : (BigInt(mints) * 10n ** 20n * 2n + cap) / (2n * cap);
    return {
      ...rune.counts,
      current: rune.premine + minted - burned,
      premine: rune.premine,
      minted,
      mintPercentage: decimal((share + 5n * 10n ** 13n) / 10n ** 14n, 4),
      mintable: mintable(rune, this.tip.height + 1),
    };
  }

  #applyTransaction(transaction: Transaction, height: number, txIndex: number, undo: Undo): void {
    const message = decipher(transaction.scripts);
    const spent = transaction.inputs.flatMap(({ outpoint }) => this.#outputs.get(outpoint) ?? []);
    if (message === null && spent.length === 0) return;
    if (spent.some(({ spentHeight }) => spentHeight !== null)) throw new RangeError(`block ${height} spends an output again`);

    const block = this.block(height);
    const txid = hexOfId(transaction.id);
    const asked = message?.mint ? this.#runesById.get(message.mint) : undefined;
    const mints = asked !== undefined && mintable(asked, height) ? asked : null;
    const etches = this.#etched(message, transaction, height, txIndex, txid);
    const targets = transaction.scripts.map((script, index) => this.#target(script, index));
    const { made, burned, rows, folded } = transact({
      message,
      inputs: spent.flatMap(({ held, address }) => held.map(({ rune, amount }) => ({ rune, amount, address }))),
      mints,
      etches,
      targets,
      find: (id) => this.#runesById.get(id),
    });

    if (mints !== null) this.#count(mints, { mints: mints.counts.mints + 1 }, undo);
    if (etches !== null) {
      this.#enter(etches);
      undo.steps.push(() => this.#remove(etches));
    }
    for (const output of spent) this.#spend(output, height, undo);
    for (const [vout, balances] of made) {
      const held = [...balances].map(([rune, amount]) => ({ rune, amount })).sort((a, b) => compareRunes(a.rune, b.rune));
      const address = targets[vout]?.address ?? null;
      this.#make({ key: outpointKey(transaction.id, vout), height, txIndex, address, held, spentHeight: null }, undo);
    }
    for (const [rune, amount] of burned) this.#count(rune, { burned: rune.counts.burned + amount }, undo);
    for (const row of rows) {
      const rune = this.#runesById.get(row.rune);
      if (rune === undefined) throw new Error(`a row is of the rune ${row.rune}, which does not exist`);
      const { counts } = rune;
      this.#count(rune, { rows: counts.rows + 1, burnRows: counts.burnRows + (row.operation === 'burn' ? 1 : 0) }, undo);
    }
    if (rows.length === 0) return;
    const outpoints = spent.map(({ key, address }) => outpointText(key) + (address === null ? '' : `:${address}`));
    this.#onRows({ height, blockHash: block.hash, timestamp: block.time, txIndex, txid, rows, folded, spent: outpoints });
  }

  #target(script: Buffer, index: number): Target {
    const burns = script[0] === 0x6a;
    return { index, burns, address: burns ? null : this.#addressOf(script) };
  }

  #addressOf(script: Buffer): string | null {
    const key = script.toString('latin1');
    const known = this.#addresses.get(key);
    if (known !== undefined) return known;
    const usual = addressOf(script, this.#rules.addresses);
    const address = usual === null ? null : this.#renamed(usual);
    if (this.#addresses.size === 100_000) this.#addresses.clear();
    if (script.length < 100) this.#addresses.set(key, address);
    return address;
  }

  /** Returns the rune that a message etches. Returns null if it etches none, or if the etching breaks a rule. */
  #etched(message: Runestone | Cenotaph | null, transaction: Transaction, height: number, txIndex: number, txid: string): Rune | null {
    if (message === null) return null;
    const asked = message.kind === 'cenotaph' ? message.name : (message.etching?.name ?? null);
    const etching = message.kind === 'cenotaph' ? null : message.etching;
    if (asked === null && etching === null) return null;
    if (asked !== null) {
      if (asked < minimumName(height, this.#rules.firstHeight) || asked >= FIRST_RESERVED) return null;
      if (this.#runesByName.has(asked) || !this.#committed(asked, transaction, height)) return null;
    }
    const name = asked ?? reservedName(height, txIndex);
    const letters = lettersOf(name);
    const spacers = etching?.spacers ?? 0;
    return {
      id: `${height}:${txIndex}`,
      block: height,
      tx: txIndex,
      number: this.runes.length,
      name,
      letters,
      spacedName: spacedName(letters, spacers),
      spacers,
      divisibility: etching?.divisibility ?? 0,
      symbol: etching?.symbol ?? null,
      premine: etching?.premine ?? 0n,
      terms: etching?.terms ?? null,
      turbo: etching?.turbo ?? false,
      cenotaph: message.kind === 'cenotaph',
      height,
      txIndex,
      txid,
      timestamp: this.block(height).time,
      counts: NO_COUNTS,
    };
  }

  /** Returns true if an input's tapscript pushes the name, and the input spends a P2TR output with enough confirmations. */
  #committed(name: bigint, { inputs }: Transaction, height: number): boolean {
    const commitment = commitmentOf(name);
    return inputs.some(({ outpoint, witness }) => {
      const created = this.#taproot.get(outpoint);
      if (created === undefined || height - created + 1 < COMMIT_CONFIRMATIONS) return false;
      const annex = witness.length >= 2 && witness.at(-1)?.[0] === 0x50;
      for (const part of instructions(witness.at(annex ? -3 : -2) ?? Buffer.alloc(0))) {
        if (part === null) return false;
        if (typeof part !== 'number' && part.equals(commitment)) return true;
      }
      return false;
    });
  }

  #rememberTaproot({ id, inputs, scripts }: Transaction, height: number, undo: Undo): void {
    for (const { outpoint } of inputs) {
      const created = this.#taproot.get(outpoint);
      if (created === undefined) continue;
      this.#taproot.delete(outpoint);
      undo.steps.push(() => this.#taproot.set(outpoint, created));
    }
    for (const [vout, script] of scripts.entries()) {
      if (script.length !== 34 || script[0] !== 0x51 || script[1] !== 0x20) continue;
      const key = outpointKey(id, vout);
      this.#taproot.set(key, height);
      undo.steps.push(() => this.#taproot.delete(key));
    }
  }

  #enter(rune: Rune): void {
    this.runes.push(rune);
    this.#runesById.set(rune.id, rune);
    this.#runesByName.set(rune.name, rune);
    this.#holders.set(rune, new Map());
  }

  #remove(rune: Rune): void {
    this.runes.pop();
    this.#runesById.delete(rune.id);
    this.#runesByName.delete(rune.name);
    this.#holders.delete(rune);
  }

  #make(output: Output, undo: Undo): void {
    this.#outputs.set(output.key, output);
    undo.steps.push(() => this.#outputs.delete(output.key));
    this.#change(output, 1n, undo);
    const unspent = output.address === null ? undefined : this.#accounts.get(output.address)?.unspent;
    unspent?.add(output);
    undo.steps.push(() => unspent?.delete(output));
  }

  #spend(output: Output, height: number, undo: Undo): void {
    output.spentHeight = height;
    const unspent = output.address === null ? undefined : this.#accounts.get(output.address)?.unspent;
    unspent?.delete(output);
    undo.steps.push(() => {
      output.spentHeight = null;
      unspent?.add(output);
    });
    this.#change(output, -1n, undo);
  }

  /** Adds an output's runes to its address (sign 1), or subtracts them (sign -1). */
  #change({ address, held }: Output, sign: bigint, undo: Undo): void {
    for (const { rune, amount } of held) {
      if (address === null) {
        this.#count(rune, { unaddressed: rune.counts.unaddressed + sign * amount }, undo);
        continue;
      }
      const holding = this.#holders.get(rune)?.get(address) ?? this.#newHolding(rune, address, undo);
      if (!undo.holdings.has(holding)) undo.holdings.set(holding, holding.amount);
      holding.amount += sign * amount;
    }
  }

  #newHolding(rune: Rune, address: string, undo: Undo): Holding {
    const holding = { rune, address, amount: 0n };
    const account = this.#accounts.get(address) ?? { holdings: new Map<Rune, Holding>(), unspent: new Set<Output>() };
    this.#accounts.set(address, account);
    account.holdings.set(rune, holding);
    this.#holders.get(rune)?.set(address, holding);
    undo.holdings.set(holding, null);
    return holding;
  }

  /** Removes a holding that an undone block created. */
  #forget({ rune, address }: Holding): void {
    this.#holders.get(rune)?.delete(address);
    const account = this.#accounts.get(address);
    account?.holdings.delete(rune);
    if (account?.holdings.size === 0) this.#accounts.delete(address);
  }

  #count(rune: Rune, change: Partial<Counts>, undo: Undo): void {
    if (!undo.counts.has(rune)) undo.counts.set(rune, rune.counts);
    rune.counts = { ...rune.counts, ...change };
  }

  /** Returns the number of blocks above a height. Throws if the model cannot undo all of them. */
  #newBlocks(height: number): number {
    const count = this.tip.height - height;
    if (count < 0 || count > this.#undo.length) throw new RangeError(`the model cannot go back from ${this.tip.height} to ${height}`);
    return count;
  }

  #answer({ key, height, txIndex, address, held, spentHeight }: Output): OutputAnswer {
    const { hash, time } = this.block(height);
    const outpoint = outpointText(key);
    const location = { blockHash: hash, height, txid: outpoint.slice(0, 64), txIndex, timestamp: time };
    return { outpoint, address, location, spent: spentHeight !== null, spentHeight, held };
  }
}

/** Writes an amount with exactly `divisibility` decimal places. */
export function decimal(amount: bigint, divisibility: number): string {
  const digits = amount.toString().padStart(divisibility + 1, '0');
  return divisibility === 0 ? digits : `${digits.slice(0, -divisibility)}.${digits.slice(-divisibility)}`;
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function compareBig(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Returns the rune 1:0, which ord defines on mainnet without an etching. */
function uncommonGoods(): Rune {
  const name = 2055900680524219742n;
  const terms = {
    amount: 1n,
    cap: 2n ** 128n - 1n,
    heightStart: 840_000n,
    heightEnd: 1_050_000n,
    offsetStart: null,
    offsetEnd: null,
  };
  return {
    id: '1:0',
    block: 1,
    tx: 0,
    number: 0,
    name,
    letters: lettersOf(name),
    spacedName: spacedName(lettersOf(name), 128),
    spacers: 128,
    divisibility: 0,
    symbol: '⧉',
    premine: 0n,
    terms,
    turbo: true,
    cenotaph: false,
    height: 840_000,
    txIndex: 0,
    txid: '0'.repeat(64),
    timestamp: 0,
    counts: NO_COUNTS,
  };
}
