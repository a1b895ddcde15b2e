/**
 * Verifies that records add up. In rows from a node, every transaction conserves every rune, and no address sends more
 * than it received. A record with a wrong sender is found only by the check of addresses, because the sums of its
 * transaction are right. Records of other sources have known faults (docs/rows.md), so their runes cause no finding.
 */
import { text } from '../duckdb/store.ts';
import type { TableWith } from '../duckdb/table.ts';
import { joinedParts, sumsOf } from '../lists/balanceChanges.sql.ts';
import type { Activity } from './checkBlock.ts';
import type { EtchingsVerification } from './checkEtchings.ts';
import { PULL_ANEW } from './findings.ts';
import { isFromNode, type Verification } from './verification.ts';

/** Maximum number of balances below zero that get a finding of their own. */
const MOST_NAMED = 20;

/** Sums of a rune's records in a transaction, in smallest units. */
interface Moves {
  readonly rune: string;
  readonly place: string;
  isEtched: boolean;
  minted: bigint;
  received: bigint;
  sent: bigint;
  /**
   * Units of burn records without an address. These units were minted or premined in the same transaction, or were
   * sent by scripts without an address.
   */
  burned: bigint;
  /** Units that scripts without an address received, minus the units that they sent. */
  unaddressed: bigint;
}

/**
 * Checks that each transaction conserves each rune. Only for records from a node, because records of other sources omit
 * the runes of scripts without an address, so their sums differ.
 */
export class TransactionsVerification {
  /** Units that scripts without an address hold, by rune. */
  readonly #unaddressed = new Map<string, bigint>();

  private constructor(
    private readonly verification: Verification,
    /** Premines of runes, in smallest units. Undefined if the mirror has no etchings. */
    private readonly premines: ReadonlyMap<string, bigint> | undefined,
  ) {}

  static async begin(verification: Verification, etchings: EtchingsVerification | undefined): Promise<TransactionsVerification> {
    return new TransactionsVerification(verification, await etchings?.premines());
  }

  /** Adds the records of a block, in served order. */
  add(_height: number, records: readonly Activity[]): void {
    let [txId, moves] = ['', new Map<string, Moves>()];
    for (const record of records) {
      if (record.location.tx_id !== txId) {
        this.#endTransaction(moves);
        [txId, moves] = [record.location.tx_id, new Map()];
      }
      move(record, moves);
    }
    this.#endTransaction(moves);
  }

  #endTransaction(moves: ReadonlyMap<string, Moves>): void {
    for (const sums of moves.values()) {
      const premine = sums.isEtched ? this.premines?.get(sums.rune) : 0n;
      if (premine !== undefined) this.#conserve(sums, sums.minted + premine);
    }
  }

  /** Checks that outputs receive all units that are sent or `made` (minted or premined), except the burned units. */
  #conserve({ rune, place, received, sent, burned, unaddressed }: Moves, made: bigint): void {
    const unreceived = made + sent - received;
    if (unreceived < 0n || unreceived > burned)
      this.verification.findings.add(
        `${place} does not conserve rune ${rune}: outputs receive ${received} units, but ${sent} are sent, ${made} are made, and ${burned} burned without an address`,
        PULL_ANEW,
      );
    const change = unaddressed - (burned - unreceived);
    if (change !== 0n) this.#unaddressed.set(rune, (this.#unaddressed.get(rune) ?? 0n) + change);
  }

  /**
   * Checks that scripts without an address send no more than they received. Call it only if the mirror has all blocks
   * since the first rune, or since its start.
   */
  finish(): void {
    for (const [rune, units] of this.#unaddressed) {
      if (units >= 0n) continue;
      const finding = `rune ${rune}: scripts without an address send ${-units} units more than they received`;
      this.verification.findings.add(finding, PULL_ANEW);
    }
  }
}

function move({ rune, operation, address, amount = '0', location }: Activity, moves: Map<string, Moves>): void {
  const units = BigInt(amount.replace('.', ''));
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
  if (address !== undefined) return;
  if (operation === 'receive') sums.unaddressed += units;
  else if (operation === 'send') sums.unaddressed -= units;
}

/** A rune with balances below zero, and the address of one of these balances. */
export interface Unbalanced {
  readonly rune: string;
  readonly address: string;
}

type Changing = TableWith<'rune_id' | 'address' | 'operation' | 'amount'>;

/** Returns SQL that selects runes whose amounts have different numbers of decimals. Only wrong data has such runes. */
const mixed = (records: Changing): string => `SELECT rune_id FROM ${records} WHERE ltrim(amount, '0.') <> ''
  GROUP BY rune_id HAVING count(DISTINCT strlen(split_part(amount, '.', 2))) > 1`;

/**
 * Finds balances below zero. For records from a node, adds findings and returns an empty list. Otherwise only returns
 * the runes of these balances. `records` must begin at the first block with runes, or with the outputs of the start.
 */
export async function verifySums({ manifest, findings, store }: Verification, records: Changing): Promise<readonly Unbalanced[]> {
  const sums = sumsOf('units', `CASE operation WHEN 'receive' THEN 1 ELSE -1 END`);
  const rows = await store.rows(
    `SELECT rune_id AS rune, min(address) AS address FROM (SELECT rune_id, address, ${joinedParts('upper', 'lower')} FROM (
       SELECT rune_id, address, ${sums} FROM (SELECT *, replace(amount, '.', '') AS units FROM ${records}) GROUP BY rune_id, address))
     WHERE (upper < 0 OR lower < 0) AND (${isFromNode(manifest)} OR rune_id NOT IN (${mixed(records)})) GROUP BY rune_id ORDER BY rune_id`,
    { rune: text, address: text },
  );
  if (!isFromNode(manifest)) return rows;
  for (const { rune, address } of rows.slice(0, MOST_NAMED))
    findings.add(`rune ${rune}: the address ${address} sends more than it received`, PULL_ANEW);
  if (rows.length > MOST_NAMED) findings.add(`${rows.length - MOST_NAMED} more runes have addresses that send more than they received`);
  return [];
}
