/** Indexes a block by ord's rules: computes the rows of activity and the changes to the ledger, from the block and the ledger before it. */
import { addressOf, hasAddress } from './address.ts';
import { Allocation } from './allocation.ts';
import { copyOf, type Hash256, hashText, outpointText, sameBytes, uint32At } from './bytes.ts';
import { type Event, emitMoves, type LedgerRow, type RuneRow } from './ledgerRows.ts';
import { isMintOpen, mintWindow } from './mintTerms.ts';
import { commitmentOf, FIRST_RESERVED, minimumName, nameNumber, nameText, reservedName, spacedName } from './name.ts';
import type { Network } from './networks.ts';
import { type Block, OUTPOINT_BYTES, scriptOf, type TransactionPlace, witnessEndsOf } from './parseBlock.ts';
import { knownId, type RuneId, runeId, runeIdText } from './runeId.ts';
import { type Etching, MAX_U128, type Message, type MessageId } from './runestone.ts';
import { isOpReturn, isTaproot, pushes, tapscriptOf } from './script.ts';
import type { Changes, Ledger, Mintable, NewOutput, NewRune, RuneOutput } from './unspentLedger.ts';

/** Minimum confirmations of the output that commits to a name when it is etched. The etching's block counts as one. */
export const CONFIRMATIONS = 6;

/** Output that a transaction spends, and the height of the block that created it. */
export interface PreviousOutput {
  readonly script: Uint8Array;
  readonly height: number;
}

/** Input whose spent output may be the commitment to a name: index of its transaction in the block, and its own index. */
export interface Commitment {
  readonly transaction: number;
  readonly input: number;
}

export interface Indexing {
  readonly height: number;
  readonly network: Network;
  readonly ledger: Ledger;
  readonly hash256: Hash256;
  /** Returns the spent output of an input that `commitmentsOf` lists. */
  readonly previousOutput: (commitment: Commitment) => PreviousOutput;
  /** Receives the rows of the table `ledger`, in order. Rows are not collected, because a transaction may have millions. */
  readonly emit: (row: LedgerRow) => void;
}

/**
 * Lists the inputs whose spent outputs `indexBlock` needs: inputs of etchings that pass all other checks. With the ledger of an earlier
 * block, as when blocks are fetched ahead, the list may have more inputs than needed.
 */
export function commitmentsOf(block: Block, { height, network, ledger }: Pick<Indexing, 'height' | 'network' | 'ledger'>): Commitment[] {
  const minimum = minimumName(height, network);
  return block.transactions.flatMap((transaction, index) => {
    const name = transaction.message && etchedName(transaction.message);
    if (name === undefined || !mayBeEtched(name, minimum, ledger)) return [];
    return committingInputs(block, transaction, name).map((input) => ({ transaction: index, input }));
  });
}

/** Returns the name of the rune that a message etches, as a number. Undefined for an etching without a name, and for none. */
export const etchedName = (message: Message): bigint | undefined => (message.kind === 'cenotaph' ? message.etching : message.etching?.rune);

const mayBeEtched = (name: bigint, minimum: bigint, ledger: Ledger): boolean =>
  name >= minimum && name < FIRST_RESERVED && !ledger.nameTaken(name);

/** Lists the inputs with a tapscript that pushes the name. */
function committingInputs(block: Block, transaction: TransactionPlace, name: bigint): number[] {
  const commitment = commitmentOf(name);
  return witnessEndsOf(block, transaction).flatMap((witness, input) => {
    const tapscript = tapscriptOf(witness);
    return tapscript && pushes(tapscript, commitment) ? [input] : [];
  });
}

/** Indexes a block: emits its rows, and returns the changes of the ledger. */
export function indexBlock(block: Block, indexing: Indexing): Changes {
  const state = new BlockIndexer(block, indexing);
  if (indexing.height >= indexing.network.firstHeight) {
    if (indexing.network.seeded && indexing.height === indexing.network.firstHeight) state.addUncommonGoods();
    for (const [index, transaction] of block.transactions.entries()) state.index(transaction, index);
  }
  return state.changes();
}

const NO_SCRIPT = new Uint8Array();

