/**
 * Verifies that records add up. In the rows of a node, no rune appears or vanishes within a transaction, and no address
 * sends more than it received. A wrong sender breaks the latter, and files of pages do not show it otherwise. Records of
 * other sources may be wrong in known ways (docs/rows.md), so their runes are only named.
 */
import { joinedParts, partsOf } from '../archiver/unitSql.ts';
import type { Manifest } from '../contract/schemas.ts';
import { exceeds, type WorkLimits } from '../limits.ts';
import { type Store, text } from '../store/duckdb.ts';
import type { Activity } from './blocks.ts';
import type { EtchingsVerification } from './etchings.ts';
import { type Findings, PULL_ANEW } from './findings.ts';
import type { ScratchStore } from './scratchStore.ts';

/** Balances below zero that are named. */
const MOST_NAMED = 20;

const MIXED = -1;

/** Sums of the records of a rune in a transaction, in smallest units. */
interface Moves {
  readonly rune: string;
  readonly place: string;
  isEtched: boolean;
  minted: bigint;
  received: bigint;
  sent: bigint;
  /** Burned without an address: mints and premines that no output receives, and what scripts without an address had. */
  burned: bigint;
  /** What scripts without an address received and did not send. */
  unaddressed: bigint;
}

/** A rune with balances below zero, and one of their addresses. */
interface Unbalanced {
  readonly rune: string;
  readonly address: string;
}

type SumLimits = Pick<WorkLimits, 'summedAtOnce'>;

export class LedgerVerification {
  readonly #isFromNode: boolean;
  readonly #limits: SumLimits;
  readonly #store: Store;
  readonly #findings: Findings;
  /** Sums by rune and address. Undefined if older blocks are missing, so that nobody can tell balances. */
  #sums: Map<string, bigint> | undefined;
  /** What scripts without an address have, by rune. Only of a node: no other source has rows of all of them. */
  readonly #unaddressed = new Map<string, bigint>();
  /** Decimals of the amounts of each rune. Only wrong data has several for a rune, and then its amounts cannot be added. */
  readonly #decimals = new Map<string, number>();
  /** Premines of runes, in smallest units. Undefined if the mirror has no etchings. */
  readonly #premines: ReadonlyMap<string, bigint> | undefined;

  private constructor(
    isFromNode: boolean,
    isComplete: boolean,
    premines: ReadonlyMap<string, bigint> | undefined,
    limits: SumLimits,
    store: Store,
    findings: Findings,
  ) {
    this.#isFromNode = isFromNode;
    this.#premines = premines;
    this.#limits = limits;
    this.#sums = isComplete ? new Map() : undefined;
    this.#store = store;
    this.#findings = findings;
  }

  /** Returns undefined for an output of which neither can be checked. */
  static async of(
    { sources = [], lists }: Manifest,
    etchings: EtchingsVerification | undefined,
    { store }: ScratchStore,
    limits: SumLimits,
    findings: Findings,
  ): Promise<LedgerVerification | undefined> {
    const isFromNode = lists?.outputs !== undefined || (sources.length > 0 && sources.every(({ rules }) => rules === 'ord'));
    const isComplete = lists?.etchings?.counts === true;
    if (!isFromNode && !isComplete) return undefined;
    await store.run('CREATE TEMP TABLE sums (rune VARCHAR, address VARCHAR, upper HUGEINT, lower HUGEINT)');
    const premines = isFromNode ? await etchings?.premines() : undefined;
    return new LedgerVerification(isFromNode, isComplete, premines, limits, store, findings);
  }

