/**
 * Verifies balances and holders. Makes their documents (lists/balances.ts) again from records and etchings, as a full
 * build does, and compares them with the documents of the archive.
 */
import { columns, type Table } from '../duckdb/table.ts';
import { orderEtchings } from '../engine/state/knownEtchings.ts';
import { levelRanges } from '../format/levels.ts';
import type { BalanceTables } from '../format/listTables.ts';
import { writeBalances } from '../lists/balances.sql.ts';
import type { EtchingsVerification } from './checkEtchings.ts';
import { verifyOutputs } from './checkUnspentOutputs.ts';
import { comparedLevels } from './compareLevels.ts';
import type { RecordTables } from './recordTables.ts';
import type { ListsCheck, Verification } from './verification.ts';

/**
 * Compares all documents of balances, holders and outputs. `etchings` has the etchings of the build. `records` and
 * `received` are tables of the build's records (recordTables.ts). Adds a finding for each difference.
 */
export async function verifyBalances(
  check: ListsCheck,
  balances: BalanceTables,
  etchings: EtchingsVerification,
  { records, received }: RecordTables,
): Promise<void> {
  const { site, findings, scratch, store, lists, rootPath } = check;
  if (lists.tip !== site.tip) return findings.add(`${rootPath} has lists up to block ${lists.tip}, expected ${site.tip}`);
  const runes = await readRunes(check, etchings);
  const from = { records, runes, etchings: await orderEtchings(runes, site.tip, store) };
  const limits = { ...check.limits, listPage: lists.page, listLevels: lists };
  const plans = levelRanges(lists.tip, lists, lists.lowest).map((range) => ({ ...range, isKept: false }));
  const before = findings.count;
  const writer = comparedLevels(WHAT, balances, check);
  const expected = await writeBalances(plans, { tip: lists.tip, limits, old: undefined, scratch, writer, ...from }, store);
  if (findings.count === before && JSON.stringify(expected) !== JSON.stringify(balances))
    findings.add(`${rootPath} has other levels of balances, or other unbalanced runes, than a build makes`);
  if (findings.count === before && lists.outputs !== undefined && received !== undefined)
    await verifyOutputs(check, lists.outputs, limits, from, received);
}

const WHAT = { addresses: 'balances of the address', holders: 'holders of the rune with the ordinal' } as const;

/** Columns of runes that are needed to compute balances. */
const RUNES = {
  ...columns('id VARCHAR, number BIGINT, name VARCHAR'),
  ...columns('spaced_name VARCHAR, divisibility BIGINT, block_height BIGINT, tx_index BIGINT'),
} as const;

async function readRunes({ store }: Verification, etchings: EtchingsVerification): Promise<Table<typeof RUNES>> {
  const rows: (string | number)[][] = [];
  for await (const one of etchings.all())
    rows.push([one.id, one.number, one.name, one.spaced_name, one.divisibility, one.block_height, one.tx_index]);
  return store.append('runes', RUNES, rows);
}
