/**
 * Writes the lists of unspent outputs by address (lists/unspentOutputs.ts), level by level, the lowest first. Streams
 * each list, so that at most one page of a list is in memory.
 *
 * A level may join levels of the last build. Its lists begin with the outputs of new blocks. The outputs of the reused
 * levels follow, the newest level first, without the outputs that the joined level spends. Each part is already sorted
 * by descending height, so the joined list needs no sorting.
 */
import { join } from 'node:path';
import { type LineFile, writeLines } from '../disk/lineFile.ts';
import { readLines } from '../duckdb/readFilesSql.ts';
import type { Store } from '../duckdb/store.ts';
import { Cursor } from '../engine/archive/cursor.ts';
import { documentsOf, findRanges, onlyKey, type StoredDocument } from '../engine/archive/documentWriter.ts';
import { documentsIn, groupRows, type LevelForm, type LevelWriter, type Row, writeDocuments } from '../engine/archive/makeLevels.ts';
import { ChangedArchiveError, type StoredArchive } from '../engine/archive/storedArchive.ts';
import { pageKey, separatorOf } from '../format/documentKeys.ts';
import type { DocumentLevel, LevelRange } from '../format/levels.ts';
import { countCrossing, type WorkLimits } from '../limits.ts';
import {
  ABOVE_HEIGHTS,
  type AddressDocument,
  outpointOf,
  outpointOfSortKey,
  parseAddress,
  removalKey,
  renderAddressHead,
  SPENT,
  sortKeyOf,
} from './unspentOutputs.ts';

export interface AddressForm extends LevelForm<'addresses' | 'starts'> {
  /** Levels of outputs by outpoint of the last build that this build reuses, unchanged or as parts of longer levels. */
  readonly known: readonly DocumentLevel[];
  /** SQL that selects `output` and `block_height` of all outputs that the last build does not have. */
  readonly heights: string;
  /** The ranges of all levels. */
  readonly ranges: readonly LevelRange[];
}

/** Adds a page of a list. `page` is the index of the page, and `start` is the lower bound of its sort keys. */
type AddPage = (key: string, page: number, start: string) => void;

/** SQL that selects no rows, for a level without cancelled outputs. */
const NONE = `SELECT NULL::VARCHAR AS key, NULL::VARCHAR AS "output", NULL::VARCHAR AS sort LIMIT 0`;

/** Lower bound of the sort keys of a list's first page. All sort keys sort after it. */
const FIRST_START = '0';

/** Returns the SQL expression of an output's sort key (lists/unspentOutputs.ts). `height` and `output` are SQL. */
export const sortKeySql = (height: string, output: string): string =>
  `lpad((${ABOVE_HEIGHTS} - ${height})::VARCHAR, 8, '0') || split_part(${output}, ':', 1) || lpad(split_part(${output}, ':', 2), 10, '0')`;

/** SQL that selects the outputs that a level makes and spends. `key` is the key of the address's list. */
export interface LevelRows {
  /**
   * Outputs that new blocks make and that the level does not spend. An output has a row for each rune: `key`, `sort`
   * (the sort key), `place`, `number`, `id`, and the columns `rune` and `units` for `runesOf`.
   */
  readonly made: string;
  /**
   * Outputs of lower levels that the level spends: `key`, `output`, `first` (lowest height of the lower level) and
   * `page`. `first` and `page` have values only for rows that come from documents of reused levels with these values.
   */
  readonly removed: string;
  /** Outputs of reused levels that the joined level spends: `key`, `output`, `sort`. Undefined without such outputs. */
  readonly cancelled: string | undefined;
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

  /** Adds the pages of a kept level. `starts` is undefined if no list of the level has pages. */
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

