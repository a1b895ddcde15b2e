/**
 * Verifies unspent outputs. The pages do not say which outputs were spent, so two facts stand for it: every output has
 * what its records say that it received, and all outputs of an address add up to its balances, rune by rune. Two outputs
 * of an address with the same runes and amounts could still stand for each other.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { DocumentLevel } from '../archive/documents.ts';
import { type OutputTables, parseAddressOutput, parseOutput, type UnspentOutput } from '../archive/outputTables.ts';
import { documentsOf, mergeDocuments } from '../archiver/documents.ts';
import type { OldArchive } from '../archiver/oldArchive.ts';
import { joinAddress, joinOutput } from '../archiver/outputs.ts';
import { changesIn, digitsOf, joinedParts, sumsOf, unitsOf } from '../archiver/unitSql.ts';
import { type Store, text } from '../store/duckdb.ts';
import { readLines } from '../store/files.ts';
import type { Activity } from './blocks.ts';
import type { Findings } from './findings.ts';

const COLUMNS = `"output": 'VARCHAR', height: 'BIGINT', hash: 'VARCHAR', tx_index: 'BIGINT', "timestamp": 'BIGINT', address: 'VARCHAR', rune: 'VARCHAR', units: 'VARCHAR'`;

/** What an output received of a rune, as a line of `received.ndjson`. `amount` has decimals. */
export const receivedLine = ({ location, address, rune, amount = '0' }: Activity, unprefixed: (hex: string) => string): string =>
  `${JSON.stringify({
    output: `${unprefixed(location.tx_id)}:${location.vout}`,
    height: location.block_height,
    hash: unprefixed(location.block_hash),
    tx_index: location.tx_index,
    timestamp: location.timestamp,
    address: address ?? null,
    rune: rune.id,
    units: amount,
  })}\n`;

/** Makes the table that `loadReceived` fills. */
export const makeReceived = (store: Store): Promise<void> =>
  store.run(`CREATE TEMP TABLE received_outputs ("output" VARCHAR, height BIGINT, hash VARCHAR, tx_index BIGINT, "timestamp" BIGINT,
    address VARCHAR, rune VARCHAR, amount VARCHAR)`);

/** Loads lines of `receivedLine` into the store. */
export const loadReceived = (file: string, store: Store): Promise<void> =>
  store.run(`INSERT INTO received_outputs FROM ${readLines(file, COLUMNS)}`);

/**
 * Compares the outputs of an archive with the records up to the block `tip`. Needs the tables `received_outputs`,
 * `listed_records` and `state.runes`. Throws a ChangedArchiveError when a file is damaged.
 */
export async function verifyOutputs(
  tables: OutputTables,
  archive: OldArchive,
  tip: number,
  scratch: string,
  findings: Findings,
  store: Store,
): Promise<void> {
  const byOutpoint = join(scratch, 'outputs.ndjson');
  const byAddress = join(scratch, 'addresses.ndjson');
  const isReadable =
    (await writeLines(byOutpoint, tables.outputs, archive, joinOutput, ({ key, values }) => [parseOutput(key, values)])) &&
    (await writeLines(byAddress, tables.addresses, archive, joinAddress, ({ key, values }) =>
      values.map((value) => {
        const output = parseAddressOutput(value, decodeURIComponent(key));
        return typeof output === 'string' ? undefined : output;
      }),
    ));
  if (!isReadable) {
    findings.add('the archive has outputs that are spent but were never made, or that cannot be read');
    return;
  }
  await store.run(`CREATE TEMP TABLE read_outputs AS FROM ${readLines(byOutpoint, COLUMNS)};
    CREATE TEMP TABLE read_addresses AS FROM ${readLines(byAddress, COLUMNS)}`);
  await addFirst(
    'SELECT "output" AS name FROM (FROM read_addresses EXCEPT ALL FROM read_outputs)',
    'the outputs of an address have',
    '',
    findings,
    store,
  );
  await addFirst(
    'SELECT "output" AS name FROM (SELECT * FROM read_outputs WHERE address IS NOT NULL EXCEPT ALL FROM read_addresses)',
    'the outputs of an address lack',
    '',
    findings,
    store,
  );
  const sums = (select: string, group: string) =>
    `SELECT ${group}, ${joinedParts('upper', 'lower')} FROM (SELECT ${group}, ${sumsOf('units', '1')} FROM (${select}) GROUP BY ${group})`;
  const digits = digitsOf('upper', 'lower');
  const place = '"output", height, hash, tx_index, "timestamp", address, rune';
  const received = sums(
    `SELECT ${place}, ${unitsOf('amount', 'divisibility')} AS units FROM received_outputs JOIN (SELECT id, divisibility FROM state.runes) ON id = rune`,
    place,
  );
  await addFirst(
    `SELECT "output" AS name FROM (SELECT ${place}, units FROM read_outputs EXCEPT ALL SELECT ${place}, ${digits} FROM (${received}))`,
    'the output',
    ' has not what its records say',
    findings,
    store,
  );
  const held = sums('SELECT address, rune AS id, units FROM read_outputs WHERE address IS NOT NULL', 'id, address');
  await addFirst(
    `SELECT address || ' and the rune ' || id AS name FROM (SELECT id, address, ${digits} AS units FROM (${held})) AS held
     FULL JOIN (SELECT id, address, ${digits} AS units FROM (${changesIn(0, tip)}) WHERE upper <> 0 OR lower <> 0) AS balance USING (id, address)
     WHERE held.units IS DISTINCT FROM balance.units`,
    'the outputs of the address',
    ' do not add up to its balance',
    findings,
    store,
  );
}

/** Adds a finding about the first row of a query. */
async function addFirst(sql: string, before: string, after: string, findings: Findings, store: Store): Promise<void> {
  const [row] = await store.rows(`SELECT min(name) AS name FROM (${sql}) HAVING count(*) > 0`, { name: text });
  if (row !== undefined) findings.add(`${before} ${row.name}${after}`);
}

interface Document {
  readonly key: string;
  readonly values: readonly string[];
}

/** Writes a line for each rune of the outputs of all levels. Returns false if a document is not one that a build makes. */
async function writeLines(
  file: string,
  levels: readonly DocumentLevel[],
  archive: OldArchive,
  joinValues: (documents: readonly (readonly string[])[]) => readonly string[],
  parse: (document: Document) => readonly (UnspentOutput | undefined)[],
): Promise<boolean> {
  const handle = openSync(file, 'w');
  try {
    for await (const document of mergeDocuments(
      levels.map((level) => documentsOf(archive, level)),
      joinValues,
    )) {
      if (document.values.length === 0) continue;
      const outputs = parse(document);
      const lines: string[] = [];
      for (const one of outputs) {
        if (one === undefined || one.runes.length === 0) return false;
        const { output, place, address = null, runes } = one;
        const [height, hash, tx_index, timestamp] = place;
        for (const [rune, , , , , units] of runes) {
          lines.push(`${JSON.stringify({ output, height, hash, tx_index, timestamp, address, rune, units })}\n`);
        }
      }
      writeSync(handle, lines.join(''));
    }
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  } finally {
    closeSync(handle);
  }
}