  /** Adds the records of a block, in served order. */
  async add(records: readonly Activity[]): Promise<void> {
    let [txId, moves] = ['', new Map<string, Moves>()];
    for (const record of records) {
      if (record.location.tx_id !== txId) {
        this.#endTransaction(moves);
        [txId, moves] = [record.location.tx_id, new Map()];
      }
      this.#move(record, moves);
    }
    this.#endTransaction(moves);
    if (exceeds(this.#limits, 'summedAtOnce', this.#sums?.size ?? 0)) await this.#flush();
  }

  #move({ rune, operation, address, amount = '0', location }: Activity, moves: Map<string, Moves>): void {
    const units = BigInt(amount.replace('.', ''));
    const decimals = amount.includes('.') ? amount.length - amount.indexOf('.') - 1 : 0;
    if (units !== 0n && this.#decimals.get(rune.id) !== decimals)
      this.#decimals.set(rune.id, this.#decimals.has(rune.id) ? MIXED : decimals);
    const change = operation === 'receive' ? units : operation === 'send' || operation === 'burn' ? -units : 0n;
    if (address !== undefined && change !== 0n && this.#sums !== undefined) {
      const key = `${rune.id} ${address}`;
      this.#sums.set(key, (this.#sums.get(key) ?? 0n) + change);
    }
    if (!this.#isFromNode) return;
    let sums = moves.get(rune.id);
    if (sums === undefined) {
      const place = `block ${location.block_height}: transaction ${location.tx_id}`;
      sums = { rune: rune.id, place, isEtched: false, minted: 0n, received: 0n, sent: 0n, burned: 0n, unaddressed: 0n };
      moves.set(rune.id, sums);
    }
    if (operation === 'etching') sums.isEtched = true;
    else if (operation === 'mint') sums.minted += units;
    else if (operation === 'receive') sums.received += units;
    else if (operation === 'send') sums.sent += units;
    else if (address === undefined) sums.burned += units;
    if (address === undefined && operation !== 'burn') sums.unaddressed += change;
  }

  #endTransaction(moves: ReadonlyMap<string, Moves>): void {
    for (const sums of moves.values()) {
      const premine = sums.isEtched ? this.#premines?.get(sums.rune) : 0n;
      if (premine !== undefined) this.#conserve(sums, sums.minted + premine);
    }
  }

  /**
   * Checks that outputs receive what is sent, and what is minted or premined as far as it is not burned. `made` is the
   * mints and the premine of the transaction.
   */
  #conserve({ rune, place, received, sent, burned, unaddressed }: Moves, made: bigint): void {
    const unreceived = made + sent - received;
    if (unreceived < 0n || unreceived > burned) {
      this.#findings.add(
        `${place} does not conserve rune ${rune}: outputs receive ${received} units, but ${sent} are sent, ${made} are made, and ${burned} burned without an address`,
        PULL_ANEW,
      );
    }
    const change = unaddressed - (burned - unreceived);
    if (change !== 0n) this.#unaddressed.set(rune, (this.#unaddressed.get(rune) ?? 0n) + change);
  }

  async #flush(): Promise<void> {
    const rows = [...(this.#sums ?? [])].map(([key, units]) => [key, String(units)]);
    await this.#store.append('new_sums', { key: 'VARCHAR', units: 'VARCHAR' }, rows);
    await this.#store.run(`INSERT INTO sums
      SELECT split_part(key, ' ', 1), substr(key, position(' ' IN key) + 1), ${partsOf('units')} FROM new_sums`);
    this.#sums?.clear();
  }

  /** Checks the balances after the records of all blocks were added. Returns the runes whose records do not add up, if they are not from a node. */
  async finish(): Promise<readonly Unbalanced[]> {
    if (this.#sums === undefined) return [];
    await this.#flush();
    const rows = await this.#store.rows(
      `SELECT rune, min(address) AS address FROM (SELECT rune, address, ${joinedParts('upper', 'lower')} FROM (
         SELECT rune, address, sum(upper)::HUGEINT AS upper, sum(lower)::HUGEINT AS lower FROM sums GROUP BY rune, address))
       WHERE upper < 0 OR lower < 0 GROUP BY rune ORDER BY rune`,
      { rune: text, address: text },
    );
    if (!this.#isFromNode) return rows.filter(({ rune }) => this.#decimals.get(rune) !== MIXED);
    for (const { rune, address } of rows.slice(0, MOST_NAMED))
      this.#findings.add(`rune ${rune}: the address ${address} sends more than it received`, PULL_ANEW);
    if (rows.length > MOST_NAMED)
      this.#findings.add(`${rows.length - MOST_NAMED} more runes have addresses that send more than they received`);
    for (const [rune, units] of this.#unaddressed)
      if (units < 0n)
        this.#findings.add(`rune ${rune}: scripts without an address send ${-units} units more than they received`, PULL_ANEW);
    return [];
  }
}
