/**
 * Writes unspent outputs (lists/unspentOutputs.ts) from `receive` records and from lists of spent outputs, which only
 * input from a node has. Pages do not have spent outputs, so builds cannot read spent outputs of unchanged blocks from
 * pages. Instead, the state keeps the spent outputs of the newest blocks.
 */
import { join } from 'node:path';
import { type LineFile, writeLines } from '../disk/lineFile.ts';
import { readLines } from '../duckdb/readFilesSql.ts';
import type { UnsortedRows } from '../duckdb/sortedRows.ts';
import { int, literal, type Store, text } from '../duckdb/store.ts';
import { columns, type TableWith } from '../duckdb/table.ts';
import { documentsOf, type JoinValues, mergeDocuments } from '../engine/archive/documentWriter.ts';
import type { ArchiveSources, LevelPlan, ListedRecords } from '../engine/archive/listedRecords.ts';
import { documentsIn, type LevelForm, linesIn, reusedLevels, writeDocuments, writeLevel } from '../engine/archive/makeLevels.ts';
import { ChangedArchiveError } from '../engine/archive/storedArchive.ts';
import type { StateTables } from '../engine/state/state.ts';
import { keyOfAddress } from '../format/documentKeys.ts';
import type { DocumentLevel } from '../format/levels.ts';
import type { OutputTables } from '../format/listTables.ts';
import type { StartRows } from '../input/readStart.ts';
import { FORMS_OF_ROWS } from '../input/recognise.ts';
import { countCrossing } from '../limits.ts';
import { unitsOf } from './balanceChanges.sql.ts';
import { joinRunes } from './outputRows.sql.ts';
import { AddressOutputs, type LevelRows, sortKeySql, writeRemoved } from './outputsOfAddress.sql.ts';
import { parseOutput, SPENT } from './unspentOutputs.ts';

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

interface OutputForm extends LevelForm<OutputKind>, ArchiveSources {
  readonly listed: ListedRecords;
  /** The start (input/readStart.ts) of the data; undefined if the data has all blocks. */
  readonly start: StartRows | undefined;
  /**
   * SQL that selects the unspent outputs of the start (startRows.sql.ts). Undefined without a start, or if a reused
   * level already has these outputs.
   */
  readonly added: string | undefined;
}

/**
 * Writes the levels (format/levels.ts) that changed since the last build, and returns all levels. Updates the spent
 * outputs in the state. Throws a ChangedArchiveError when a level needs a block whose spent outputs are no longer
 * known.
 */
export async function writeOutputs(plans: readonly LevelPlan[], form: OutputForm, store: Store): Promise<OutputTables> {
  const { old, scratch, limits, writer, state } = form;
  const before = old?.root.lists?.outputs;
  await listSpent(form, store);
  await listReceived(form, store);
  const blocks = await blocksOf(form, store);
  const known = plans.flatMap((plan) => reusedLevels(plan, before?.outputs));
  const lists = await AddressOutputs.begin(
    { old, known, writer, limits, heights: 'SELECT "output", block_height FROM received', ranges: plans, scratch },
    store,
  );
  const levels: Record<OutputKind, DocumentLevel[]> = { outputs: [], addresses: [], starts: [] };
  for (const plan of plans) {
    const reused = (kind: OutputKind) => reusedLevels(plan, before?.[kind]);
    let level: Record<OutputKind, DocumentLevel | undefined>;
    if (plan.isSame) {
      level = { outputs: reused('outputs')[0], addresses: reused('addresses')[0], starts: reused('starts')[0] };
      await lists.reuse(level.starts);
    } else {
      await selectOutputs(plan, store);
      let outputs: DocumentLevel | undefined;
      const cancelled = await writeLines(join(scratch, 'cancelled-outputs.ndjson'), async (lines) => {
        const stored = old === undefined ? [] : reused('outputs').map((one) => documentsOf(old, one));
        const added = linesIn(newOutputs(blocks, form), limits, store, joinRows);
        const to = writer('outputs', plan);
        outputs = await (stored.length === 0
          ? writeLevel(to, plan, added)
          : writeDocuments(to, plan, mergeDocuments([documentsIn(added), ...stored], joinOutput(lines))));
      });
      const byAddress = reused('addresses');
      level = {
        outputs,
        ...(await lists.write(plan, byAddress, await rowsOf(plan, plan === plans[0], cancelled, byAddress, blocks, form))),
      };
    }
    for (const kind of KINDS) if (level[kind] !== undefined) levels[kind].push(level[kind]);
  }
  const { hash } = await store.row(`SELECT block_hash AS hash FROM ${state.tip}`, { hash: text });
  return { tipHash: hash, ...levels };
}

