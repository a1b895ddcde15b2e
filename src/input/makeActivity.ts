/**
 * Turns all raw sources into canonical records: one row per record, with the same columns for every form of input.
 */
import { int, type Store } from '../store/duckdb.ts';
import { TABLES } from '../store/tables.ts';
import { isInRange } from './blockRange.ts';
import { isClustered, isTableClustered } from './clustering.ts';
import type { RawSource, Reading } from './rawSource.ts';
import { isLedger } from './recognise.ts';
import { CANONICAL_COLUMNS, canonicalCell, canonicalSelect, SERVED_ORDER } from './recordSql.ts';
import { ledgerSelect } from './runes.ts';
import { assembleSavedResponses } from './savedResponses.ts';

const NO_RECORDS = `SELECT ${Object.entries(TABLES.activity.columns).map(([name, type]) => `NULL::${type} AS "${name}"`)} WHERE false`;

/**
 * Creates `activity`, `spent_outputs` and `held` (store/tables.ts) for the blocks in the table `affected`. Returns
 * notices.
 */
export async function makeActivity(sources: readonly RawSource[], reading: Reading): Promise<string[]> {
  const { store } = reading;
  await listSpent(sources, store);
  const relations: string[] = [];
  const notices: string[] = [];
  const direct = sources.filter((s) => s.form !== 'runes' && s.form !== 'envelope');
  for (const source of direct) relations.push(await makeRelation(source, `canonical_${relations.length}`, reading));
  const ids = direct.flatMap((source) => source.members.map(({ id }) => id));
  await store.run(`CREATE TEMP TABLE held AS SELECT * FROM holds
    WHERE source IN (${ids.join(', ') || 'NULL'}) AND block_height IN (SELECT block_height FROM affected)`);
  const saved = sources.filter((s) => s.form === 'envelope');
  if (saved.length > 0) {
    for (const notice of await assembleSavedResponses(saved, 'canonical_saved', store)) notices.push(notice);
    relations.push('canonical_saved');
    await store.run('INSERT INTO held SELECT source, block_height, block_hash, count(*) FROM canonical_saved GROUP BY ALL');
  }
  const columns = CANONICAL_COLUMNS.map((c) => `"${c}"`).join(', ');
  const all = relations.map((r) => `SELECT ${columns} FROM ${r}`).join(' UNION ALL ');
  // Usually every block that was read is affected, and then the view needs no filter.
  const { others } = await store.row('SELECT count(*) AS others FROM holds WHERE block_height NOT IN (SELECT block_height FROM affected)', {
    others: int,
  });
  const filter = others > 0 ? 'WHERE block_height IN (SELECT block_height FROM affected)' : '';
  await store.run(`CREATE TEMP VIEW activity AS SELECT * FROM (${all === '' ? NO_RECORDS : all}) ${filter}`);
  return notices;
}

/** Creates the table `spent_outputs`. Several files may have the same block. */
async function listSpent(sources: readonly RawSource[], store: Store): Promise<void> {
  const selects = sources
    .filter(({ form }) => form === 'node-ledger')
    .map(
      (source) =>
        `SELECT ${canonicalCell(source, 'block_height')} AS block_height, ${canonicalCell(source, 'spent')} AS spent FROM ${source.relation}`,
    );
  const all =
    selects.length === 0 ? 'SELECT NULL::BIGINT AS block_height, NULL::VARCHAR AS spent WHERE false' : selects.join(' UNION ALL ');
  await store.run(`CREATE TEMP TABLE spent_outputs AS
    SELECT block_height, split_part(spent, ':', 1) || ':' || split_part(spent, ':', 2) AS "output", nullif(split_part(spent, ':', 3), '') AS address
    FROM (SELECT DISTINCT block_height, unnest(string_split(spent, ',')) AS spent FROM (${all}) WHERE spent IS NOT NULL AND block_height IN (SELECT block_height FROM affected))`);
}

/**
 * Makes a relation of the canonical records in the range: a view if batches of blocks can scan it, otherwise a sorted
 * table.
 */
async function makeRelation(source: RawSource, relation: string, reading: Reading): Promise<string> {
  const { range, store } = reading;
  const all = isLedger(source.form) ? ledgerSelect(source) : canonicalSelect(source);
  const select = range === undefined ? all : `SELECT * FROM (${all}) WHERE ${isInRange('block_height', range)}`;
  if (source.isView && (await isClustered(source, reading))) {
    await store.run(`CREATE TEMP VIEW ${relation} AS ${select}`);
    return relation;
  }
  await store.run(`CREATE TEMP TABLE ${relation} AS ${select} ${source.isView ? `ORDER BY ${SERVED_ORDER}` : ''}`);
  if (source.isView) return relation;
  await store.run(`DROP TABLE ${source.relation}`);
  if (await isTableClustered(relation, reading)) return relation;
  await store.run(`CREATE TEMP TABLE sorted AS SELECT * FROM ${relation} ORDER BY ${SERVED_ORDER};
    DROP TABLE ${relation}; ALTER TABLE sorted RENAME TO ${relation}`);
  return relation;
}
