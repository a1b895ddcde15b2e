/** Reads JSON files: activity records and saved responses. */
import { createReadStream } from 'node:fs';
import { text } from 'node:stream/consumers';
import { ACTIVITY_FIELDS, type Field } from '../contract/fields.ts';
import { readFiles } from '../duckdb/readFilesSql.ts';
import { identifier, literal, type Store } from '../duckdb/store.ts';
import { InputError } from '../errors.ts';
import { groupBy } from '../groupBy.ts';
import { namesTable, Report } from './inputFindings.ts';
import { fillTable, type RawSource, type Reading } from './rawSource.ts';
import type { Member, Recognised } from './recognise.ts';

/** Fields for `total` and `offset` of a saved response. */
const ENVELOPE_FIELDS: readonly Field[] = ['total', 'offset'].map((name) => ({
  column: `page_${name}`,
  path: name,
  kind: 'integer',
  required: true,
}));

/** DuckDB types of a record's keys. Values are read as JSON text, so that invalid values can be checked and reported. */
const ACTIVITY_TYPES = [...groupBy(ACTIVITY_FIELDS, ({ path }) => path.replace(/[.].*/, ''))].map(([key, fields]) => {
  const inside = fields.flatMap(({ path }) => path.split('.').slice(1)).map((name) => `${identifier(name)} JSON`);
  return [key, inside.length === 0 ? 'JSON' : `STRUCT(${inside.join(', ')})`] as const;
});

/** Smallest and largest value of DuckDB's `maximum_object_size`, the maximum length of a record or a response. */
const SMALLEST_OBJECT_BYTES = 4 * 1024 * 1024;
const LARGEST_OBJECT_BYTES = 128 * 1024 * 1024;

/** Reads JSON files of one layout into a table. Throws an InputError for a cut-off array or a response without results. */
export async function readJson({ form, format }: Recognised, members: readonly Member[], reading: Reading): Promise<RawSource> {
  const { store } = reading;
  const isEnvelope = form === 'envelope';
  // DuckDB allocates twice the maximum object size per thread. A record is small, but a saved response may be as large as its file.
  const largest = isEnvelope ? members.reduce((most, { bytes }) => Math.max(most, bytes), 0) + 1 : 0;
  const objectBytes = Math.min(Math.max(largest, SMALLEST_OBJECT_BYTES), LARGEST_OBJECT_BYTES);
  const types = isEnvelope
    ? `total: 'JSON', "offset": 'JSON', results: ${literal(`STRUCT(${ACTIVITY_TYPES.map(([n, t]) => `${n} ${t}`).join(', ')})[]`)}`
    : ACTIVITY_TYPES.map(([name, type]) => `${name}: ${literal(type)}`).join(', ');
  const options = `format = ${literal(format)}, compression = 'uncompressed', maximum_object_size = ${objectBytes}, columns = {${types}}`;
  const scan = (paths: readonly string[]) => readFiles('json', paths, [options]);
  const cells = (record: string) => ACTIVITY_FIELDS.map((f) => `${record}${f.path} AS ${identifier(f.column)}`).join(', ');
  const relation = store.nameOf('raw');
  if (isEnvelope) {
    const pages = store.nameOf('pages');
    await fillTable(pages, members, 'total, "offset", results', scan, reading);
    await checkPages(pages, members, store);
    await store.run(
      `CREATE TEMP TABLE ${relation} AS
       SELECT source, page, item, page_total, page_offset, ${cells('r.')}
       FROM (SELECT source, rowid AS page, total AS page_total, "offset" AS page_offset, unnest(results) AS r,
                    generate_subscripts(results, 1) AS item FROM ${pages})`,
    );
    await store.run(`DROP TABLE ${pages}`);
  } else await fillTable(relation, members, cells(''), scan, reading);
  if (format === 'array') for (const member of members) await checkEnd(member);
  const fields = isEnvelope ? [...ENVELOPE_FIELDS, ...ACTIVITY_FIELDS] : ACTIVITY_FIELDS;
  return {
    form,
    members,
    unit: format === 'newline_delimited' ? 'line' : 'record',
    relation,
    order: isEnvelope ? 'page' : 'rowid',
    columns: fields.map((field) => ({ field, shape: 'json' as const })),
    isView: false,
  };
}

/** Throws an InputError for a response without `results`, or with empty `results` at an offset below its total. */
async function checkPages(pages: string, members: readonly Member[], store: Store): Promise<void> {
  const isPast = `coalesce(total = '0' OR TRY_CAST(total AS BIGINT) <= TRY_CAST("offset" AS BIGINT), false)`;
  const faults = `SELECT source, rowid, CASE WHEN results IS NULL THEN 'results is missing; a saved response has the keys limit, offset, total and results'
      ELSE 'results is empty, though total is ' || coalesce(total, 'missing') || ' and offset is ' || coalesce("offset", 'missing') || '; save the response again' END AS fault
    FROM (SELECT source, rowid, results, total::VARCHAR AS total, "offset"::VARCHAR AS "offset" FROM ${pages})
    WHERE results IS NULL OR (len(results) = 0 AND NOT ${isPast})`;
  if ((await store.number(`SELECT count(*) AS number FROM (${faults})`)) === 0) return;
  const names = members.map(({ id, file }) => [id, file.name] as const);
  const files = await namesTable(names, store);
  const numbered = `SELECT rowid, row_number() OVER (PARTITION BY source ORDER BY rowid) AS number FROM ${pages}`;
  const report = new Report();
  await report.addFound(
    `SELECT [source, number] AS place, name || ' response ' || number || ': ' || fault AS line
     FROM (${faults}) JOIN (${numbered}) USING (rowid) JOIN ${files} USING (source)`,
    store,
  );
  report.throwIfAny((count) => `${count} saved response(s) are incomplete`);
}

/** Bytes at the end of a JSON array of which one must be no white space. */
const END_BYTES = 1024 * 1024;

/** Throws an InputError for an array without its closing bracket, because DuckDB accepts a file that ends at a comma. */
async function checkEnd({ file, path, bytes }: Member): Promise<void> {
  const end = await text(createReadStream(path, { start: Math.max(bytes - END_BYTES, 0) }));
  if (end.trimEnd().endsWith(']')) return;
  throw new InputError(`${file.name} is broken JSON: the array does not end with ]`, ['The file was cut off; fetch or write it again.']);
}
