/**
 * Writes unspent outputs (lists/unspentOutputs.ts) from `receive` records and from lists of spent outputs, which only
 * input from a node has.
 */
import { isWithin } from '../duckdb/blockRanges.ts';
import type { UnsortedRows } from '../duckdb/sortedRows.ts';
import { int, literal, type Store, text } from '../duckdb/store.ts';
import { columns, type TableWith } from '../duckdb/table.ts';
import { type BlockInput, keptLevel, type LevelPlan } from '../engine/archive/listedRecords.ts';
import { type LevelForm, linesIn, writeLevel } from '../engine/archive/makeLevels.ts';
import type { StateTables } from '../engine/state/state.ts';
import type { DocumentLevel } from '../format/levels.ts';
import type { OutputTables } from '../format/listTables.ts';
import type { StartRows } from '../input/readStart.ts';
import { FORMS_OF_ROWS } from '../input/recognise.ts';
import { unitsOf } from './balanceChanges.sql.ts';
import { joinRunes } from './outputRows.sql.ts';
import { AddressOutputs, type LevelRows, sortKeySql } from './outputsOfAddress.sql.ts';
import { SPENT } from './unspentOutputs.ts';

/** True when the input has all spent outputs, because all its ledgers are from a node, or because no block has records. */
export async function knowsSpent(state: StateTables, store: Store): Promise<boolean> {
  const { others, nodes, blocks } = await store.row(
    `SELECT (SELECT count(*) FROM ${state.blocks}) AS blocks,  count(*) FILTER (form = 'ledger' OR form NOT IN (${FORMS_OF_ROWS.map(literal).join(', ')})) AS others, count(*) FILTER (form IN ('node-ledger', 'start-outputs')) AS nodes
     FROM ${state.files}`,
    { others: int, nodes: int, blocks: int },
  );
  return (nodes > 0 || blocks === 0) && others === 0;
}

/** Kinds of documents of outputs. */
const KINDS = ['outputs', 'addresses', 'starts'] as const;
type OutputKind = (typeof KINDS)[number];

interface OutputForm extends LevelForm<OutputKind> {
  readonly state: StateTables;
  /** The blocks of all levels that are not kept. */
  readonly read: BlockInput;
  /** The start (input/readStart.ts) of the data; undefined if the data has all blocks. */
  readonly start: StartRows | undefined;
  /**
   * SQL that selects the unspent outputs of the start (startRows.sql.ts). Undefined without a start, or if a kept level
   * already has these outputs.
   */
  readonly added: string | undefined;
}

/** Writes the levels (format/levels.ts) that changed since the last build, and returns all levels. */
export async function writeOutputs(plans: readonly LevelPlan[], form: OutputForm, store: Store): Promise<OutputTables> {
  const { old, scratch, limits, writer, state } = form;
  const before = old?.root.lists?.outputs;
  await listReceived(form, store);
  const blocks = await blocksOf(form, store);
  const known = plans.flatMap((plan) => (plan.isKept ? (keptLevel(plan, before?.outputs) ?? []) : []));
  const lists = await AddressOutputs.begin(
    { old, known, writer, limits, heights: 'SELECT "output", block_height FROM received', ranges: plans, scratch },
    store,
  );
  const levels: Record<OutputKind, DocumentLevel[]> = { outputs: [], addresses: [], starts: [] };
  for (const plan of plans) {
    const kept = (kind: OutputKind) => keptLevel(plan, before?.[kind]);
    let level: Record<OutputKind, DocumentLevel | undefined>;
    if (plan.isKept) {
      level = { outputs: kept('outputs'), addresses: kept('addresses'), starts: kept('starts') };
      await lists.reuse(level.starts);
    } else {
      await selectOutputs(plan, form, store);
      const outputs = await writeLevel(writer('outputs', plan), plan, linesIn(outputRows(blocks, form), limits, store, joinRows));
      level = { outputs, ...(await lists.write(plan, addressRows(plan === plans[0], blocks, form))) };
    }
    for (const kind of KINDS) if (level[kind] !== undefined) levels[kind].push(level[kind]);
  }
  const { hash } = await store.row(`SELECT block_hash AS hash FROM ${state.tip}`, { hash: text });
  return { tipHash: hash, ...levels };
}

/** Creates the view `received`: the runes that outputs received, even if the outputs are now spent. */
const listReceived = ({ read: { kept }, added }: OutputForm, store: Store): Promise<void> =>
  store.run(`CREATE OR REPLACE TEMP VIEW received AS
    SELECT block_height, tx_id || ':' || vout AS "output", tx_index, "timestamp", address, rune_id, amount
    FROM ${kept} WHERE operation = 'receive' AND vout IS NOT NULL ${added === undefined ? '' : `UNION ALL BY NAME ${added}`}`);

