/**
 * Reports the invalid records of a source: file, line and broken rule.
 */
import { identifier, int, nullable, type Store, text, type Values } from '../store/duckdb.ts';
import { isBlank, linesOf } from './lines.ts';
import type { Member, RawSource } from './rawSource.ts';
import { type Cells, recordFaults } from './recordFaults.ts';
import { validity } from './recordSql.ts';
import { describe, type Report } from './report.ts';

/**
 * The place of a record: its file, the number of the record or saved response in the file, and the position in a saved
 * response. No field of a record has these names.
 */
const PLACE = { source: int, place: int, item: nullable(int) };
type Place = Values<typeof PLACE>;

/** Adds the records with invalid fields to the report. */
export const reportBadRecords = (source: RawSource, report: Report, store: Store): Promise<void> =>
  reportRecords(source, `NOT (${validity(source)})`, report, store, (where, row) => recordFaults(source, where, row).map(describe));

/**
 * Adds the records that match `condition` (SQL). `explain` returns the findings of one record, given its place
 * (`input/a.ndjson line 3`) and its cells as text.
 */
async function reportRecords(
  source: RawSource,
  condition: string,
  report: Report,
  store: Store,
  explain: (where: string, row: Cells) => string[],
): Promise<void> {
  const { bad } = await store.row(`SELECT count(*) AS bad FROM ${source.relation} WHERE ${condition}`, { bad: int });
  if (bad === 0) return;
  const cells = source.columns.map((c) => `${identifier(c.field.column)}::VARCHAR AS ${identifier(c.field.column)}`);
  const asText = Object.fromEntries(source.columns.map((c) => [c.field.column, nullable(text)]));
  const item = source.form === 'envelope' ? 'item' : 'NULL AS item';
  // Numbering is slow, so it happens only when there is a finding. A view has row numbers, because it may skip rows.
  const number = source.isView ? `${source.order} + 1` : `dense_rank() OVER (PARTITION BY source ORDER BY ${source.order})`;
  const rows = await store.rows(
    `SELECT source, place, ${item}, ${cells.join(', ')}
     FROM (SELECT *, ${number} AS place FROM ${source.relation})
     WHERE ${condition} ORDER BY source, place, item LIMIT ${report.room}`,
    { ...asText, ...PLACE },
  );
  const places = new Places(source);
  const lines: string[] = [];
  for (const row of rows) for (const line of explain(await places.of(row), row)) lines.push(line);
  // A record may break several rules, so there may be more lines than records.
  report.add(lines, Math.max(bad - rows.length, 0) + lines.length);
}

/** Finds the places of records in their files. */
class Places {
  readonly #source: RawSource;
  /** Line numbers of the records of NDJSON files, which differ from record numbers when lines are blank. */
  readonly #lines = new Map<number, Map<number, number>>();

  constructor(source: RawSource) {
    this.#source = source;
  }

  /** Returns a record's place for a message: `input/a.ndjson line 3`. */
  async of({ source, place, item }: Place): Promise<string> {
    const member = this.#source.members.find(({ id }) => id === source);
    if (member === undefined) throw new Error(`no file has the number ${source}`);
    const number = this.#source.unit === 'line' ? ((await this.#linesOf(member)).get(place) ?? place) : place;
    const result = item === undefined ? '' : ` results[${item - 1}]`;
    return `${member.file.name} ${this.#source.unit} ${number}${result}`;
  }

  async #linesOf(member: Member): Promise<Map<number, number>> {
    const known = this.#lines.get(member.id);
    if (known !== undefined) return known;
    const lines = new Map<number, number>();
    let line = 0;
    for await (const bytes of linesOf(member.path)) {
      line += 1;
      if (!isBlank(bytes)) lines.set(lines.size + 1, line);
    }
    this.#lines.set(member.id, lines);
    return lines;
  }
}
