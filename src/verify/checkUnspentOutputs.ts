/**
 * Verifies unspent outputs. The pages do not say which outputs were spent, so two other facts are checked. Every output
 * must have the runes that its records say. And for each rune, all outputs of an address must add up to the address's
 * balance. So if two outputs of an address have the same runes and amounts, no check notices if the wrong one of them
 * is listed as spent.
 */
import { join } from 'node:path';
import { writeLines } from '../disk/lineFile.ts';
import { readLines } from '../duckdb/readFilesSql.ts';
import { text } from '../duckdb/store.ts';
import { type DocumentLevel, levelRanges } from '../format/levels.ts';
import type { OutputTables } from '../format/listTables.ts';
import type { Limits } from '../limits.ts';
import { type Changes, changesIn, digitsOf, joinedParts, summedChanges, sumsOf, unitsOf } from '../lists/balanceChanges.sql.ts';
import { AddressOutputs, sortKeySql } from '../lists/outputsOfAddress.sql.ts';
import { comparedLevels } from './compareLevels.ts';
import { PULL_ANEW } from './findings.ts';
import type { Received } from './recordTables.ts';
import { outputsIn } from './storedOutputs.ts';
import type { ArchiveCheck, ListsCheck, Verification } from './verification.ts';

/**
 * Compares the outputs of an archive with the records up to the archive's tip. `limits` are the limits with which the
 * build made the lists. Rejects with an ArchiveError or a ChangedArchiveError for damage.
 */
export async function verifyOutputs(
  check: ListsCheck,
  outputs: OutputTables,
  limits: Limits,
  changes: Changes,
  received: Received,
): Promise<void> {
  const { findings, lists } = check;
  const before = findings.count;
  if (!(await readOutputs(check, outputs))) return findings.add('the archive has outputs that are spent but were never made');
  const sums = (select: string, group: string) =>
    `SELECT ${group}, ${joinedParts('upper', 'lower')} FROM (SELECT ${group}, ${sumsOf('units', '1')} FROM (${select}) GROUP BY ${group})`;
  const digits = digitsOf('upper', 'lower');
  const place = '"output", height, hash, tx_index, "timestamp", address, rune';
  const expected = sums(
    `SELECT ${place}, ${unitsOf('received.units', 'divisibility')} AS units FROM ${received} AS received JOIN (SELECT id, divisibility FROM ${changes.runes}) ON id = rune`,
    place,
  );
  await addFirst(
    `SELECT "output" AS name FROM (SELECT ${place}, units FROM read_outputs EXCEPT ALL SELECT ${place}, ${digits} FROM (${expected}))`,
    'the output',
    ' does not match its records',
    check,
  );
  const held = sums('SELECT address, rune AS id, units FROM read_outputs WHERE address IS NOT NULL', 'id, address');
  await addFirst(
    `SELECT address || ' and the rune ' || id AS name FROM (SELECT id, address, ${digits} AS units FROM (${held})) AS held
     FULL JOIN (SELECT id, address, ${digits} AS units FROM (${summedChanges(changesIn(0, lists.tip, changes), 'id, address')}) WHERE upper <> 0 OR lower <> 0) AS balance USING (id, address)
     WHERE held.units IS DISTINCT FROM balance.units`,
    'the outputs of the address',
    ' do not add up to its balance',
    check,
    `Build again with the same flags and --full. If that does not help: ${PULL_ANEW}`,
  );
  if (findings.count === before) await verifyAddresses(check, outputs, limits);
}

/**
 * Checks the outputs that the newest blocks make and spend. `lines` is SQL of a table with the kind of each output
 * (`made` or `spent`) and its outpoint. `isCut` is true if `lines` lacks some outputs. Call it only after
 * `verifyOutputs` ran without findings.
 */
