/**
 * Writes unspent outputs (lists/unspentOutputs.ts) from `receive` records and from lists of spent outputs, which only
 * input from a node has.
 */
import { isWithin } from '../duckdb/blockRanges.ts';
import { rowParts } from '../duckdb/sortedRows.ts';
import { int, literal, type Store, text } from '../duckdb/store.ts';
import { type BlockInput, keptLevel, type LevelPlan } from '../engine/archive/listedRecords.ts';
import { addLines, type LevelForm, linesIn } from '../engine/archive/makeLevels.ts';
import type { StateTables } from '../engine/state/state.ts';
import type { DocumentLevel } from '../format/levels.ts';
import type { OutputTables } from '../format/listTables.ts';
import { FORMS_OF_ROWS } from '../input/recognise.ts';
import { unitsOf } from './balanceChanges.sql.ts';
import { joinRunes } from './outputRows.sql.ts';
import { AddressOutputs, type LevelRows, sortKeySql } from './outputsOfAddress.sql.ts';
import { SPENT } from './unspentOutputs.ts';

/** True when the input has all spent outputs, because all its ledgers are from a node, or because no block has records. */
export async function knowsSpent(state: StateTables, store: Store): Promise<boolean> {
  const { others, nodes, blocks } = await store.row(
    `SELECT (SELECT count(*) FROM ${state.blocks}) AS blocks,  count(*) FILTER (form = 'ledger' OR form NOT IN (${FORMS_OF_ROWS.map(literal).join(', ')})) AS others, count(*) FILTER (form = 'node-ledger') AS nodes
     FROM ${state.files}`,
    { others: int, nodes: int, blocks: int },
  );
  return (nodes > 0 || blocks === 0) && others === 0;
}

/** Kinds of documents of outputs. */
const KINDS = ['outputs', 'addresses', 'starts'] as const;
type OutputKind = (typeof KINDS)[number];

interface OutputForm extends LevelForm<`outputs.${OutputKind}`> {
  readonly state: StateTables;
  /** The blocks of all levels that are not kept. */
  readonly read: BlockInput;
}

/** Writes the levels (format/levels.ts) that changed since the last build, and returns all levels. */
export async function writeOutputs(plans: readonly LevelPlan[], form: OutputForm, store: Store): Promise<OutputTables> {
  const { old, scratch, limits, open, state } = form;
  const before = old?.root.lists?.outputs;
  await listReceived(form, store);
  const known = plans.flatMap((plan) => (plan.isKept ? (keptLevel(plan, before?.outputs) ?? []) : []));
  const lists = await AddressOutputs.begin(
    { old, known, open, limits, heights: 'SELECT "output", block_height FROM received', ranges: plans, scratch },
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
      const outputs = open('outputs.outputs', plan);
      await store.run(`CREATE OR REPLACE TEMP TABLE made_outputs AS SELECT * EXCLUDE (is_spent) FROM (${outputsIn(plan, form)}) LIMIT 0;
        CREATE OR REPLACE TEMP TABLE spent_below ("output" VARCHAR, address VARCHAR)`);
      for await (const part of rowParts({ rows: outputsIn(plan, form), key: '"output"', rowBytes: OUTPUT_BYTES }, limits, store)) {
        await selectOutputs(part, store);
        await addLines(outputs, linesIn(store.stream(outputLines(form)), joinRows));
        await store.run('INSERT INTO made_outputs FROM part_made; INSERT INTO spent_below FROM part_spent');
      }
      level = { outputs: await outputs.finish(plan), ...(await lists.write(plan, addressRows(plan === plans[0], form))) };
    }
    for (const kind of KINDS) if (level[kind] !== undefined) levels[kind].push(level[kind]);
  }
  const { hash } = await store.row(`SELECT block_hash AS hash FROM ${state.tip}`, { hash: text });
  return { tipHash: hash, ...levels };
}

/** Creates the view `received`: the runes that outputs received, even if the outputs are now spent. */
const listReceived = ({ read: { kept } }: OutputForm, store: Store): Promise<void> =>
  store.run(`CREATE OR REPLACE TEMP VIEW received AS
    SELECT block_height, tx_id || ':' || vout AS "output", tx_index, "timestamp", address, rune_id, amount
    FROM ${kept} WHERE operation = 'receive' AND vout IS NOT NULL`);

