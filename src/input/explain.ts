/**
 * Says in people's words what is wrong with the records that the bulk check refused, and where they are.
 */
import { identifier, type Row, type Store, toNumber } from '../store/duckdb.ts';
import { judge } from './judge.ts';
import { isBlank, linesOf } from './lines.ts';
import { describe, type Report } from './report.ts';
import { type Member, type RawSource, validity } from './sources.ts';

/** Adds the records of a source that break a rule of their fields. */
export const reportBadRecords = (source: RawSource, report: Report, store: Store): Promise<void> =>
  reportRecords(source, `NOT (${validity(source)})`, report, store, (where, row) => judge(source, where, row).map(describe));

/**
 * Adds the records for which `condition` (SQL) holds: `explain` says what is wrong with one, given where it is (`input/a.ndjson line 3`)
 * and its cells as text.
 */
async function reportRecords(
  source: RawSource,
  condition: string,
  report: Report,
  store: Store,
  explain: (where: string, row: Row) => string[],
): Promise<void> {
  const { bad } = await store.row(`SELECT count(*) AS bad FROM ${source.relation} WHERE ${condition}`);
  if (toNumber(bad) === 0) return;
  const cells = source.columns.map((c) => `${identifier(c.field.column)}::VARCHAR AS ${identifier(c.field.column)}`);
  const item = source.form === 'envelope' ? ', item' : '';
  // Only now, with something to report, are records numbered within their files. A view may lack rows, and knows their places.
  const number = source.isView ? `${source.order} + 1` : `dense_rank() OVER (PARTITION BY source ORDER BY ${source.order})`;
  const rows = await store.rows(
    `SELECT source, number${item}, ${cells.join(', ')}
     FROM (SELECT *, ${number} AS number FROM ${source.relation})
     WHERE ${condition} ORDER BY source, number${item} LIMIT ${report.room}`,
  );
  const places = new Places(source);
  const lines: string[] = [];
  for (const row of rows) for (const line of explain(await places.of(row), row)) lines.push(line);
  // A record may break several rules, so there can be more lines than bad records.
  report.add(lines, Math.max(toNumber(bad) - rows.length, 0) + lines.length);
}

/** Names the places of records. */
class Places {
  readonly #source: RawSource;
  /** Of NDJSON files: the line of each record; records are not lines where some lines are blank. */
  readonly #lines = new Map<number, Map<number, number>>();

  constructor(source: RawSource) {
    this.#source = source;
  }

  /** For a row with `source`, `number` (of the record, or of the saved response, in the file) and perhaps `item`. */
  async of(row: Row): Promise<string> {
    const member = this.#source.members.find(({ id }) => id === toNumber(row['source']));
    if (member === undefined) throw new Error(`no file has the number ${toNumber(row['source'])}`);
    const number = toNumber(row['number']);
    const place = this.#source.unit === 'line' ? ((await this.#linesOf(member)).get(number) ?? number) : number;
    const result = row['item'] === undefined ? '' : ` results[${toNumber(row['item']) - 1}]`;
    return `${member.file.name} ${this.#source.unit} ${place}${result}`;
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
