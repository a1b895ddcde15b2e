/**
 * Writes the lists of unspent outputs by address (lists/unspentOutputs.ts), level by level, the lowest first. Streams
 * each list, so that at most one page of a list is in memory.
 */
import { join } from 'node:path';
import { writeLines } from '../disk/lineFile.ts';
import { readLines } from '../duckdb/readFilesSql.ts';
import { rowParts, sortedRows } from '../duckdb/sortedRows.ts';
import type { Store } from '../duckdb/store.ts';
import { documentsOf, findRanges, onlyKey } from '../engine/archive/documentWriter.ts';
import { addLines, type LevelForm, type LevelWriter, linesIn } from '../engine/archive/makeLevels.ts';
import { pageKey, separatorOf } from '../format/documentKeys.ts';
import type { DocumentLevel, LevelRange } from '../format/levels.ts';
import { countCrossing } from '../limits.ts';
import { bytesOf, COUNT, GROUP, ListRows, MADE, PLACED, REMOVED, textOf } from './outputRows.sql.ts';
import { ABOVE_HEIGHTS, removalKey, renderAddressHead, SPENT, sortKeyOf } from './unspentOutputs.ts';

export interface AddressForm extends LevelForm<`outputs.${'addresses' | 'starts'}`> {
  /** Levels of outputs by outpoint that this build keeps from the last build. */
  readonly known: readonly DocumentLevel[];
  /** SQL that selects `output` and `block_height` of all outputs of the other levels. */
  readonly heights: string;
  readonly ranges: readonly LevelRange[];
}

/**
 * Function that receives a page of a list. `page` is the index of the page, and `start` is a lower bound of the sort
 * keys (`sortKeySql`) of its outputs.
 */
type AddPage = (key: string, page: number, start: string) => void;

/** Lower bound of the sort keys of a list's first page. It sorts before every sort key. */
const FIRST_START = '0';

/** Returns the SQL expression of an output's sort key (lists/unspentOutputs.ts). `height` and `output` are SQL. */
export const sortKeySql = (height: string, output: string): string =>
  `lpad((${ABOVE_HEIGHTS} - ${height})::VARCHAR, 8, '0') || split_part(${output}, ':', 1) || lpad(split_part(${output}, ':', 2), 10, '0')`;

/** SQL that selects the outputs that a level makes and spends. `key` is the key of the address's list. */
export interface LevelRows {
  /**
   * Outputs that the level makes and does not spend. An output has one row with all its runes, or a row for each rune.
   * Columns: `key`, `sort` (the sort key), `text` (a value of the list), and `number` and `id` of the rune.
   */
  readonly made: string;
  /** Outputs of lower levels that the level spends. Columns: `key` and `output`. */
  readonly removed: string;
}

export class AddressOutputs {
  private constructor(
    private readonly form: AddressForm,
    private readonly store: Store,
  ) {}

  static async begin(form: AddressForm, store: Store): Promise<AddressOutputs> {
    await store.run('CREATE OR REPLACE TEMP TABLE list_pages (first BIGINT, key VARCHAR, page BIGINT, start VARCHAR)');
    return new AddressOutputs(form, store);
  }

