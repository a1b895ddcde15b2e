/**
 * Writes unspent outputs (lists/unspentOutputs.ts) from `receive` records and from lists of spent outputs, which only input from a node
 * has.
 */
import { isWithin } from '../duckdb/blockRanges.ts';
import { rowParts } from '../duckdb/sortedRows.ts';
import { int, literal, type Store, text } from '../duckdb/store.ts';
import { type BlockInput, type LevelPlan, lastLevel } from '../engine/archive/listedRecords.ts';
import { documentStart, type LevelForm, TEXTS, valueText, writeTexts } from '../engine/archive/makeLevels.ts';
import type { StateTables } from '../engine/state/state.ts';
import type { DocumentLevel } from '../format/levels.ts';
import type { OutputTables } from '../format/listTables.ts';
import { FORMS_OF_ROWS } from '../input/recognise.ts';
import { digitsOf, joinedParts, sumsOf, unitsOf } from './balanceChanges.sql.ts';
import { addOutputs, beginAddresses, beginLevel, keepStarts, writeAddresses } from './outputsOfAddress.sql.ts';
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
  /** The blocks of all levels that are not kept. */
  readonly read: BlockInput;
}

/** Writes the levels (format/levels.ts) that changed since the last build, and returns all levels. */
export async function writeOutputs(plans: readonly LevelPlan[], form: OutputForm, store: Store): Promise<OutputTables> {
  const { limits, open, state, read } = form;
  const before = form.old?.root.lists?.outputs;
  // The runes that outputs received, even if the outputs are now spent.
  await store.run(`CREATE OR REPLACE TEMP VIEW received AS
    SELECT block_height, tx_id || ':' || vout AS "output", tx_index, "timestamp", address, rune_id, amount
    FROM ${read.kept} WHERE operation = 'receive' AND vout IS NOT NULL`);
  const known = plans.flatMap((plan) => (plan.isKept ? (lastLevel(plan, before?.outputs) ?? []) : []));
  const bound = read.records + (await store.number(`SELECT count(*) AS number FROM ${read.spent}`));
  const lists = { ...form, known, ranges: plans, received: 'received', bound };
  await beginAddresses(store);
  const levels: Record<OutputKind, DocumentLevel[]> = { outputs: [], addresses: [], starts: [] };
  for (const plan of plans) {
    const kept = (kind: OutputKind) => lastLevel(plan, before?.[kind]);
    let level: Record<OutputKind, DocumentLevel | undefined>;
    if (plan.isKept) {
      level = { outputs: kept('outputs'), addresses: kept('addresses'), starts: kept('starts') };
      if (level.starts !== undefined) await keepStarts(level.starts, lists, store);
    } else {
      const outputs = open('outputs.outputs', plan);
      const ofAddresses = await beginLevel(store);
      const rows = `SELECT false AS is_spent, * FROM received WHERE ${isWithin(plan)}
        UNION ALL BY NAME SELECT true AS is_spent, "output", address FROM ${read.spent} WHERE ${isWithin(plan)}`;
      for await (const part of rowParts({ rows, bound, key: '"output"', rowBytes: OUTPUT_BYTES }, limits, store)) {
        await selectOutputs(part, state, store);
        await writeTexts(outputs, store.stream(`SELECT ${TEXTS} FROM (${OUTPUT_TEXTS})`));
        await addOutputs(ofAddresses, { made: 'part_made', spent: 'part_spent' });
      }
      level = { outputs: await outputs.finish(plan), ...(await writeAddresses(plan, ofAddresses, lists, store)) };
    }
    for (const kind of KINDS) if (level[kind] !== undefined) levels[kind].push(level[kind]);
  }
  const { hash } = await store.row(`SELECT block_hash AS hash FROM ${state.tip}`, { hash: text });
  return { tipHash: hash, ...levels };
}

/** Bytes of memory that DuckDB needs for a row of an output and a rune. */
const OUTPUT_BYTES = 800;

/** SQL expression of the JSON of an output's rune, with the balance in smallest units. */
const RUNE = `left(to_json([to_json(id), to_json(number), to_json(name), to_json(spaced_name), to_json(divisibility)])::VARCHAR, -1)
  || ',"' || ${digitsOf('upper', 'lower')} || '"]'`;

/**
 * Creates two tables from some outputs of a level, which `part` selects. `part_made`: outputs that the level makes and does not spend, with
 * their places and runes as JSON. `part_spent`: outputs of lower levels that the level spends.
 */
export async function selectOutputs(part: string, { blocks, runes }: Pick<StateTables, 'blocks' | 'runes'>, store: Store): Promise<void> {
  const [made, spent] = ['(FROM level_outputs WHERE NOT is_spent)', '(FROM level_outputs WHERE is_spent)'];
  // Adds up rows of the same rune.
  const units = `SELECT "output", min(address) AS address, min(block_height) AS height, min(tx_index) AS tx_index, min("timestamp") AS "timestamp",
      id, number, min(name) AS name, min(spaced_name) AS spaced_name, min(divisibility) AS divisibility, ${sumsOf(unitsOf('amount', 'divisibility'), '1')}
    FROM (FROM ${made} ANTI JOIN ${spent} USING ("output")) JOIN (SELECT id, number, name, spaced_name, divisibility FROM ${runes}) ON id = rune_id
    GROUP BY "output", id, number`;
  await store.run(`CREATE OR REPLACE TEMP TABLE level_outputs AS ${part};
    CREATE OR REPLACE TEMP TABLE part_made AS
      SELECT "output", address, height, height || ',"' || block_hash || '",' || tx_index || ',' || "timestamp" AS place, runes
      FROM (SELECT "output", min(address) AS address, min(height) AS height, min(tx_index) AS tx_index, min("timestamp") AS "timestamp",
          string_agg(${RUNE}, chr(9) ORDER BY number, id) AS runes
        FROM (SELECT * EXCLUDE (upper, lower), ${joinedParts('upper', 'lower')} FROM (${units})) GROUP BY "output")
      JOIN (SELECT block_height AS height, block_hash FROM ${blocks}) USING (height);
    CREATE OR REPLACE TEMP TABLE part_spent AS SELECT DISTINCT "output", address FROM ${spent} ANTI JOIN ${made} USING ("output")`);
}

/** SQL that selects the documents of `part_made` and `part_spent`, sorted. */
const OUTPUT_TEXTS = `FROM (
    SELECT "output", ${documentStart('"output"')} || ${valueText(`'[' || place || ',' || coalesce(to_json(address)::VARCHAR, 'null') || ']'`)} || ${valueText('runes')} AS text FROM part_made
    UNION ALL SELECT "output", ${documentStart('"output"')} || ${valueText(`'${SPENT}'`)} FROM part_spent) ORDER BY "output"`;