export async function verifySpent(lines: string, isCut: boolean, received: Received, verification: Verification): Promise<void> {
  const of = (kind: string) => `(SELECT "output" FROM ${lines} WHERE kind = '${kind}')`;
  const wrong = [
    `SELECT "output" FROM ${of('spent')} GROUP BY "output" HAVING count(*) > 1`,
    `FROM ${of('spent')} SEMI JOIN read_outputs USING ("output")`,
    `FROM ${of('spent')} ANTI JOIN ${received} USING ("output")`,
    ...(isCut ? [] : [`FROM ${of('made')} ANTI JOIN read_outputs USING ("output") ANTI JOIN ${of('spent')} USING ("output")`]),
  ];
  const sql = `SELECT "output" AS name FROM (${wrong.join(' UNION ALL ')})`;
  await addFirst(sql, 'the files of changes are wrong about whether the output', ' was spent', verification);
}

/**
 * Compares the outputs that published rows spend (checkRows.ts) with all outputs. Call it only after `verifyOutputs`
 * ran without findings.
 */
export async function verifySpentInRows(spent: string, received: Received, verification: Verification): Promise<void> {
  const wrong = [
    `SELECT "output" FROM ${spent} GROUP BY "output" HAVING count(*) > 1`,
    `SELECT "output" FROM ${spent} SEMI JOIN read_outputs USING ("output")`,
    `SELECT "output" FROM ${spent} ANTI JOIN ${received} USING ("output")`,
    `SELECT "output" FROM ${received} ANTI JOIN read_outputs USING ("output") ANTI JOIN ${spent} USING ("output")`,
    `SELECT s."output" FROM ${spent} AS s JOIN ${received} AS r USING ("output") WHERE s.height < r.height OR s.address IS DISTINCT FROM r.address`,
  ];
  const sql = `SELECT "output" AS name FROM (${wrong.join(' UNION ALL ')})`;
  await addFirst(sql, 'the files of rows are wrong about whether, when or by whom the output', ' was spent', verification);
}

/**
 * Compares the units that the newest blocks send and burn with the units in the outputs that they spend, by files of
 * changes. Both are the same for each block, rune and address. Units without an address that are burned may also be
 * minted or premined. `lines` is SQL of a table of records (kind `moved`) and outpoints (kind `spent`) by height.
 */
export async function verifyMoved(lines: string, received: Received, verification: Verification): Promise<void> {
  const units = (amount: string) => `replace(coalesce(${amount}, '0'), '.', '') AS units`;
  const sums = (rows: string) =>
    `SELECT height, rune, address, ${joinedParts('upper', 'lower')} FROM (SELECT height, rune, address, ${sumsOf('units', '1')} FROM (${rows}) GROUP BY ALL)`;
  const moved = `SELECT height, rune, coalesce(address, '') AS address, operation, ${units('amount')} FROM ${lines} WHERE kind = 'moved'`;
  const spent = `SELECT s.height, r.rune, coalesce(r.address, '') AS address, ${units('r.units')}
    FROM (SELECT height, "output" FROM ${lines} WHERE kind = 'spent' AND height IS NOT NULL) AS s JOIN ${received} AS r USING ("output")`;
  const sql = `WITH moved AS (${moved})
    SELECT height::VARCHAR AS name FROM (${sums('FROM moved')}) AS m FULL JOIN (${sums(spent)}) AS s USING (height, rune, address)
    WHERE (coalesce(m.upper, 0), coalesce(m.lower, 0)) IS DISTINCT FROM (coalesce(s.upper, 0), coalesce(s.lower, 0))
      AND NOT (address = '' AND (height, rune) IN (SELECT (height, rune) FROM moved WHERE address = '' AND operation = 'burn'))`;
  await addFirst(sql, 'the file of changes of block', ' has other spent outputs than its records', verification);
}

/** Adds a finding about the smallest `name` that a query returns. Adds none if the query returns no rows. */
async function addFirst(sql: string, before: string, after: string, { findings, store }: Verification, advice?: string): Promise<void> {
  const [row] = await store.rows(`SELECT min(name) AS name FROM (${sql}) HAVING count(*) > 0`, { name: text });
  if (row !== undefined) findings.add(`${before} ${row.name}${after}`, advice);
}