  /** Inserts the pages of a kept level into `list_pages`. `starts` is undefined if no list of the level has pages. */
  async reuse(starts: DocumentLevel | undefined): Promise<void> {
    const { old, limits } = this.form;
    if (old === undefined || starts === undefined) return;
    await this.#listPages(starts, async (add) => {
      for (const { key, values } of documentsOf(old, starts)) {
        const [list = '', number] = key.split(' ');
        for (const [i, start] of values.entries()) add(list, Number(number) * limits.listPage + i, start);
      }
    });
  }

  /**
   * Calls `find`, which passes the pages of a level to `add`, and inserts these pages into the table `list_pages`.
   * Returns the number of pages.
   */
  async #listPages({ first }: LevelRange, find: (add: AddPage) => Promise<void>): Promise<number> {
    const lines = await writeLines(join(this.form.scratch, 'list-pages.ndjson'), (to) =>
      find((key, page, start) => to.add(JSON.stringify({ key, page, start }))),
    );
    if (lines.count === 0) return 0;
    countCrossing('listPage');
    await this.store.run(`INSERT INTO list_pages SELECT ${first}, key, page, start
      FROM ${readLines(lines, `key: 'VARCHAR', page: 'BIGINT', start: 'VARCHAR'`)}`);
    return lines.count;
  }

  /** Writes a level. Returns the level of each kind of document, or undefined for a kind without documents. */
  async write(range: LevelRange, { made, removed }: LevelRows): Promise<Record<'addresses' | 'starts', DocumentLevel | undefined>> {
    const { open, limits } = this.form;
    await this.store.run(
      `CREATE OR REPLACE TEMP TABLE level_removed AS SELECT key, "output", NULL::BIGINT AS first, NULL::BIGINT AS page FROM (${removed})`,
    );
    await this.#placeRemoved(range);
    const addresses = open('outputs.addresses', range);
    const all = {
      rows: `SELECT *, false AS is_removed, NULL::BIGINT AS first, NULL::BIGINT AS page FROM (${made})
        UNION ALL BY NAME SELECT key, "output" AS text, true AS is_removed, first, page FROM level_removed`,
      ...{ key: 'key', rowBytes: LIST_BYTES },
    };
    const pages = await this.#listPages(range, async (addPage) => {
      for await (const part of rowParts(all, limits, this.store)) await this.#writePart(part, addresses, addPage);
    });
    const starts = {
      rows: `SELECT key || ' ' || lpad((page // ${limits.listPage})::VARCHAR, 8, '0') AS key, start, page FROM list_pages WHERE first = ${range.first}`,
      most: `${pages}`,
      key: 'key',
      within: 'page',
      select: `key || chr(9) || start || chr(10)`,
    };
    const startsOf = open('outputs.starts', range);
    if (pages > 0) await addLines(startsOf, linesIn(sortedRows(starts, limits, this.store)));
    return { addresses: await addresses.finish(range), starts: await startsOf.finish(range) };
  }

  /** Writes the lists of some addresses, whose rows `part` selects. */
  async #writePart(part: string, to: LevelWriter, addPage: AddPage): Promise<void> {
    // If a list has more than a page of outputs, its document begins with the number of outputs. So the outputs of such
    // lists are counted before they are written. An output may have several rows.
    await this.store.run(`CREATE OR REPLACE TEMP TABLE level_part AS ${part};
      CREATE OR REPLACE TEMP TABLE level_counts AS SELECT key, count(DISTINCT sort) AS count FROM level_part WHERE NOT is_removed
        GROUP BY key HAVING count(*) > ${this.form.limits.listPage}`);
    const rows = new ListRows(LEVEL_ROWS, this.store);
    try {
      await rows.next();
      for (let { key } = rows; key !== undefined; key = rows.key) await this.#writeList(key, rows, to, addPage);
    } finally {
      await rows.close();
    }
  }

  async #writeList(key: string, rows: ListRows, to: LevelWriter, addPage: AddPage): Promise<void> {
    const { listPage: page } = this.form.limits;
    let made: number | undefined;
    for (; rows.isAt(key, COUNT); await rows.next()) made = rows.first;
    const removals: [number, ...number[]][] = [];
    for (; rows.isAt(key, GROUP); await rows.next()) {
      if (removals.at(-1)?.[0] !== rows.first) removals.push([rows.first]);
      removals.at(-1)?.push(rows.page, Number(textOf(rows.value)));
    }
    const removed: Uint8Array[] = [];
    for (; rows.isAt(key, REMOVED); await rows.next()) removed.push(rows.value);
    const added: Uint8Array[] = [];
    if (made === undefined) while (rows.isAt(key, MADE)) added.push(await rows.takeOutput());
    made ??= added.length;
    const isPaged = made > page;
    const head = isPaged || removals.length > 0 ? [bytesOf(renderAddressHead(made, removals))] : [];
    if (isPaged) to.addLine(listLine(key, [...head, ...removed]));
    let [values, number, last]: [Uint8Array[], number, string] = [[], 0, ''];
    const endPage = () => {
      const [first] = values;
      if (first === undefined) return;
      to.addLine(listLine(pageKey(key, number), values));
      addPage(key, number, number === 0 ? FIRST_START : separatorOf(last, sortKeyOf(textOf(first))));
      last = sortKeyOf(textOf(values.at(-1) ?? first));
      [values, number] = [[], number + 1];
    };
    const add = (value: Uint8Array) => {
      if (values.length === page && isPaged) endPage();
      values.push(value);
    };
    for (const value of added) add(value);
    while (rows.isAt(key, MADE)) add(await rows.takeOutput());
    if (isPaged) endPage();
    else if (head.length + values.length + removed.length > 0) to.addLine(listLine(key, [...head, ...values, ...removed]));
    await this.#writeRemovals(key, rows, to);
  }

  async #writeRemovals(key: string, rows: ListRows, to: LevelWriter): Promise<void> {
    while (rows.isAt(key, PLACED)) {
      const { first, page } = rows;
      const values: Uint8Array[] = [];
      for (; rows.isAt(key, PLACED) && rows.first === first && rows.page === page; await rows.next()) values.push(rows.value);
      to.addLine(listLine(removalKey(key, first, page), values));
    }
  }

  /**
   * Finds the level and the page that each removed output is in. Does so only for addresses that have a list with pages
   * in a lower level, or of which this level removes more outputs than a page has. Documents group the removed outputs
   * of these addresses by page. Outputs that were never made, which only wrong data has, get no level and page.
   */
  async #placeRemoved(range: LevelRange): Promise<void> {
    const store = this.store;
    const lower = this.form.ranges.filter(({ last }) => last < range.first);
    if (lower.length === 0) return;
    await store.run(`CREATE OR REPLACE TEMP TABLE placed_keys AS
        SELECT DISTINCT key FROM level_removed SEMI JOIN list_pages USING (key)
        UNION SELECT key FROM level_removed GROUP BY key HAVING count(*) > ${this.form.limits.listPage}`);
    const sought = 'SELECT "output" FROM level_removed SEMI JOIN placed_keys USING (key)';
    const count = await store.number(`SELECT count(*) AS number FROM (${sought})`);
    if (count === 0) return;
    await store.run(`CREATE OR REPLACE TEMP TABLE removed_heights AS
      SELECT DISTINCT "output", block_height AS height FROM (${this.form.heights}) SEMI JOIN (${sought}) USING ("output")`);
    await this.#findHeights(
      `SELECT DISTINCT "output" FROM (${sought}) ANTI JOIN removed_heights USING ("output") ORDER BY "output"`,
      range,
    );
    const ranges = lower.map(({ first, last }) => `(${first}, ${last})`).join(', ');
    await store.run(`CREATE OR REPLACE TEMP TABLE found_pages AS
        SELECT r.key, r."output", r.first, coalesce(p.page, 0) AS page FROM (
          SELECT key, "output", l.first, ${sortKeySql('height', '"output"')} AS sort FROM level_removed SEMI JOIN placed_keys USING (key)
          JOIN removed_heights USING ("output") JOIN (VALUES ${ranges}) AS l(first, last) ON height BETWEEN l.first AND l.last) AS r
        ASOF LEFT JOIN list_pages AS p ON p.key = r.key AND p.first = r.first AND r.sort >= p.start;
      CREATE OR REPLACE TEMP TABLE level_removed AS
        SELECT r.key, r."output", f.first, f.page
        FROM level_removed AS r LEFT JOIN found_pages AS f ON f.key = r.key AND f."output" = r."output"`);
  }

  /**
   * Finds outputs in the levels of the last build that are below `range`, and inserts them with their heights into
   * `removed_heights`. `sql` selects the outputs, sorted by outpoint.
   */
  async #findHeights(sql: string, range: LevelRange): Promise<void> {
    const { old, known, scratch } = this.form;
    if (old === undefined) return;
    const lines = await writeLines(join(scratch, 'removed-heights.ndjson'), async (to) => {
      for await (const chunk of this.store.stream(sql)) {
        const outputs = chunk.getRows().map(([output]) => onlyKey(String(output)));
        for (const level of known) {
          if (level.last >= range.first) continue;
          for await (const { key, values } of findRanges(old, level, outputs)) {
            const [first = ''] = values;
            if (first !== SPENT) to.add(JSON.stringify({ output: key, height: Number.parseInt(first.slice(1), 10) }));
          }
        }
      }
    });
    if (lines.count > 0)
      await this.store.run(`INSERT INTO removed_heights FROM ${readLines(lines, `"output": 'VARCHAR', height: 'BIGINT'`)}`);
  }
}