/** Returns a hash of the outpoint at `at`, different for all outputs of a transaction. Engines store 32 bits without a number object. */
const bucketOf = (bytes: Uint8Array, at: number): number => uint32At(bytes, at) ^ Math.imul(uint32At(bytes, at + 32), 0x9e3779b1);

/** Output of this block that has runes. */
interface OwnOutput extends NewOutput {
  spent: boolean;
  /** An earlier output with the same `bucketOf`. */
  readonly before: OwnOutput | undefined;
}

/** Output that a transaction spends, and the offset of its outpoint in the block. */
interface SpentOutput {
  readonly at: number;
  readonly output: RuneOutput;
}

/** Indexes the transactions of a block one by one, in order. */
export class BlockIndexer {
  readonly #minimum: bigint;
  readonly #spent: Uint8Array[] = [];
  /** Outputs of this block that received runes, in order. */
  readonly #created: OwnOutput[] = [];
  /** For each value of `bucketOf`, the last output whose outpoint has this value. */
  readonly #buckets = new Map<number, OwnOutput>();
  readonly #runes: NewRune[] = [];
  readonly #names = new Set<bigint>();
  /** Runes that were minted or etched in this block, with their mints so far. */
  readonly #minted = new Map<RuneId, Mintable>();
  readonly #addresses = new Map<number, { readonly script: Uint8Array; readonly address: string | null }>();

  constructor(
    readonly block: Block,
    readonly indexing: Indexing,
  ) {
    this.#minimum = minimumName(indexing.height, indexing.network);
  }

  /** Returns the changes of all transactions that were indexed. */
  changes(): Changes {
    const own = new Set(this.#runes.map(({ id }) => id));
    return {
      spent: this.#spent,
      created: this.#created.filter(({ spent }) => !spent),
      runes: this.#runes.map((rune) => ({ ...rune, mints: this.#minted.get(rune.id)?.mints ?? 0 })),
      mints: new Map(
        [...this.#minted]
          .filter(([id]) => !own.has(id))
          .map(([id, { mints }]) => [id, mints - (this.indexing.ledger.rune(id)?.mints ?? 0)]),
      ),
    };
  }

  #addRune(rune: NewRune): void {
    this.#runes.push(rune);
    this.#names.add(rune.name);
    this.#minted.set(rune.id, { block: rune.block, terms: rune.terms, mints: 0 });
  }

  /** Indexes the next transaction. `index` is its index in the block. Returns the rune that it etches. */
  index(transaction: TransactionPlace, index: number): NewRune | undefined {
    const { message } = transaction;
    const spent = this.#spend(transaction);
    if (spent.length === 0 && !message) return undefined;
    const allocation = new Allocation(burnedOutputs(this.block, transaction));
    for (const { output } of spent) for (const { rune, amount } of output.balances) allocation.add(rune, amount, output.script);
    const emit = this.#emitter(transaction, index, spent);
    const move = (others: number) => emitMoves(allocation, emit, (script) => this.#addressOf(script), others);
    const mint = message?.mint && this.#mint(message.mint);
    const etched = message && this.#etch(message, transaction, index);

    if (message?.kind === 'cenotaph') {
      allocation.burn();
      move((etched ? 1 : 0) + (mint ? 2 : 0));
      if (etched) emit({ rune: etched.id, operation: 'etching' });
      if (mint) emit({ ...mint, operation: 'mint' });
      if (mint && mint.amount > 0n) emit({ ...mint, operation: 'burn' });
    } else {
      if (etched) {
        emit({ rune: etched.id, operation: 'etching' });
        allocation.add(etched.id, etched.row.premine);
      }
      if (mint) {
        emit({ ...mint, operation: 'mint' });
        allocation.add(mint.rune, mint.amount);
      }
      for (const { id, amount, output } of message?.edicts ?? []) {
        if (id.block !== 0n || id.tx !== 0n) allocation.edict(knownId(id), amount, output);
        else if (etched) allocation.edict(etched.id, amount, output);
      }
      allocation.rest(message?.pointer ?? allocation.destinations[0]);
      move((etched ? 1 : 0) + (mint ? 1 : 0));
      this.#create(allocation, transaction, index);
    }
    if (etched) this.#addRune(etched);
    return etched;
  }

  /** Returns the outputs with runes that a transaction spends, and marks them as spent. */
  #spend({ firstInput, inputs }: TransactionPlace): SpentOutput[] {
    const { bytes, inputs: outpoints } = this.block;
    const spent: SpentOutput[] = [];
    for (let i = firstInput; i < firstInput + inputs; i++) {
      const at = outpoints[i] ?? 0;
      let own = this.#buckets.get(bucketOf(bytes, at));
      while (own && !sameBytes(own.outpoint, 0, bytes, at, OUTPOINT_BYTES)) own = own.before;
      const output = own ?? this.indexing.ledger.output(bytes, at);
      if (!output) continue;
      if (own) own.spent = true;
      else this.#spent.push(copyOf(bytes, at, at + OUTPOINT_BYTES));
      spent.push({ at, output });
    }
    return spent;
  }

  /** Counts and returns a mint. Returns undefined if the rune does not exist or cannot be minted at this height. */
  #mint(id: MessageId): { rune: RuneId; amount: bigint } | undefined {
    const rune = knownId(id);
    const found = this.#minted.get(rune) ?? this.indexing.ledger.rune(rune);
    if (!found?.terms) return undefined;
    const { heightStart, offsetStart, heightEnd, offsetEnd, cap } = found.terms;
    const window = mintWindow(found.block, [heightStart, offsetStart], [heightEnd, offsetEnd]);
    if (!isMintOpen(window, this.indexing.height, found.mints, cap)) return undefined;
    this.#minted.set(rune, { ...found, mints: found.mints + 1 });
    return { rune, amount: found.terms.amount ?? 0n };
  }

