/**
 * Invents a regtest chain with the shape of mainnet since its first block with runes: bursts of etchings, runs of mints, wide transfers,
 * addresses with very many outputs, transactions that spend many old outputs, and spam. The same options always make the same chain.
 *
 * Memory is bounded: the maker forgets outputs at random, which then stay unspent. It only estimates the runes of an output, so some
 * messages move runes that the output does not have, as on mainnet.
 */
import { hash } from 'node:crypto';
import { randomNumbers } from '../../bench/random.ts';
import { commitmentOf, nameNumber } from '../../src/runes/name.ts';
import { BlockWriter, type Spend } from './blockWriter.ts';
import { addressScript, edictsOf, messageScript, type Rune, SPAM, scriptWithoutAddress, tapscriptOf } from './scripts.ts';

/** Number of blocks, and mean number of rows, of mainnet from its first block with runes to November 2026. */
export const MAINNET = { blocks: 137_000, rowsPerBlock: 1500 } as const;

/**
 * Mean number of rows of a block at the rates below (RATES). FIXED_ROWS of them come from etchings and events, which do not depend on these
 * rates.
 */
export const ROWS_PER_BLOCK = 12;
const FIXED_ROWS = 6;

/**
 * The chain has 20 epochs, which then repeat. An epoch has a kind, which sets the rates of its blocks. EPOCH_BLOCKS is the length of an
 * epoch in a chain as long as mainnet. A shorter chain has shorter epochs.
 */
const EPOCH_BLOCKS = 100;
const EPOCHS = 20;
/** Positions of the epochs of each kind among the 20 epochs. All other epochs are ordinary. */
const KINDS = {
  /** Epochs with many etchings. */
  rush: [3],
  /** Epochs with mints of one rune. */
  mints: [7, 13],
  /** Epochs in which most blocks have no runes. */
  quiet: [1, 10, 16],
  /** Epochs in which most transactions are transfers. */
  busy: [5, 11],
} as const;
type Kind = keyof typeof KINDS | 'ordinary';

/** Mean number of transactions of each kind in a block, by kind of epoch. */
const RATES: Readonly<Record<Kind, Readonly<Record<'etching' | 'mint' | 'edict' | 'plain' | 'split' | 'spam', number>>>> = {
  ordinary: { etching: 1.55, mint: 0.9, edict: 0.35, plain: 0.35, split: 0.04, spam: 0.4 },
  rush: { etching: 21, mint: 1, edict: 0.3, plain: 0.3, split: 0.02, spam: 1 },
  mints: { etching: 0.2, mint: 8, edict: 0.3, plain: 0.3, split: 0.02, spam: 0.3 },
  quiet: { etching: 0.15, mint: 0.1, edict: 0.05, plain: 0.05, split: 0.01, spam: 0.1 },
  busy: { etching: 0.3, mint: 0.5, edict: 1.5, plain: 1.5, split: 0.2, spam: 0.5 },
};

/**
 * Special transactions. `every` is the number of blocks between two of them, in a chain as long as mainnet. `size` is the number of
 * outputs, inputs or edicts of each.
 */
const EVENTS = {
  /** Gives outputs to a single address, which then has hundreds of thousands of outputs. */
  collect: { every: 1000, size: 1000 },
  /** Gives a rune to new addresses, so that the rune has 90,000 holders. */
  airdrop: { every: 500, size: 340 },
  /** Spends outputs of any age, also of the first blocks. */
  sweep: { every: 100, size: 40 },
  /** Has a message with many edicts. */
  edicts: { every: 200, size: 60 },
} as const;

/**
 * A transaction with so many edicts to all outputs that it would make more than 10,000 rows. `times` is the number of such transactions in
 * the chain.
 */
const ROWS_SUMMED = { edicts: 101, outputs: 100, times: 3 } as const;

/** Largest number of blocks that `rewind` can remove before it makes another branch. */
const MOST_UNDONE = 130;

/** Largest number of outputs that the maker remembers as spendable, and of runes that it remembers as mintable. */
const MOST_COINS = 200_000;
const MOST_OPEN = 2000;