/** Creates the table `listed_spent` of outputs that listed blocks spend, and updates the spent outputs in the state. */
async function listSpent({ old, limits: { spentBlocks }, listed, state, input, changes }: OutputForm, store: Store): Promise<void> {
  const { written, replaced } = changes;
  const recalled = `SELECT DISTINCT block_height FROM ${listed.pages} ANTI JOIN ${written} USING (block_height)`;
  const spent = `SELECT * FROM ${input.spent} SEMI JOIN ${written} USING (block_height)`;
  const { oldest, lost } = await store.row(
    `SELECT coalesce((SELECT block_height FROM ${state.tip}), 0) - ${spentBlocks} AS oldest,
       (SELECT count(*) FROM (${recalled}) WHERE NOT coalesce(block_height >= (SELECT first FROM ${state.spentFrom}), false)) AS lost`,
    { oldest: int, lost: int },
  );
  // Notes that the limit has an effect: the state forgets the spent outputs of blocks below `oldest`.
  if (oldest > 0) countCrossing('spentBlocks');
  if (lost > 0) throw new ChangedArchiveError('the build needs spent outputs that the cache no longer has');
  const from = old !== undefined ? `greatest(${oldest}, coalesce((SELECT first FROM ${state.spentFrom}), ${oldest}))` : oldest;
  await store.run(`DELETE FROM ${state.spent} WHERE block_height IN (SELECT block_height FROM ${replaced});
    CREATE OR REPLACE TEMP TABLE listed_spent AS ${spent} UNION ALL SELECT * FROM ${state.spent} SEMI JOIN (${recalled}) USING (block_height);
    CREATE OR REPLACE TEMP TABLE kept_from AS SELECT ${from}::BIGINT AS first;
    DELETE FROM ${state.spentFrom};
    INSERT INTO ${state.spentFrom} FROM kept_from;
    INSERT INTO ${state.spent} ${spent};
    DELETE FROM ${state.spent} WHERE block_height < (SELECT first FROM kept_from)`);
}

/** Removes the spent outputs from the state, because a build without lists of outputs does not update them. */
export const forgetSpent = ({ spent, spentFrom }: StateTables, store: Store): Promise<void> =>
  store.run(`DELETE FROM ${spent}; DELETE FROM ${spentFrom}`);

/** Creates the view `received`: the runes that outputs of listed blocks received, even if the outputs are now spent. */
async function listReceived({ listed: { recalled }, input, changes, added }: OutputForm, store: Store): Promise<void> {
  const columns = 'block_height, tx_id, vout, tx_index, "timestamp", address, rune_id, amount';
  const written = `SELECT ${columns} FROM ${input.kept} SEMI JOIN ${changes.written} USING (block_height) WHERE operation = 'receive'`;
  const location = 'STRUCT(block_height BIGINT, tx_id VARCHAR, tx_index BIGINT, "timestamp" BIGINT, vout BIGINT)';
  const record = `STRUCT(rune STRUCT(id VARCHAR), address VARCHAR, operation VARCHAR, amount VARCHAR, location ${location})`;
  const at = (name: string) => `record.location.${name} AS ${name}`;
  const recalledRows = (
    lines: LineFile,
  ) => `SELECT ${at('block_height')}, right(record.location.tx_id, 64) AS tx_id, ${at('vout')}, ${at('tx_index')},
      record.location."timestamp" AS "timestamp", record.address AS address, record.rune.id AS rune_id, record.amount AS amount
    FROM (SELECT unnest(results) AS record FROM ${readLines(lines, `results: '${record}[]'`)}) WHERE record.operation = 'receive'`;
  const all = recalled === undefined ? written : `${written} UNION ALL ${recalledRows(recalled)}`;
  await store.run(`CREATE OR REPLACE TEMP VIEW received AS
    SELECT * EXCLUDE (tx_id, vout), tx_id || ':' || vout AS "output" FROM (${all}) WHERE vout IS NOT NULL
    ${added === undefined ? '' : `UNION ALL BY NAME ${added}`}`);
}