/** Returns SQL that selects the outputs that the blocks of a level make, a row for each rune, and those that they spend. */
const outputsIn = (plan: LevelPlan, { read: { spent } }: OutputForm): string =>
  `SELECT false AS is_spent, * FROM received WHERE ${isWithin(plan)}
   UNION ALL BY NAME SELECT true AS is_spent, "output", address FROM ${spent} WHERE ${isWithin(plan)}`;

/** Bytes of memory that DuckDB needs for a row of `outputsIn`. */
const OUTPUT_BYTES = 800;

/**
 * Creates two tables from some outputs of a level, which `part` selects. `part_made`: outputs that the level makes and
 * does not spend. `part_spent`: outputs of lower levels that the level spends.
 */
async function selectOutputs(part: string, store: Store): Promise<void> {
  const [made, spent] = ['(FROM level_outputs WHERE NOT is_spent)', '(FROM level_outputs WHERE is_spent)'];
  await store.run(`CREATE OR REPLACE TEMP TABLE level_outputs AS ${part};
    CREATE OR REPLACE TEMP TABLE part_made AS SELECT * EXCLUDE (is_spent) FROM ${made} ANTI JOIN ${spent} USING ("output");
    CREATE OR REPLACE TEMP TABLE part_spent AS SELECT DISTINCT "output", address FROM ${spent} ANTI JOIN ${made} USING ("output")`);
}

/** SQL expression of the JSON of an output's rune, up to the balance. */
const RUNE = `left(to_json([to_json(id), to_json(number), to_json(name), to_json(spaced_name), to_json(divisibility)])::VARCHAR, -1)`;

/** SQL expression of an amount in smallest units, without leading zeros. */
const UNITS = `coalesce(nullif(ltrim(${unitsOf('amount', 'divisibility')}, '0'), ''), '0')`;

/**
 * Returns SQL that selects the records of made outputs: output, address, height, place as JSON without brackets, number
 * and id of the rune, and the rune as JSON. The SQL does not aggregate the rows of an output, because that would need
 * much memory. `joinRunes` joins the rows after they are sorted.
 */
const recordsOf = (
  made: 'part_made' | 'made_outputs',
  { state: { blocks, runes } }: Pick<OutputForm, 'state'>,
): string => `SELECT "output", address, block_height AS height,
    block_height || ',"' || block_hash || '",' || tx_index || ',' || o."timestamp" AS place,
    number, id, ${RUNE} || ',"' || ${UNITS} || '"]' AS rune
  FROM ${made} AS o JOIN (SELECT block_height, block_hash FROM ${blocks}) USING (block_height)
    JOIN (SELECT id, number, name, spaced_name, divisibility FROM ${runes}) ON id = rune_id`;

/** Returns SQL that selects the lines of the documents of `part_made` and `part_spent`, sorted. */
const outputLines = (form: OutputForm): string =>
  `SELECT "output" || chr(9) || head || rune || chr(10) FROM (FROM (
      SELECT "output", '[' || place || ',' || coalesce(to_json(address)::VARCHAR, 'null') || ']' AS head, number, id, chr(9) || rune AS rune
      FROM (${recordsOf('part_made', form)})
      UNION ALL SELECT "output", '${SPENT}', -1, '', '' FROM part_spent) ORDER BY "output", number, id)`;

/** Joins the rows of an output into its values. */
const joinRows = (rows: readonly (readonly string[])[]): string[] => [
  rows[0]?.[0] ?? '',
  ...joinRunes(rows.flatMap(([, ...runes]) => runes)),
];

/** Returns the rows of a level for `AddressOutputs`. The lowest level removes no outputs, because no level is below it. */
const addressRows = (isLowest: boolean, form: OutputForm): LevelRows => ({
  made: `SELECT url_encode(address) AS key, ${sortKeySql('height', '"output"')} AS sort, '["' || "output" || '",' || place || ',' || rune || ']' AS text, number, id
    FROM (${recordsOf('made_outputs', form)}) WHERE address IS NOT NULL`,
  removed: `SELECT url_encode(address) AS key, "output" FROM spent_below WHERE address IS NOT NULL AND ${!isLowest}`,
});