/** Number of blocks between a commitment and its etching. At least six are required, so `late` makes an invalid etching. */
const COMMITTED = { early: 8, late: 4 } as const;

/** Share of etchings that have a name and need a commitment. The others get reserved names. */
const NAMED = 0.4;

/** Mean age of a spent output, counted in later outputs. For OLD_SHARE of the inputs, the output may have any age. */
const MEAN_AGE = 150;
const OLD_SHARE = 0.3;

/** An output that may have runes. */
interface Coin {
  readonly txid: Uint8Array;
  readonly vout: number;
  readonly runes: readonly Rune[];
}

/** A planned etching: its name, and the output that commits to this name. `commitment` is missing until this output exists. */
interface Planned {
  readonly name: bigint;
  /** Blocks from the commitment to the etching. */
  readonly blocks: number;
  readonly taproot: boolean;
  commitment?: Spend;
}

export interface ChainOptions {
  /** Ends half of the mints that have a last offset within 30 blocks, so that they end in short chains too. */
  readonly endsSoon?: boolean;
  readonly seed: number;
  /** Number of blocks of the complete chain. In a shorter chain, epochs are shorter and events are smaller. */
  readonly blocks: number;
  /**
   * Approximate number of rows of a block. It changes only the rates of mints, transfers and spam. The rates of etchings, and the sizes of
   * events, always equal those of mainnet.
   */
  readonly rows: number;
  /** Height of the first block, 0 by default. */
  readonly first?: number;
}

/** An output that commits to a name. The simulated node must be able to return it. */
export interface CommittedOutput {
  /** Transaction id, in the byte order of hashing. */
  readonly txid: Uint8Array;
  readonly vout: number;
  readonly height: number;
  readonly script: Uint8Array;
}

export interface MadeBlock {
  readonly height: number;
  /** Block hash, in the byte order of hashing. */
  readonly hash: Buffer;
  readonly bytes: Buffer;
  readonly commitments: readonly CommittedOutput[];
}

/** State that blocks change, except the coins (outputs that may have runes). Copied before each block, so that the block can be undone. */
interface State {
  height: number;
  previous: Uint8Array;
  named: number;
  addresses: number;
  /** Runes that can be minted. */
  open: readonly Rune[];
  /** Planned etchings, by height. */
  planned: ReadonlyMap<number, readonly Planned[]>;
  treasury: Readonly<Record<'collect' | 'airdrop', Coin | undefined>>;
}

const FIRST_NAME = nameNumber('REHEARSALAAAAAA');
const SYMBOLS = [0x29c9, 0x24, 0x1f600, 0x202e, 0, 0x22, 0x5c, 0x3c, 0xe000, 0x10ffff];