/**
 * Makes three tables from the archive's documents of outputs (lists/unspentOutputs.ts): `read_outputs` (a row for each
 * rune of an unspent output), `read_values` (outputs that the blocks of a level make) and `read_spent` (outputs that
 * they spend). Returns false if an output is spent but was never made.
 */
async function readOutputs({ scratch, store, archive }: ArchiveCheck, { outputs }: OutputTables): Promise<boolean> {
  const lines = await writeLines(join(scratch, 'outputs.ndjson'), (to) => {
    for (const level of outputs)
      for (const { key: output, values, made } of outputsIn(archive, level)) {
        const [height, hash, tx_index, timestamp] = made?.place ?? [];
        const rest = { height, hash, tx_index, timestamp, address: made?.address, runes: values.slice(1).join() };
        to.add(JSON.stringify({ first: level.first, output, is_spent: made === undefined, ...rest }));
      }
  });
  const columns = `first: 'BIGINT', "output": 'VARCHAR', is_spent: 'BOOLEAN', height: 'BIGINT', hash: 'VARCHAR', tx_index: 'BIGINT', "timestamp": 'BIGINT', address: 'VARCHAR', runes: 'VARCHAR'`;
  await store.run(`CREATE OR REPLACE TEMP TABLE read_documents AS FROM ${readLines(lines, columns)};
    CREATE OR REPLACE TEMP TABLE read_spent AS SELECT first, "output" FROM read_documents WHERE is_spent;
    CREATE OR REPLACE TEMP VIEW read_values AS SELECT first, "output", height, url_encode(address) AS key,
      height || ',"' || hash || '",' || tx_index || ',' || "timestamp" AS place, runes FROM read_documents WHERE NOT is_spent;
    CREATE OR REPLACE TEMP TABLE read_outputs AS SELECT * EXCLUDE (one), one[1] AS rune, one[6] AS units FROM (
      SELECT "output", height, hash, tx_index, "timestamp", address, unnest(from_json('[' || runes || ']', '[["VARCHAR"]]')) AS one
      FROM read_documents WHERE NOT is_spent) ANTI JOIN read_spent USING ("output")`);
  const wrong = await store.number(
    `SELECT count(*) AS number FROM read_spent AS s LEFT JOIN read_values AS v ON v."output" = s."output" AND v.first < s.first WHERE v.first IS NULL`,
  );
  return wrong === 0;
}

/** Makes each address's list of outputs again from the tables of `readOutputs`, and compares it with the archive's. */
async function verifyAddresses(check: ListsCheck, outputs: OutputTables, limits: Limits): Promise<void> {
  const { findings, scratch, store, lists, rootPath } = check;
  const before = findings.count;
  const ranges = levelRanges(lists.tip, lists, lists.lowest);
  const { addresses: found, starts } = outputs;
  const writer = comparedLevels(WHAT, outputs, check);
  const heights = 'SELECT "output", height AS block_height FROM read_values';
  const addresses = await AddressOutputs.begin({ old: undefined, known: [], writer, limits, heights, ranges, scratch }, store);
  const expected: Record<'addresses' | 'starts', DocumentLevel[]> = { addresses: [], starts: [] };
  for (const range of ranges) {
    const made = await addresses.write(range, {
      made: `SELECT key, ${sortKeySql('height', '"output"')} AS sort, '["' || "output" || '",' || place || ',' || runes || ']' AS text, 0 AS number, '' AS id
        FROM read_values WHERE first = ${range.first} AND key IS NOT NULL`,
      removed: `SELECT key, "output" FROM read_values SEMI JOIN (SELECT "output" FROM read_spent WHERE first = ${range.first}) USING ("output") WHERE key IS NOT NULL`,
    });
    for (const kind of ['addresses', 'starts'] as const) if (made[kind] !== undefined) expected[kind].push(made[kind]);
  }
  if (findings.count === before && JSON.stringify(expected) !== JSON.stringify({ addresses: found, starts }))
    findings.add(`${rootPath} has other levels of outputs than a build makes`);
}

const WHAT = { addresses: 'outputs of the address', starts: 'starts of pages of the address' } as const;
