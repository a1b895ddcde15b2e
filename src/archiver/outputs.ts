/**
 * Writes unspent outputs (archive/outputTables.ts), from `receive` records and the outputs that files from a node say
 * are spent. Pages do not have the latter, so the state keeps those of the newest blocks.
 */
import type { DocumentLevel } from '../archive/documents.ts';
import { type OutputTables, SPENT } from '../archive/outputTables.ts';
import { int, type Store, text } from '../store/duckdb.ts';
import { groupRows, joinLevel, type LevelForm } from './changes.ts';
import type { StoredDocument } from './documents.ts';
import { hasRecalledPages, type LevelPlan, recalledPages } from './listedRecords.ts';
import { ChangedArchiveError } from './oldArchive.ts';
import { digitsOf, joinedParts, sumsOf, unitsOf } from './unitSql.ts';

/**
 * Spent outputs of this many newest blocks are kept. A level that is divided needs at most those of 24 blocks; a
 * reorganisation those of its level.
 */
const KEPT_BLOCKS = 200;

/** True when the input says for every record which outputs were spent, because all of it is from a node. */
export async function knowsSpent(store: Store): Promise<boolean> {
  const { others, nodes } = await store.row(
    `SELECT count(*) FILTER (form NOT IN ('node-ledger', 'runes', 'no-records')) AS others, count(*) FILTER (form = 'node-ledger') AS nodes
     FROM state.files`,
    { others: int, nodes: int },
  );
  return nodes > 0 && others === 0;
}

/** How outputs are written. */
interface OutputForm extends LevelForm<'outputs' | 'addresses'> {
  /** The highest block. */
  readonly tip: number;
  /** Folder for temporary files. */
  readonly scratch: string;
}

/**
 * Writes the levels that the last build does not have, and updates the spent outputs in the state. Needs the tables of
 * `listRecords`. Throws a ChangedArchiveError when a level has to be made of blocks whose spent outputs are no longer
 * known.
 */
export async function writeOutputs(plans: readonly LevelPlan[], form: OutputForm, store: Store): Promise<OutputTables> {
  const before = form.old?.root.lists?.outputs;
  await listSpent(form.old !== undefined, store);
  await listReceived(form.scratch, store);
  const outputs: DocumentLevel[] = [];
  const addresses: DocumentLevel[] = [];
  for (const plan of plans) {
    if (!plan.isSame) await selectOutputs(plan, store);
    const byOutpoint = await joinLevel('outputs', plan, before?.outputs ?? [], form, newOutputs(store), joinOutput);
    if (byOutpoint !== undefined) outputs.push(byOutpoint);
    const byAddress = await joinLevel('addresses', plan, before?.addresses ?? [], form, newAddresses(store), joinAddress);
    if (byAddress !== undefined) addresses.push(byAddress);
  }
  const { hash } = await store.row(`SELECT block_hash AS hash FROM state.blocks WHERE block_height = ${form.tip}`, { hash: text });
  return { tipHash: hash, outputs, addresses };
}

/** Listed blocks that this build did not render. */
const RECALLED = 'SELECT DISTINCT block_height FROM listed_pages ANTI JOIN written USING (block_height)';

/** Makes the table of outputs that listed blocks spend, and updates the state. */
async function listSpent(isIncremental: boolean, store: Store): Promise<void> {
  const { oldest, lost } = await store.row(
    `SELECT coalesce((SELECT max(block_height) FROM state.blocks), 0) - ${KEPT_BLOCKS} AS oldest,
       (SELECT count(*) FROM (${RECALLED}) WHERE NOT coalesce(block_height >= (SELECT first FROM state.spent_from), false)) AS lost`,
    { oldest: int, lost: int },
  );
  if (lost > 0) throw new ChangedArchiveError('a block has changed above which the spent outputs are not all known any more');
  const from = isIncremental ? `greatest(${oldest}, coalesce((SELECT first FROM state.spent_from), ${oldest}))` : oldest;
  await store.run(`DELETE FROM state.spent WHERE block_height IN (SELECT block_height FROM replaced);
    CREATE OR REPLACE TEMP TABLE listed_spent AS
      SELECT * FROM spent_outputs SEMI JOIN written USING (block_height) UNION ALL SELECT * FROM state.spent SEMI JOIN (${RECALLED}) USING (block_height);
    CREATE OR REPLACE TEMP TABLE kept_from AS SELECT ${from}::BIGINT AS first;
    DELETE FROM state.spent_from;
    INSERT INTO state.spent_from FROM kept_from;
    INSERT INTO state.spent SELECT * FROM spent_outputs SEMI JOIN written USING (block_height);
    DELETE FROM state.spent WHERE block_height < (SELECT first FROM kept_from)`);
}

/** Forgets the spent outputs, because a build without outputs does not keep them up to date. */
export const forgetSpent = (store: Store): Promise<void> => store.run('DELETE FROM state.spent; DELETE FROM state.spent_from');