/**
 * Creates two tables from the blocks of a level. `made_outputs`: outputs that these blocks make and do not spend.
 * `spent_below`: outputs of other blocks that these blocks spend.
 */
async function selectOutputs(plan: LevelPlan, { read: { spent } }: OutputForm, store: Store): Promise<void> {
  const inRange = (table: string | BlockInput['spent']) => `(SELECT * FROM ${table} WHERE ${isWithin(plan)})`;
  await store.run(`CREATE OR REPLACE TEMP TABLE made_outputs AS SELECT * FROM ${inRange('received')} ANTI JOIN ${inRange(spent)} USING ("output");
    CREATE OR REPLACE TEMP TABLE spent_below AS SELECT "output", address FROM ${inRange(spent)} ANTI JOIN ${inRange('received')} USING ("output")`);
}

/** SQL expression of the JSON of an output's rune, up to the balance. */
const RUNE = `left(to_json([to_json(id), to_json(number), to_json(name), to_json(spaced_name), to_json(divisibility)])::VARCHAR, -1)`;

/** SQL expression of an amount in smallest units, without leading zeros. */
const UNITS = `coalesce(nullif(ltrim(${unitsOf('amount', 'divisibility')}, '0'), ''), '0')`;

type Blocks = TableWith<'block_height' | 'block_hash'>;

/**
 * Returns the blocks in which outputs were made. With a start, puts these blocks into a table, because DuckDB knows the
 * number of rows in a table. Otherwise DuckDB could keep all outputs in memory to join them with these few blocks.
 */
const blocksOf = async ({ start, added, state: { blocks } }: OutputForm, store: Store): Promise<Blocks> =>
  start === undefined || added === undefined
    ? blocks
    : store.table(
        'output_blocks',
        columns('block_height BIGINT, block_hash VARCHAR'),
        `SELECT block_height, block_hash FROM ${blocks} UNION SELECT block_height, block_hash FROM ${start.outputs}`,
      );

/**
 * Returns SQL that selects the records of made outputs: output, address, height, place as JSON without brackets, number
 * and id of the rune, and the rune as JSON. The SQL does not aggregate the rows of an output, because that would need
 * much memory. `joinRunes` joins the rows after they are sorted.
 */
const recordsOf = (
  blocks: Blocks,
  { state: { runes } }: Pick<OutputForm, 'state'>,
): string => `SELECT "output", address, block_height AS height,
    block_height || ',"' || block_hash || '",' || tx_index || ',' || o."timestamp" AS place,
    number, id, ${RUNE} || ',"' || ${UNITS} || '"]' AS rune
  FROM made_outputs AS o JOIN (SELECT block_height, block_hash FROM ${blocks}) USING (block_height)
    JOIN (SELECT id, number, name, spaced_name, divisibility FROM ${runes}) ON id = rune_id`;

/** Returns the rows of outputs that the blocks of a level make or spend. */
const outputRows = (blocks: Blocks, form: OutputForm): UnsortedRows => ({
  rows: `SELECT "output", head, rune, number, id FROM (
      SELECT "output", '[' || place || ',' || coalesce(to_json(address)::VARCHAR, 'null') || ']' AS head, number, id, chr(9) || rune AS rune FROM (${recordsOf(blocks, form)})
      UNION ALL SELECT "output", '${SPENT}', -1, '', '' FROM spent_below)`,
  most: '(SELECT count(*) FROM made_outputs) + (SELECT count(*) FROM spent_below)',
  key: '"output"',
  within: 'number, id',
  select: `"output" || chr(9) || head || rune || chr(10)`,
});

/** Joins the rows of an output into its values. */
const joinRows = (rows: readonly (readonly string[])[]): string[] => [
  rows[0]?.[0] ?? '',
  ...joinRunes(rows.flatMap(([, ...runes]) => runes)),
];

/** Returns the rows of a level for `AddressOutputs`. The lowest level removes no outputs, because no level is below it. */
const addressRows = (isLowest: boolean, blocks: Blocks, form: OutputForm): LevelRows => ({
  made: `SELECT url_encode(address) AS key, ${sortKeySql('height', '"output"')} AS sort, '["' || "output" || '",' || place || ',' || rune || ']' AS text, number, id
    FROM (${recordsOf(blocks, form)}) WHERE address IS NOT NULL`,
  removed: `SELECT DISTINCT url_encode(address) AS key, "output" FROM spent_below WHERE address IS NOT NULL AND ${!isLowest}`,
});