/**
 * Creates two tables from the listed blocks of a level. `made_outputs`: outputs that these blocks make and do not
 * spend. `spent_below`: outputs of other blocks that these blocks spend.
 */
async function selectOutputs({ first, last }: LevelPlan, store: Store): Promise<void> {
  const inRange = (table: string) => `(SELECT * FROM ${table} WHERE block_height BETWEEN ${first} AND ${last})`;
  await store.run(`CREATE OR REPLACE TEMP TABLE made_outputs AS SELECT * FROM ${inRange('received')} ANTI JOIN ${inRange('listed_spent')} USING ("output");
    CREATE OR REPLACE TEMP TABLE spent_below AS SELECT "output", address FROM ${inRange('listed_spent')} ANTI JOIN ${inRange('received')} USING ("output")`);
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

/** Returns the rows of outputs that the listed blocks of a level make or spend. */
const newOutputs = (blocks: Blocks, form: OutputForm): UnsortedRows => ({
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

/**
 * Returns the rows of a level for `AddressOutputs`. The lowest level removes no outputs, because no level is below it.
 * A level consists of parts: the reused levels and the listed blocks. `cancelled` has the outputs that one part makes
 * and another part spends.
 */
async function rowsOf(
  plan: LevelPlan,
  isLowest: boolean,
  cancelled: LineFile,
  reused: readonly DocumentLevel[],
  blocks: Blocks,
  form: OutputForm,
): Promise<LevelRows> {
  const { old, scratch, limits } = form;
  const removed = await writeLines(join(scratch, 'removed-outputs.ndjson'), (lines) => {
    if (old !== undefined && !isLowest) for (const level of reused) writeRemoved(level, old, limits.listPage, lines);
  });
  const columns = `key: 'VARCHAR', "output": 'VARCHAR'`;
  const both = cancelled.count === 0 ? undefined : readLines(cancelled, `${columns}, height: 'BIGINT'`);
  const others = both === undefined ? '' : `ANTI JOIN (FROM ${both}) USING ("output")`;
  const isReused = plan.reused.map(({ first, last }) => `height BETWEEN ${first} AND ${last}`).join(' OR ') || 'false';
  const removedRows = removed.count === 0 ? '' : `UNION FROM ${readLines(removed, `${columns}, first: 'BIGINT', page: 'BIGINT'`)}`;
  return {
    made: `SELECT url_encode(address) AS key, ${sortKeySql('height', '"output"')} AS sort, '["' || "output" || '",' || place || ',' || rune || ']' AS text, number, id
      FROM (${recordsOf(blocks, form)}) ${others} WHERE address IS NOT NULL`,
    removed: `SELECT * FROM (
      SELECT DISTINCT url_encode(address) AS key, "output", NULL::BIGINT AS first, NULL::BIGINT AS page FROM spent_below
      WHERE address IS NOT NULL AND ${!isLowest} ${removedRows}) ${others}`,
    cancelled: both && `SELECT key, "output", ${sortKeySql('height', '"output"')} AS sort FROM ${both} WHERE ${isReused}`,
  };
}

/**
 * Returns the function that is called if a merged level both makes and spends an output. The function adds a line about
 * the output to `cancelled`. It returns no values, so that the level has no document of the output.
 */
const joinOutput =
  (cancelled: LineFile): JoinValues =>
  (documents, output) => {
    const made = documents.find(([first]) => first !== SPENT);
    const { address, place = [0] } = (made && parseOutput(output, made)) ?? {};
    const key = address === undefined ? undefined : keyOfAddress(address);
    if (key !== undefined) cancelled.add(JSON.stringify({ key, output, height: place[0] }));
    return [];
  };
