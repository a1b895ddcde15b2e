/**
 * Writes balances of addresses and holders of runes (archive/balanceTables.ts).
 */
import {
  type BalanceTables,
  compareAddresses,
  type HolderLevel,
  holdersKey,
  parseHolder,
  type Unbalanced,
} from '../archive/balanceTables.ts';
import { lastRanked } from '../archive/levels.ts';
import { MOST_RUNES_NAMED } from '../contract/schemas.ts';
import { int, type Store, text } from '../store/duckdb.ts';
import { groupRows, joinLevel, type LevelForm, reusedLevels, writeChanges } from './changes.ts';
import type { StoredDocument } from './documents.ts';
import type { LevelPlan } from './listedRecords.ts';
import { Balances, RUNE_HEAD, runesAfter, writeRankings } from './rankings.ts';
import { changesIn, digitsOf } from './unitSql.ts';

/** How balances are written. */
export interface BalanceForm extends LevelForm {
  /** The highest block. */
  readonly tip: number;
  /** Balances in a page of a ranking. */
  readonly page: number;
  /** Folder for temporary files. */
  readonly scratch: string;
}

/** Writes the levels that the last build does not have. Needs the tables `listed_records` and `etchings`. */
export async function writeBalances(plans: readonly LevelPlan[], form: BalanceForm, store: Store): Promise<BalanceTables> {
  const { tip, page, old, scratch } = form;
  const before = old?.root.lists;
  const changes = await writeChanges(plans, before?.balances?.changes ?? [], form, store);
  const known = before?.balances?.holders ?? [];
  const ranked = lastRanked(tip);
  const balances = new Balances(scratch, old, store);
  const rankingForm = { ...form, lastRanked: lastRanked(before?.tip ?? -1) };
  const rankings = await writeRankings(
    plans.filter(({ last }) => last <= ranked),
    known,
    rankingForm,
    balances,
  );
  const newest = plans.filter(({ last }) => last > ranked);
  const holders: HolderLevel[] = [...rankings];
  for (const plan of newest) {
    const level = await joinLevel('holders', plan, known, form, newHolders(plan, store), addHolders);
    if (level !== undefined) holders.push(level);
  }
  const unbalanced = await findUnbalanced(rankings, newest, known, ranked, balances, store);
  return { page, changes, holders, ...(unbalanced === undefined ? {} : { unbalanced }) };
}

/** Yields the changes in listed records by rune. A rune whose changes are all 0 has a document too. */
const newHolders = ({ first, last }: LevelPlan, store: Store): AsyncGenerator<StoredDocument> =>
  groupRows(
    `WITH changes AS MATERIALIZED (SELECT ordinal, id, address, upper, lower FROM (${changesIn(first, last)}) JOIN etchings USING (id))
     SELECT lpad(ordinal::VARCHAR, ${holdersKey(0).length}, '0') AS key, value FROM (
       SELECT ordinal, NULL AS address, ${RUNE_HEAD} || ']' AS value FROM state.runes JOIN (SELECT DISTINCT ordinal, id FROM changes) USING (id)
       UNION ALL SELECT ordinal, address, '[' || to_json(address) || ',"' || ${digitsOf('upper', 'lower')} || '"]'
       FROM changes WHERE upper <> 0 OR lower <> 0)
     ORDER BY ordinal, address NULLS FIRST`,
    store,
  );

/** Joins the documents of a rune: adds the changes of each address. */
function addHolders(documents: readonly (readonly string[])[]): string[] {
  const head = documents[0]?.[0] ?? '';
  const sums = new Map<string, { readonly address: string; units: bigint }>();
  for (const value of documents.flatMap(([, ...values]) => values)) {
    const [address, units] = parseHolder(value);
    const known = sums.get(address);
    if (known !== undefined) known.units += units;
    else sums.set(address, { address: value.slice(0, value.lastIndexOf(',"')), units });
  }
  const sorted = [...sums].filter(([, { units }]) => units !== 0n).sort(([a], [b]) => compareAddresses(a, b));
  return [head, ...sorted.map(([, { address, units }]) => `${address},"${units}"]`)];
}

/** Finds runes with a balance below zero: at the end of the rankings, and at the tip for runes that were etched later. */
async function findUnbalanced(
  rankings: readonly HolderLevel[],
  newest: readonly LevelPlan[],
  before: readonly HolderLevel[],
  ranked: number,
  balances: Balances,
  store: Store,
): Promise<Unbalanced | undefined> {
  const { above } = await store.row(`SELECT coalesce(max(ordinal), -1) AS above FROM etchings WHERE block_height <= ${ranked}`, {
    above: int,
  });
  await balances.clear();
  for (const plan of newest) {
    for (const level of reusedLevels(plan, before)) await balances.addLevel(level, runesAfter(above));
    if (!plan.isSame) await balances.addListed(plan, above);
  }
  await balances.sum();
  const all = [...(rankings.at(-1)?.unbalanced ?? []), ...(await balances.unbalanced())];
  if (all.length === 0) return undefined;
  const named = all.slice(0, MOST_RUNES_NAMED).join();
  const rows = await store.rows(`SELECT id FROM etchings WHERE ordinal IN (${named}) ORDER BY ordinal`, { id: text });
  return { runes: rows.map(({ id }) => id), more: all.length - rows.length };
}