  /** Returns the rune that a message etches. Returns undefined if it has no valid etching. */
  #etch(message: Message, transaction: TransactionPlace, index: number): NewRune | undefined {
    if (message.etching === undefined) return undefined;
    const { height, ledger } = this.indexing;
    const given = etchedName(message);
    if (given !== undefined) {
      if (!mayBeEtched(given, this.#minimum, ledger) || this.#names.has(given) || !this.#isCommitted(transaction, index, given))
        return undefined;
    }
    return this.#newRune(index, given ?? reservedName(height, index), message.kind === 'cenotaph' ? undefined : message.etching);
  }

  /** Creates the rune that a transaction etches. For a cenotaph, `etching` is undefined: no premine, no terms. */
  #newRune(index: number, name: bigint, etching: Etching | undefined): NewRune {
    const { block } = this;
    const { height, ledger } = this.indexing;
    const id = runeId(height, index);
    const terms = etching?.terms;
    const row: RuneRow = {
      id: runeIdText(id),
      number: ledger.runes + this.#runes.length,
      name: nameText(name),
      spaced_name: spacedName(nameText(name), etching?.spacers ?? 0),
      block_hash: block.hash,
      block_height: height,
      tx_index: index,
      tx_id: hashText(block.txids, 32 * index),
      divisibility: etching?.divisibility ?? 0,
      premine: etching?.premine ?? 0n,
      // NUL is a valid symbol, but databases and most programs reject it.
      symbol: etching ? (etching.symbol ?? '¤').replace('\0', '') : '',
      terms_amount: terms?.amount ?? null,
      terms_cap: terms?.cap ?? null,
      terms_height_start: terms?.heightStart ?? null,
      terms_height_end: terms?.heightEnd ?? null,
      terms_offset_start: terms?.offsetStart ?? null,
      terms_offset_end: terms?.offsetEnd ?? null,
      turbo: etching?.turbo ?? false,
      cenotaph: !etching,
      timestamp: block.time,
    };
    return { id, name, block: height, terms, mints: 0, row };
  }