export class ChainMaker {
  readonly #options: ChainOptions;
  readonly #first: number;
  readonly #scale: number;
  readonly #load: number;
  #random: () => number;
  #coins: Coin[] = [];
  #state: State = {
    height: -1,
    previous: new Uint8Array(32),
    named: 0,
    addresses: 0,
    open: [],
    planned: new Map(),
    treasury: { collect: undefined, airdrop: undefined },
  };
  /** Data that undoes each of the last blocks, in order of height. */
  readonly #undo: { readonly state: State; readonly coins: (() => void)[] }[] = [];
  #salt = 0;
  /** From this height on, a branch has other transactions than the replaced blocks. Below it, only its headers differ. */
  #changedFrom = Infinity;
  #writer = new BlockWriter(0, []);
  #committed: CommittedOutput[] = [];

  constructor(options: ChainOptions) {
    this.#options = options;
    this.#first = options.first ?? 0;
    this.#state = { ...this.#state, height: this.#first - 1 };
    this.#scale = options.blocks / MAINNET.blocks;
    this.#load = Math.max(0, options.rows - FIXED_ROWS) / (ROWS_PER_BLOCK - FIXED_ROWS);
    this.#random = Math.random;
  }

  /** Height of the last block that was made. */
  get height(): number {
    return this.#state.height;
  }

  /** Makes the next block. If `isEmpty` is true, it has no runes. */
  next(isEmpty = false): MadeBlock {
    const height = this.#state.height + 1;
    const { seed } = this.#options;
    const isOther = height >= this.#changedFrom;
    this.#undo.push({ state: this.#state, coins: [] });
    if (this.#undo.length > MOST_UNDONE) this.#undo.shift();
    this.#random = randomNumbers(hash('sha256', `${seed} ${height} ${isOther ? this.#salt : 0}`, 'buffer').readInt32LE(0));
    this.#state = { ...this.#state, height };
    this.#committed = [];
    this.#writer = new BlockWriter(height, isEmpty ? [scriptWithoutAddress(0)] : this.#coinbase());
    if (!isEmpty) this.#fill(height);
    const { bytes, hash: found } = this.#writer.end(this.#state.previous, 1_600_000_000 + 600 * height + this.#salt);
    this.#state.previous = found;
    return { height, hash: found, bytes, commitments: this.#committed };
  }

  /**
   * Removes all blocks above the height `to`, at most MOST_UNDONE. Then `next` makes another branch. Its headers differ, and from
   * `changedFrom` on its transactions differ too. `salt` is different for each branch.
   */
  rewind(to: number, salt: number, changedFrom: number): void {
    while (this.#state.height > to) {
      const undo = this.#undo.pop();
      if (undo === undefined) throw new Error(`block ${this.#state.height} cannot be undone any more`);
      for (const step of undo.coins.reverse()) step();
      this.#state = undo.state;
    }
    this.#salt = salt;
    this.#changedFrom = changedFrom;
  }

  /** Adds the transactions of a block. Most of them are in random order. */
  #fill(height: number): void {
    const kind = this.#kindOf(height);
    const rates = RATES[kind];
    this.#commit(height);
    const work: (() => void)[] = (this.#state.planned.get(height) ?? []).map((planned) => () => this.#etch(planned));
    const add = (mean: number, step: () => void) => {
      for (let left = this.#draw(mean); left > 0; left--) work.push(step);
    };
    add(rates.etching * (1 - NAMED), () => this.#etch(undefined));
    const favourite = this.#favourite(height);
    add(rates.mint * this.#load, () => this.#mint(kind === 'mints' ? favourite : this.#openRune()));
    add(rates.edict * this.#load, () => this.#edict(1));
    add(rates.plain * this.#load, () => this.#plain());
    add(rates.split * this.#load, () => this.#edict(8));
    add(rates.spam * this.#load, () => this.#spam());
    const age = height - this.#first;
    // The events have different positions in their intervals, so that few of them are in the same block.
    Object.entries(EVENTS).forEach(([name, { every, size }], index) => {
      const interval = Math.max(20, Math.round(every * this.#scale));
      if (age < 20 || age % interval !== index * 3) return;
      const scaled = Math.max(6, Math.round((size * interval) / every));
      work.push(() => this.#event(name as keyof typeof EVENTS, Math.min(name === 'sweep' || name === 'edicts' ? size : scaled, scaled)));
    });
    for (let i = 1; i <= ROWS_SUMMED.times; i++) {
      if (age !== Math.floor((i * this.#options.blocks) / (ROWS_SUMMED.times + 1))) continue;
      work.push(() => this.#give('airdrop', ROWS_SUMMED.outputs, ROWS_SUMMED.edicts));
    }
    for (let i = work.length - 1; i > 0; i--) {
      const other = this.#below(i + 1);
      [work[i], work[other]] = [work[other] ?? NOTHING, work[i] ?? NOTHING];
    }
    if (age === 2 || age === 3) work.unshift(() => this.#makeTreasury(age === 2 ? 'airdrop' : 'collect'));
    for (const step of work) step();
    const planned = new Map(this.#state.planned);
    planned.delete(height);
    this.#state.planned = planned;
  }

  #kindOf(height: number): Kind {
    const blocks = Math.max(5, Math.round(EPOCH_BLOCKS * this.#scale));
    const epoch = Math.floor((height - this.#first) / blocks) % EPOCHS;
    return (
      (Object.entries(KINDS).find(([, epochs]) => (epochs as readonly number[]).includes(epoch))?.[0] as Kind | undefined) ?? 'ordinary'
    );
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  #chance(share: number): boolean {
    return this.#random() < share;
  }

  /** Draws a random integer with this mean. */
  #draw(mean: number): number {
    return Math.floor(2 * mean * this.#random() + this.#random());
  }

  /**
   * Returns a script to receive runes. Most scripts belong to one of many known addresses, some to a new address, and a few to no address.
   */
  #script(): Uint8Array {
    const draw = this.#random();
    if (draw < 0.05) return scriptWithoutAddress(this.#below(1000));
    if (draw < 0.2) return this.#newAddress();
    return addressScript(this.#options.seed, Math.floor(this.#random() ** 2 * Math.max(20, this.#options.blocks * 0.2)));
  }

  #newAddress(): Uint8Array {
    return addressScript(this.#options.seed, 1e9 + this.#state.addresses++);
  }

  #log(undo: () => void): void {
    this.#undo.at(-1)?.coins.push(undo);
  }

  #keep(txid: Uint8Array, vout: number, runes: readonly Rune[]): void {
    const coin = { txid, vout, runes: runes.slice(0, 200) };
    if (this.#coins.length < MOST_COINS) {
      this.#coins.push(coin);
      this.#log(() => this.#coins.pop());
      return;
    }
    const index = this.#below(this.#coins.length);
    const forgotten = this.#coins[index] ?? coin;
    this.#coins[index] = coin;
    this.#log(() => {
      this.#coins[index] = forgotten;
    });
  }

  /** Takes a coin and removes it from the coins. It is one of the youngest, or a coin of any age if `old` is true. */
  #take(old = this.#chance(OLD_SHARE)): Coin | undefined {
    const coins = this.#coins;
    const age = old ? this.#below(coins.length) : Math.floor(-Math.log(1 - this.#random()) * MEAN_AGE * Math.max(1, this.#load));
    const index = coins.length - 1 - Math.min(age, coins.length - 1);
    const coin = coins[index];
    const last = coins.at(-1);
    if (coin === undefined || last === undefined) return undefined;
    coins[index] = last;
    coins.pop();
    this.#log(() => {
      coins.push(last);
      coins[index] = coin;
    });
    return coin;
  }

  /**
   * Returns an input whose spent output is not in the chain and has no runes. No two blocks draw the same input, because equal transactions
   * would have equal ids.
   */
  #otherInput(): Spend {
    return { txid: hash('sha256', `other ${this.#state.height} ${this.#random()}`, 'buffer'), vout: this.#below(3) };
  }

  #coinbase(): Uint8Array[] {
    const outputs = [scriptWithoutAddress(0)];
    if (this.#chance(0.01)) outputs.push(addressScript(this.#options.seed, 1), messageScript([2, 1, 6, 1000, 1, 3]));
    if (this.#chance(0.01)) outputs.push(messageScript(mintOf(this.#openRune())));
    return outputs;
  }

  /** Plans the named etchings of a later block. Writes the commitments to those names whose commitment belongs here. */
  #commit(height: number): void {
    const planned = new Map(this.#state.planned);
    const target = height + COMMITTED.early;
    const count = this.#draw(RATES[this.#kindOf(target)].etching * NAMED);
    planned.set(
      target,
      Array.from({ length: count }, () => this.#plan()),
    );
    const due = [COMMITTED.early, COMMITTED.late].flatMap((blocks) =>
      (planned.get(height + blocks) ?? []).filter((one) => one.blocks === blocks),
    );
    if (due.length > 0) {
      const scripts = due.map(({ name, taproot }) => {
        const key = hash('sha256', `commitment ${name} ${height}`, 'buffer');
        return taproot ? Buffer.concat([Uint8Array.of(0x51, 32), key]) : Buffer.concat([Uint8Array.of(0, 20), key.subarray(0, 20)]);
      });
      const txid = this.#writer.add([this.#otherInput()], [...scripts, this.#script()]);
      due.forEach((one, vout) => {
        this.#committed.push({ txid, vout, height, script: scripts[vout] ?? new Uint8Array() });
        const at = height + one.blocks;
        planned.set(
          at,
          (planned.get(at) ?? []).map((other) => (other === one ? { ...one, commitment: { txid, vout } } : other)),
        );
      });
    }
    this.#state.planned = planned;
  }

  #plan(): Planned {
    const draw = this.#random();
    const index = this.#state.named++;
    // Some names are already taken, and some are too short for their height. Both make the etching invalid.
    const name =
      draw < 0.03 && index > 0
        ? FIRST_NAME + BigInt(this.#below(index))
        : draw < 0.06
          ? BigInt(this.#below(26 ** (4 + this.#below(6))))
          : FIRST_NAME + BigInt(index);
    return { name, blocks: this.#chance(0.04) ? COMMITTED.late : COMMITTED.early, taproot: !this.#chance(0.03) };
  }

  /** Etches a planned name, or a rune with a reserved name. */
  #etch(planned: Planned | undefined): void {
    const id = { block: this.#state.height, tx: this.#writer.transactions };
    const fields: (bigint | number)[] = [];
    const hasTerms = this.#chance(0.45);
    fields.push(2, 1 + (hasTerms ? 2 : 0) + (this.#chance(0.3) ? 4 : 0));
    if (planned) fields.push(4, planned.name);
    if (this.#chance(0.8)) fields.push(1, this.#chance(0.02) ? 38 : this.#below(10));
    if (this.#chance(0.5)) fields.push(3, this.#below(2 ** 14));
    if (this.#chance(0.7)) fields.push(5, SYMBOLS[this.#below(SYMBOLS.length)] ?? 0x24);
    if (this.#chance(0.8)) fields.push(6, this.#amount());
    if (hasTerms) {
      if (this.#chance(0.95)) fields.push(8, this.#chance(0.5) ? 1 + this.#below(60) : 1_000_000_000);
      if (this.#chance(0.95)) fields.push(10, this.#chance(0.05) ? 0 : 1 + this.#below(1_000_000));
      if (this.#chance(0.1)) fields.push(12, this.#state.height + this.#below(20));
      if (this.#chance(0.1)) fields.push(14, this.#state.height + 10 + this.#below(3000));
      if (this.#chance(0.1)) fields.push(16, this.#below(20));
      if (this.#chance(0.1)) fields.push(18, 10 + this.#below(this.#options.endsSoon === true && this.#chance(0.5) ? 20 : 3000));
    }
    const pointer = this.#chance(0.3) ? this.#below(3) : undefined;
    if (pointer !== undefined) fields.push(22, pointer);
    // An edict of the newly etched rune sends a part of the premine to an output.
    if (this.#chance(0.2)) fields.push(0, 0, 0, this.#below(1000), this.#below(4));
    const outputs = [this.#script(), messageScript(fields, this.#below(4)), this.#script()];
    const inputs: Spend[] = [];
    const commitment = planned?.commitment;
    if (commitment) {
      const pushed = this.#chance(0.03) ? planned.name + 1n : planned.name;
      const annex = this.#chance(0.05) ? [Uint8Array.of(0x50, 1, 2)] : [];
      inputs.push({ ...commitment, witness: [new Uint8Array(64), tapscriptOf(commitmentOf(pushed)), new Uint8Array(33), ...annex] });
    }
    const coin = this.#chance(0.1) ? this.#take() : undefined;
    if (coin) inputs.push(coin);
    if (inputs.length === 0) inputs.push(this.#otherInput());
    const txid = this.#writer.add(inputs, outputs);
    this.#keep(txid, pointer === 2 ? 2 : 0, [id, ...(coin?.runes ?? [])]);
    if (hasTerms) {
      const open = [...this.#state.open, id];
      if (open.length > MOST_OPEN) open.splice(this.#below(open.length), 1);
      this.#state.open = open;
    }
  }

  #amount(): bigint {
    if (this.#chance(0.01)) return this.#state.height % 2 === 0 ? 2n ** 127n : 2n ** 128n - 1n;
    return BigInt(this.#below(1_000_000)) * 10n ** BigInt(this.#below(12));
  }

  #openRune(): Rune {
    const { open, height } = this.#state;
    if (this.#chance(0.05) || open.length === 0) return { block: this.#below(height + 2), tx: this.#below(50) };
    return open[Math.floor(this.#random() ** 2 * open.length)] ?? NO_RUNE;
  }

  /** Returns the rune that all blocks of an epoch of kind `mints` mint. */
  #favourite(height: number): Rune {
    const { open } = this.#state;
    const epoch = Math.floor(height / Math.max(5, Math.round(EPOCH_BLOCKS * this.#scale)));
    return open[(epoch * 7919) % Math.max(1, open.length)] ?? NO_RUNE;
  }

  #mint(rune: Rune): void {
    const pointer = this.#chance(0.05) ? [22, 0] : [];
    const txid = this.#writer.add([this.#otherInput()], [messageScript([...mintOf(rune), ...pointer], this.#below(4)), this.#script()]);
    // If `pointer` is set, the runes go to the output of the message, which burns them. So the transaction has no coin to keep.
    if (pointer.length === 0) this.#keep(txid, 1, [rune]);
  }

  /** Moves a part of an output's runes with edicts. */
  #edict(count: number): void {
    const coin = this.#take();
    if (!coin) return;
    const edicts = Array.from({ length: count }, (_, i) => ({
      rune: coin.runes[this.#below(coin.runes.length)] ?? NO_RUNE,
      amount: this.#chance(0.1) ? 0 : 1 + this.#below(count === 1 ? 100_000 : 100),
      // A few edicts name the message's output, which burns the runes. A few name all outputs.
      output: this.#chance(0.03) ? 1 : this.#chance(0.03) ? 2 + count : i === 0 ? 0 : 1 + i,
    }));
    const pointer = this.#chance(0.05) ? [22, this.#chance(0.3) ? 1 : 0] : [];
    const outputs = [this.#script(), messageScript([...pointer, ...edictsOf(edicts)], this.#below(4))];
    for (let i = 0; i < count; i++) outputs.push(this.#script());
    const txid = this.#writer.add([this.#otherInput(), coin], outputs);
    outputs.forEach((_, vout) => {
      if (vout !== 1) this.#keep(txid, vout, coin.runes);
    });
  }

  /** Moves all runes of an output, without a message. */
  #plain(): void {
    const coin = this.#take();
    if (!coin) return;
    const outputs = [this.#script(), this.#script()];
    // Some transactions have an OP_RETURN with other data before the output that gets the runes.
    const isMarked = this.#chance(0.1);
    if (isMarked) outputs.unshift(Uint8Array.of(0x6a, 4, 1, 2, 3, 4));
    this.#keep(this.#writer.add([coin, this.#otherInput()], outputs), isMarked ? 1 : 0, coin.runes);
  }

  /** Adds a transaction with a malformed or empty message. Some of its inputs have runes. */
  #spam(): void {
    const inputs: Spend[] = [this.#otherInput()];
    const coin = this.#chance(0.15) ? this.#take() : undefined;
    if (coin) inputs.push(coin);
    const message = SPAM[this.#below(SPAM.length)];
    this.#writer.add(inputs, [message?.(this.#openRune(), this.#state.height) ?? this.#script(), this.#script()]);
  }

  #event(name: keyof typeof EVENTS, size: number): void {
    if (name === 'collect' || name === 'airdrop') this.#give(name, size, 1);
    else if (name === 'sweep') this.#sweep(size);
    else this.#manyEdicts(size);
  }

  /** Etches a rune for an event (`collect` or `airdrop`) to distribute later. */
  #makeTreasury(name: 'collect' | 'airdrop'): void {
    const id = { block: this.#state.height, tx: this.#writer.transactions };
    const fields = [2, 1, 1, name === 'collect' ? 0 : 2, 5, 0x29c9, 6, 10n ** 15n];
    const txid = this.#writer.add([this.#otherInput()], [addressScript(this.#options.seed, 2e9), messageScript(fields)]);
    this.#state.treasury = { ...this.#state.treasury, [name]: { txid, vout: 0, runes: [id] } };
  }

  /**
   * Distributes runes of an event's treasury to all outputs of a transaction. The outputs belong to one collecting address, or to new
   * addresses.
   */
  #give(name: 'collect' | 'airdrop', outputs: number, edicts: number): void {
    const coin = this.#state.treasury[name];
    const [rune] = coin?.runes ?? [];
    if (!coin || !rune) return;
    const collector = addressScript(this.#options.seed, 3e9 + (this.#chance(0.2) ? 1 : 0));
    const scripts = [addressScript(this.#options.seed, 2e9)];
    for (let i = 0; i < outputs; i++) scripts.push(name === 'collect' ? collector : this.#newAddress());
    const all = { rune, amount: 1 + this.#below(50), output: outputs + 2 };
    // If rows are summed, the sums also have a part of a premine that burns, which nobody sent.
    const burned = edicts > 1 ? [{ rune: { block: 0, tx: 0 }, amount: 7, output: outputs + 1 }] : [];
    const fields = [...(edicts > 1 ? [2, 1, 6, 1000] : []), 22, 0];
    scripts.push(messageScript([...fields, ...edictsOf([...burned, ...new Array<typeof all>(edicts).fill(all)])], this.#below(4)));
    const txid = this.#writer.add([coin, this.#otherInput()], scripts);
    for (let vout = 1; vout <= outputs; vout++) this.#keep(txid, vout, [rune]);
    this.#state.treasury = { ...this.#state.treasury, [name]: { txid, vout: 0, runes: [rune] } };
  }

  /** Spends many outputs of any age in one transaction. */
  #sweep(size: number): void {
    const coins = Array.from({ length: size }, () => this.#take(true)).filter((coin) => coin !== undefined);
    const runes = [...new Map(coins.flatMap((coin) => coin.runes.map((rune) => [`${rune.block}:${rune.tx}`, rune] as const))).values()];
    const outputs = [this.#script(), this.#script(), this.#script()];
    if (this.#chance(0.5)) {
      const edicts = runes.slice(0, 20).map((rune) => ({ rune, amount: this.#below(50), output: this.#below(4) }));
      outputs.push(messageScript([22, this.#below(3), ...edictsOf(edicts)], this.#below(4)));
    } else if (this.#chance(0.1)) outputs.push(messageScript([126, 0]));
    const txid = this.#writer.add(coins, outputs);
    for (let vout = 0; vout < 3; vout++) this.#keep(txid, vout, runes);
  }

  /** Spends an output with many different runes. The message has many edicts. */
  #manyEdicts(size: number): void {
    let best = this.#take(true);
    for (let tries = 0; tries < 8; tries++) {
      const other = this.#take(true);
      if (!other) continue;
      const [more, less] = best && best.runes.length >= other.runes.length ? [best, other] : [other, best];
      best = more;
      if (less) this.#keep(less.txid, less.vout, less.runes);
    }
    const coin = best;
    if (!coin) return;
    const outputs = Array.from({ length: 5 }, () => this.#script());
    const edicts = Array.from({ length: size }, () => ({
      rune: coin.runes[this.#below(coin.runes.length)] ?? NO_RUNE,
      amount: this.#below(20),
      output: this.#below(7),
    }));
    const txid = this.#writer.add([coin], [...outputs, messageScript(edictsOf(edicts))]);
    outputs.forEach((_, vout) => {
      this.#keep(txid, vout, coin.runes);
    });
  }
}

const NOTHING = (): void => undefined;
const NO_RUNE: Rune = { block: 1, tx: 0 };
const mintOf = ({ block, tx }: Rune): number[] => [20, block, 20, tx];