/** Bytes of memory that DuckDB needs to sort a row of a list. */
const LIST_BYTES = 1024;

/** All rows of `level_part`, for ListRows. */
const LEVEL_ROWS = `SELECT key, ${COUNT} AS kind, count AS first, 0 AS page, '' AS sort, '' AS text, -1 AS number, '' AS id FROM level_counts
  UNION ALL SELECT key, ${GROUP}, first, page, '', count(*)::VARCHAR, -1, '' FROM level_part WHERE is_removed AND first IS NOT NULL GROUP BY ALL
  UNION ALL SELECT key, ${REMOVED}, 0, 0, text, '["' || text || '"]', -1, '' FROM level_part WHERE is_removed AND first IS NULL
  UNION ALL SELECT key, ${MADE}, 0, 0, sort, text, number, id FROM level_part WHERE NOT is_removed
  UNION ALL SELECT key, ${PLACED}, first, page, text, text, -1, '' FROM level_part WHERE is_removed AND first IS NOT NULL`;

const [TAB, LINE_FEED] = [9, 10];

/** Returns a document as a line for DocumentWriter.addLine(). */
function listLine(key: string, values: readonly Uint8Array[]): Uint8Array {
  let length = key.length + values.length + 1;
  for (const value of values) length += value.length;
  const line = Buffer.allocUnsafe(length);
  let at = line.write(key, 'latin1');
  for (const value of values) {
    line[at] = TAB;
    line.set(value, at + 1);
    at += value.length + 1;
  }
  line[at] = LINE_FEED;
  return line;
}