  /** Adds the first rune, which no transaction etched. */
  addUncommonGoods(): void {
    const name = nameNumber('UNCOMMONGOODS');
    const terms = { amount: 1n, cap: MAX_U128, heightStart: 840_000n, heightEnd: 1_050_000n, offsetStart: undefined, offsetEnd: undefined };
    const etching: Etching = { rune: name, divisibility: 0, premine: 0n, spacers: 128, symbol: '⧉', terms, turbo: true };
    const { row, ...rune } = this.#newRune(0, name, etching);
    const id = runeId(1, 0);
    this.#addRune({ ...rune, id, block: 1, row: { ...row, id: runeIdText(id), number: 0, tx_id: '', timestamp: 0 } });
  }

  #isCommitted(transaction: TransactionPlace, index: number, name: bigint): boolean {
    return committingInputs(this.block, transaction, name).some((input) => {
      const previous = this.indexing.previousOutput({ transaction: index, input });
      return isTaproot(previous.script) && this.indexing.height - previous.height + 1 >= CONFIRMATIONS;
    });
  }

  #create(allocation: Allocation, transaction: TransactionPlace, index: number): void {
    const balances = new Map<number, { rune: RuneId; amount: bigint }[]>();
    for (const { rune, pieces } of allocation.queues()) {
      for (const [output, amount] of allocation.sums(pieces)) {
        if (allocation.isBurned(output)) continue;
        const others = balances.get(output);
        if (others) others.push({ rune, amount });
        else balances.set(output, [{ rune, amount }]);
      }
    }
    const txid = this.block.txids.subarray(32 * index, 32 * index + 32);
    for (const [output, runes] of balances) {
      const outpoint = new Uint8Array(OUTPOINT_BYTES);
      outpoint.set(txid);
      for (let i = 0; i < 4; i++) outpoint[32 + i] = output >> (8 * i);
      const script = scriptOf(this.block, transaction, output);
      const [bucket, kept] = [bucketOf(outpoint, 0), hasAddress(script) ? copyOf(script) : NO_SCRIPT];
      const created = { outpoint, script: kept, balances: runes, spent: false, before: this.#buckets.get(bucket) };
      this.#created.push(created);
      this.#buckets.set(bucket, created);
    }
  }

  /** Returns a function that makes the rows of a transaction: adds the columns that its events share. */
  #emitter(transaction: TransactionPlace, index: number, spent: readonly SpentOutput[]): (event: Event) => void {
    const { block, indexing } = this;
    const txId = hashText(block.txids, 32 * index);
    const outpoints = spent.map(({ at, output }) => {
      const address = this.#addressOf(output.script);
      return `${outpointText(block.bytes, at)}${address === null ? '' : `:${address}`}`;
    });
    let events = 0;
    return ({ rune, operation, output = null, sender, amount = null }) => {
      const receiver = output === null || operation === 'burn' ? null : this.#addressOf(scriptOf(block, transaction, output));
      indexing.emit({
        rune_id: runeIdText(rune),
        block_hash: block.hash,
        block_height: indexing.height,
        tx_index: index,
        event_index: events,
        tx_id: txId,
        output,
        address: operation === 'receive' ? receiver : sender ? this.#addressOf(sender) : null,
        receiver_address: operation === 'send' ? receiver : null,
        amount,
        operation,
        timestamp: block.time,
        // A transaction that spends runes always has a first row, because its runes are moved or burned.
        spent: events === 0 ? outpoints.join() || null : null,
      });
      events += 1;
    };
  }

  #addressOf(script: Uint8Array): string | null {
    if (!hasAddress(script)) return null;
    // Caches addresses, because many transactions of a block share them. The key is a part of the hash in the script.
    const key = uint32At(script, 4) ^ uint32At(script, 8);
    const known = this.#addresses.get(key);
    if (known && known.script.length === script.length && sameBytes(known.script, 0, script, 0, script.length)) return known.address;
    const address = addressOf(script, this.indexing.network, this.indexing.hash256);
    this.#addresses.set(key, { script, address });
    return address;
  }
}

function burnedOutputs({ bytes, scripts, scriptLengths }: Block, { firstOutput, outputs }: TransactionPlace): boolean[] {
  const burned: boolean[] = [];
  for (let i = firstOutput; i < firstOutput + outputs; i++) burned.push(isOpReturn(bytes, scripts[i] ?? 0, scriptLengths[i] ?? 0));
  return burned;
}