  /** Calls `find`, which passes the pages of a level to `add`, and inserts them into the table `list_pages`. */
  async #listPages({ first }: LevelRange, find: (add: AddPage) => Promise<void>): Promise<void> {
    const lines = await writeLines(join(this.form.scratch, 'list-pages.ndjson'), (to) =>
      find((key, page, start) => to.add(JSON.stringify({ key, page, start }))),
    );
    if (lines.count === 0) return;
    countCrossing('listPage');
    await this.store.run(`INSERT INTO list_pages SELECT ${first}, key, page, start
      FROM ${readLines(lines, `key: 'VARCHAR', page: 'BIGINT', start: 'VARCHAR'`)}`);
  }

  /**
   * Writes a level that joins the `reused` levels. A kind without documents has an undefined result. Throws a
   * ChangedArchiveError when documents of the last build contradict each other.
   */
  async write(
    range: LevelRange,
    reused: readonly DocumentLevel[],
    { made, removed, cancelled = NONE }: LevelRows,
  ): Promise<Record<'addresses' | 'starts', DocumentLevel | undefined>> {
    const { writer, old, limits } = this.form;
    await this.store.run(`CREATE OR REPLACE TEMP TABLE level_removed AS ${removed};
      CREATE OR REPLACE TEMP TABLE level_cancelled AS ${cancelled};
      CREATE OR REPLACE TEMP VIEW level_made AS ${made}`);
    await this.#placeRemoved(range);
    await this.store.run(`CREATE OR REPLACE TEMP TABLE level_counts AS
      SELECT key, count(*) AS count FROM (SELECT DISTINCT key, sort FROM level_made) GROUP BY key`);
    const addresses = writer('addresses', range);
    const rows = new ListRows(limits, this.store);
    const lists = old === undefined ? [] : reused.map((level) => new OldLists(documentsOf(old, level), limits.listPage)).reverse();
    try {
      await rows.next();
      await this.#listPages(range, async (addPage) => {
        for (;;) {
          let key = rows.current?.key;
          for (const list of lists) if (list.key !== undefined && (key === undefined || list.key < key)) key = list.key;
          if (key === undefined) break;
          const same = lists.filter((list) => list.key === key);
          await this.#writeList(key, rows, same, addresses, addPage);
        }
      });
    } finally {
      await rows.close();
    }
    const starts = `SELECT key || ' ' || lpad((page // ${limits.listPage})::VARCHAR, 8, '0') AS key, start, page FROM list_pages WHERE first = ${range.first}`;
    const unsorted = { rows: starts, key: 'key', within: 'page' };
    return {
      addresses: addresses.finish(range),
      starts: await writeDocuments(writer('starts', range), range, documentsIn(unsorted, limits, this.store)),
    };
  }

  async #writeList(key: string, rows: ListRows, lists: readonly OldLists[], to: LevelWriter, addPage: AddPage): Promise<void> {
    const { listPage: page } = this.form.limits;
    let made = 0;
    for (const list of lists) made += list.made;
    for await (const { first } of rows.of(key, COUNT)) made += first;
    const removals: [number, ...number[]][] = [];
    for await (const row of rows.of(key, GROUP)) {
      if (removals.at(-1)?.[0] !== row.first) removals.push([row.first]);
      removals.at(-1)?.push(row.page, Number(row.text));
    }
    const removed: string[] = [];
    for await (const { text } of rows.of(key, REMOVED)) removed.push(`["${text}"]`);
    const isPaged = made > page;
    const head = isPaged || removals.length > 0 ? [renderAddressHead(made, removals)] : [];
    if (isPaged) to.add({ key, values: [...head, ...removed] });
    let [values, number, last]: [string[], number, string] = [[], 0, ''];
    const endPage = () => {
      const [first] = values;
      if (first === undefined) return;
      to.add({ key: pageKey(key, number), values });
      addPage(key, number, number === 0 ? FIRST_START : separatorOf(last, sortKeyOf(first)));
      last = sortKeyOf(values.at(-1) ?? '');
      [values, number] = [[], number + 1];
    };
    let count = 0;
    for await (const value of madeOutputs(key, rows, lists)) {
      if (values.length === page && isPaged) endPage();
      values.push(value);
      count += 1;
    }
    if (count !== made)
      throw new ChangedArchiveError(`the number of outputs of ${key} in the archive differs from the count in their documents`);
    if (isPaged) endPage();
    else if (head.length + values.length + removed.length > 0) to.add({ key, values: [...head, ...values, ...removed] });
    await this.#writeRemovals(key, rows, to);
  }

  async #writeRemovals(key: string, rows: ListRows, to: LevelWriter): Promise<void> {
    let [place, values]: [string, string[]] = ['', []];
    for await (const { first, page, text } of rows.of(key, PLACED)) {
      const next = removalKey(key, first, page);
      if (next !== place && place !== '') to.add({ key: place, values });
      if (next !== place) [place, values] = [next, []];
      values.push(text);
    }
    if (place !== '') to.add({ key: place, values });
  }

  /**
   * Finds the level and page of removed outputs for addresses whose removed outputs are grouped by page. These
   * addresses have a list with pages in a lower level, or the level removes more of their outputs than a page has.
   * Outputs that were never made, which only wrong data has, get no level and page.
   */
  async #placeRemoved(range: LevelRange): Promise<void> {
    const store = this.store;
    const lower = this.form.ranges.filter(({ last }) => last < range.first);
    await store.run(`CREATE OR REPLACE TEMP TABLE placed_keys AS
        SELECT DISTINCT key FROM level_removed SEMI JOIN list_pages USING (key)
        UNION SELECT key FROM level_removed GROUP BY key HAVING count(*) > ${this.form.limits.listPage};
      UPDATE level_removed SET first = NULL, page = NULL WHERE key NOT IN (FROM placed_keys)`);
    const sought = 'SELECT "output" FROM level_removed SEMI JOIN placed_keys USING (key) WHERE first IS NULL';
    const count = await store.number(`SELECT count(*) AS number FROM (${sought})`);
    if (count === 0 || lower.length === 0) return;
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
          JOIN removed_heights USING ("output") JOIN (VALUES ${ranges}) AS l(first, last) ON height BETWEEN l.first AND l.last
          WHERE level_removed.first IS NULL) AS r
        ASOF LEFT JOIN list_pages AS p ON p.key = r.key AND p.first = r.first AND r.sort >= p.start;
      CREATE OR REPLACE TEMP TABLE level_removed AS
        SELECT r.key, r."output", coalesce(r.first, f.first) AS first, coalesce(r.page, f.page) AS page
        FROM level_removed AS r LEFT JOIN found_pages AS f ON f.key = r.key AND f."output" = r."output"`);
  }

  /** Adds outputs of lower levels of the last build to `removed_heights`. `sql` selects the outputs, ascending. */
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

/**
 * Writes the outputs that a level of the last build removes, as lines with `key`, `output`, `first` and `page`. The
 * lines of outputs in an address's own document have neither `first` nor `page`.
 */
export function writeRemoved(level: DocumentLevel, old: StoredArchive, page: number, lines: LineFile): void {
  for (const document of documentsOf(old, level)) {
    const [key = '', part] = document.key.split(' ');
    if (part === undefined) {
      for (const output of parsedAddress(document, page).removed) lines.add(JSON.stringify({ key, output }));
    } else if (isRemoval(document.key)) {
      const [first, number] = part.slice(1).split('.').map(Number);
      for (const output of document.values) lines.add(JSON.stringify({ key, output, first, page: number }));
    }
  }
}

/** Kinds of rows of a list. The rows of a list are sorted by these numbers. */
const [COUNT, GROUP, REMOVED, MADE, CANCELLED, PLACED] = [0, 1, 2, 3, 4, 5];

interface ListRow {
  readonly key: string;
  readonly kind: number;
  readonly first: number;
  readonly page: number;
  readonly text: string;
}

/** Rows of a level, sorted by key, then by kind, and then by their position in the list. */
class ListRows {
  readonly #rows: AsyncGenerator<ListRow>;
  current: ListRow | undefined;

  constructor(limits: WorkLimits, store: Store) {
    this.#rows = rowsOf(limits, store);
  }

  async next(): Promise<void> {
    const { value, done } = await this.#rows.next();
    this.current = done === true ? undefined : value;
  }

  /** Yields rows from the current row on, as long as they have this key and kind. */
  async *of(key: string, kind: number | undefined): AsyncGenerator<ListRow> {
    for (let row = this.current; row?.key === key && row.kind === kind; row = this.current) {
      yield row;
      await this.next();
    }
  }

  async close(): Promise<void> {
    await this.#rows.return(undefined);
  }
}

async function* rowsOf(limits: WorkLimits, store: Store): AsyncGenerator<ListRow> {
  const rows = `SELECT key, kind, first, page, text, sort, rune, units, number, id FROM (
      SELECT key, ${COUNT} AS kind, sum(count)::INTEGER AS first, 0 AS page, '' AS sort, '' AS text, -1 AS number, '' AS id, NULL AS rune, NULL AS units FROM (
        FROM level_counts UNION ALL SELECT key, -count(*) FROM level_cancelled GROUP BY key) GROUP BY key
      UNION ALL SELECT key, ${GROUP}, first::INTEGER, page::INTEGER, '', count(*)::VARCHAR, -1, '', NULL, NULL FROM level_removed WHERE first IS NOT NULL GROUP BY ALL
      UNION ALL SELECT key, ${REMOVED}, 0, 0, "output", "output", -1, '', NULL, NULL FROM level_removed WHERE first IS NULL
      UNION ALL SELECT key, ${MADE}, 0, 0, sort, place, number, id, rune, units FROM level_made
      UNION ALL SELECT key, ${CANCELLED}, 0, 0, sort, "output", -1, '', NULL, NULL FROM level_cancelled
      UNION ALL SELECT key, ${PLACED}, first::INTEGER, page::INTEGER, "output", "output", -1, '', NULL, NULL FROM level_removed WHERE first IS NOT NULL)`;
  // An output has a row for each of its runes.
  const areOfOutput = (before: Row, row: Row) => row[1] === MADE && [0, 1, 5].every((column) => before[column] === row[column]);
  // The operator || copies the texts of a chunk to consecutive memory, from which readRows() decodes them faster.
  const select = `key || '', kind, first, page, text || '', sort || '', rune || '', units`;
  const unsorted = { rows, key: 'key', within: 'kind, first, page, sort, number, id', select };
  for await (const group of groupRows(unsorted, areOfOutput, limits, store)) {
    const [key, kind, first, page, text, sort] = group[0] ?? [];
    const runes = runesOf(group.map((row) => [row[6], row[7]]));
    const output = kind === MADE ? `["${outpointOfSortKey(String(sort))}",${[text, ...runes].join()}]` : String(text);
    yield { key: String(key), kind: Number(kind), first: Number(first), page: Number(page), text: output };
  }
}

/**
 * Joins the rows of an output into JSON texts of its runes. A row usually has the JSON of a rune up to its balance, and
 * the balance in smallest units. A row with NULL instead of units has complete JSON of one or more runes. Skips rows
 * without a rune.
 */
export function runesOf(rows: readonly Row[]): string[] {
  const runes: { readonly rune: string; units: bigint | undefined }[] = [];
  for (const [cell, amount] of rows) {
    if (cell === null) continue;
    const rune = String(cell);
    const units = amount === null ? undefined : BigInt(String(amount));
    const last = runes.at(-1);
    if (last?.rune === rune && last.units !== undefined && units !== undefined) last.units += units;
    else runes.push({ rune, units });
  }
  return runes.map(({ rune, units }) => (units === undefined ? rune : `${rune},"${units}"]`));
}

/** Yields the unspent outputs of a list: first from new blocks, then from reused levels, the newest level first. */
async function* madeOutputs(key: string, rows: ListRows, lists: readonly OldLists[]): AsyncGenerator<string> {
  for await (const { text } of rows.of(key, MADE)) yield text;
  for (const list of lists) {
    for (const value of list.values()) {
      const { current } = rows;
      if (current?.key === key && current.kind === CANCELLED && current.text === outpointOf(value)) await rows.next();
      else yield value;
    }
  }
  if (rows.current?.key === key && rows.current.kind === CANCELLED)
    throw new ChangedArchiveError(`the archive lacks the output ${rows.current.text} of ${key}`);
}

/** Reads the lists of a level of the last build one after another. */
class OldLists {
  readonly #documents: Cursor<StoredDocument>;
  #document: AddressDocument | undefined;
  /** Key of the current list; undefined after the last. */
  key: string | undefined;

  constructor(
    documents: Iterator<StoredDocument>,
    private readonly page: number,
  ) {
    this.#documents = new Cursor(documents);
    this.#documents.next();
    this.#open();
  }

  get made(): number {
    return this.#document?.made ?? 0;
  }

  /** Opens the list that begins with the current document. */
  #open(): void {
    const { current } = this.#documents;
    this.key = current?.key;
    this.#document = current && parsedAddress(current, this.page);
    this.#documents.next();
  }

  /** Yields the outputs of the current list, and moves to the next list. */
  *values(): Generator<string> {
    yield* this.#document?.outputs ?? [];
    const start = `${this.key} `;
    for (let next = this.#documents.current; next?.key.startsWith(start) === true; next = this.#documents.current) {
      if (!isRemoval(next.key)) yield* next.values;
      this.#documents.next();
    }
    this.#open();
  }
}

/**
 * True for the key of a document of removed outpoints. Escaped addresses in keys have no space, so no other key
 * matches.
 */
const isRemoval = (key: string): boolean => key.includes(' ~');

function parsedAddress({ key, values }: StoredDocument, page: number): AddressDocument {
  try {
    return parseAddress(values, page);
  } catch {
    throw new ChangedArchiveError(`the archive's document of the address ${key} is damaged`);
  }
}