/** Creates the view `received` of what outputs of listed blocks received, whether they are spent or not. */
async function listReceived(scratch: string, store: Store): Promise<void> {
  const columns = 'block_height, tx_id, vout, tx_index, "timestamp", address, rune_id, amount';
  const written = `SELECT ${columns} FROM kept SEMI JOIN written USING (block_height) WHERE operation = 'receive'`;
  const location = 'STRUCT(block_height BIGINT, tx_id VARCHAR, tx_index BIGINT, "timestamp" BIGINT, vout BIGINT)';
  const record = `STRUCT(rune STRUCT(id VARCHAR), address VARCHAR, operation VARCHAR, amount VARCHAR, location ${location})`;
  const at = (name: string) => `record.location.${name} AS ${name}`;
  const recalled = `SELECT ${at('block_height')}, right(record.location.tx_id, 64) AS tx_id, ${at('vout')}, ${at('tx_index')},
      record.location."timestamp" AS "timestamp", record.address AS address, record.rune.id AS rune_id, record.amount AS amount
    FROM (SELECT unnest(results) AS record FROM ${recalledPages(scratch, `results: '${record}[]'`)}) WHERE record.operation = 'receive'`;
  const all = hasRecalledPages(scratch) ? `${written} UNION ALL ${recalled}` : written;
  await store.run(`CREATE OR REPLACE TEMP VIEW received AS
    SELECT * EXCLUDE (tx_id, vout), tx_id || ':' || vout AS "output" FROM (${all}) WHERE vout IS NOT NULL`);
}

/**
 * Makes the tables of a level: outputs that its listed blocks make and do not spend, and outputs of other blocks that
 * they spend.
 */
async function selectOutputs({ first, last }: LevelPlan, store: Store): Promise<void> {
  const inRange = (table: string) => `(SELECT * FROM ${table} WHERE block_height BETWEEN ${first} AND ${last})`;
  await store.run(`CREATE OR REPLACE TEMP TABLE made_outputs AS SELECT * FROM ${inRange('received')} ANTI JOIN ${inRange('listed_spent')} USING ("output");
    CREATE OR REPLACE TEMP TABLE spent_below AS SELECT "output", address FROM ${inRange('listed_spent')} ANTI JOIN ${inRange('received')} USING ("output")`);
}

/** SQL of a rune of an output, up to the balance. */
const RUNE = `left(to_json([to_json(id), to_json(number), to_json(name), to_json(spaced_name), to_json(divisibility)])::VARCHAR, -1)`;

/** SQL of the runes of made outputs: output, number, rune as JSON. An output may have several records of a rune. */
const RUNES = `SELECT "output", number, ${RUNE} || ',"' || ${digitsOf('upper', 'lower')} || '"]' AS rune
  FROM (SELECT "output", rune_id, ${joinedParts('upper', 'lower')} FROM (
      SELECT "output", rune_id, ${sumsOf('units', '1')} FROM (
        SELECT "output", rune_id, ${unitsOf('amount', 'divisibility')} AS units FROM made_outputs JOIN state.runes ON id = rune_id)
      GROUP BY "output", rune_id))
    JOIN state.runes ON id = rune_id`;

/** SQL of made outputs: output, address, place as JSON without brackets. */
const PLACES = `SELECT DISTINCT "output", address, block_height || ',"' || block_hash || '",' || tx_index || ',' || o."timestamp" AS place
  FROM made_outputs AS o JOIN (SELECT block_height, block_hash FROM state.blocks) USING (block_height)`;

const newOutputs = (store: Store): AsyncGenerator<StoredDocument> =>
  groupRows(
    `SELECT "output" AS key, value FROM (
       SELECT "output", -1 AS number, '[' || place || ',' || coalesce(to_json(address)::VARCHAR, 'null') || ']' AS value FROM (${PLACES})
       UNION ALL SELECT "output", number, rune FROM (${RUNES})
       UNION ALL SELECT "output", -1, '${SPENT}' FROM spent_below)
     ORDER BY key, number`,
    store,
  );

const newAddresses = (store: Store): AsyncGenerator<StoredDocument> =>
  groupRows(
    `SELECT url_encode(address) AS key, value FROM (
       SELECT address, "output", '["' || "output" || '",' || place || ',' || runes || ']' AS value
       FROM (${PLACES}) JOIN (SELECT "output", string_agg(rune, ',' ORDER BY number) AS runes FROM (${RUNES}) GROUP BY "output") USING ("output")
       WHERE address IS NOT NULL
       UNION ALL SELECT address, "output", '["' || "output" || '"]' FROM spent_below WHERE address IS NOT NULL)
     ORDER BY key, "output"`,
    store,
  );

type Join = (documents: readonly (readonly string[])[]) => readonly string[];

/** An output has one document where it is made, and one where it is spent. Both together are nothing. */
export const joinOutput: Join = (documents) => (documents.length === 1 ? (documents[0] ?? []) : []);

/** Leaves out the outputs that are made and spent. */
export function joinAddress(documents: readonly (readonly string[])[]): readonly string[] {
  const times = new Map<string, number>();
  // An outpoint has no quotes.
  const outputOf = (value: string) => value.slice(2, value.indexOf('"', 2));
  for (const value of documents.flat()) times.set(outputOf(value), (times.get(outputOf(value)) ?? 0) + 1);
  return documents
    .flat()
    .filter((value) => times.get(outputOf(value)) === 1)
    .sort((a, b) => (a < b ? -1 : 1));
}
