/**
 * Writes the lists of unspent outputs by address (lists/unspentOutputs.ts), level by level, the lowest first. Streams
 * each list, so that at most one page of a list is in memory.
 *
 * A level may join levels of the last build. Then each list begins with the outputs of new blocks. The outputs of the
 * reused levels follow, the newest level first, without the outputs that the joined level spends. Each part is already
 * sorted by descending height, so the joined list needs no sorting.
 */
import { join } from 'node:path';
import { type LineFile, writeLines } from '../disk/lineFile.ts';
import { readLines } from '../duckdb/readFilesSql.ts';
import type { Store } from '../duckdb/store.ts';
import { Cursor } from '../engine/archive/cursor.ts';
import { documentsOf, findRanges, onlyKey, type StoredDocument } from '../engine/archive/documentWriter.ts';
import { type LevelForm, type LevelWriter, linesIn, writeLevel } from '../engine/archive/makeLevels.ts';
import { ChangedArchiveError, type StoredArchive } from '../engine/archive/storedArchive.ts';
import { pageKey, separatorOf } from '../format/documentKeys.ts';
import type { DocumentLevel, LevelRange } from '../format/levels.ts';
import { countCrossing } from '../limits.ts';
import { bytesOf, CANCELLED, COUNT, GROUP, LESS, ListRows, MADE, PLACED, REMOVED, textOf } from './outputRows.sql.ts';
import {
  ABOVE_HEIGHTS,
  type AddressDocument,
  outpointOf,
  parseAddress,
  removalKey,
  renderAddressHead,
  SPENT,
  sortKeyOf,
} from './unspentOutputs.ts';

export interface AddressForm extends LevelForm<'addresses' | 'starts'> {
  /** Levels of outputs by outpoint that this build reuses from the last build: kept, or joined to longer levels. */
  readonly known: readonly DocumentLevel[];
  /** SQL that selects `output` and `block_height` of all outputs that the last build does not have. */
  readonly heights: string;
  readonly ranges: readonly LevelRange[];
}

/**
 * Function that receives a page of a list. `page` is the index of the page, and `start` is a lower bound of the sort
 * keys (`sortKeySql`) of its outputs.
 */
type AddPage = (key: string, page: number, start: string) => void;

/** SQL that selects no rows, for a level without cancelled outputs (LevelRows). */
const NONE = `SELECT NULL::VARCHAR AS key, NULL::VARCHAR AS "output", NULL::VARCHAR AS sort LIMIT 0`;

/** Lower bound of the sort keys of a list's first page. It sorts before every sort key. */
const FIRST_START = '0';

/** Returns the SQL expression of an output's sort key (lists/unspentOutputs.ts). `height` and `output` are SQL. */
export const sortKeySql = (height: string, output: string): string =>
  `lpad((${ABOVE_HEIGHTS} - ${height})::VARCHAR, 8, '0') || split_part(${output}, ':', 1) || lpad(split_part(${output}, ':', 2), 10, '0')`;

/** SQL that selects the outputs that a level makes and spends. `key` is the key of the address's list. */
export interface LevelRows {
  /**
   * Outputs that new blocks make and that the level does not spend. An output has one row with all its runes, or a row
   * for each rune. Columns: `key`, `sort` (the sort key), `text` (a value of the list), and `number` and `id` of the
   * rune.
   */
  readonly made: string;
  /**
   * Outputs of lower levels that the level spends. Columns: `key`, `output`, `first` (lowest height of the lower level)
   * and `page`. Only rows from documents whose keys contain both `first` and `page` (`removalKey`) have these two
   * values. In other rows they are NULL.
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

  /**
   * Writes a level that joins the `reused` levels. Returns the level of each kind of document, or undefined for a kind
   * without documents. Throws a ChangedArchiveError when documents of the last build contradict each other.
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
    // If a list has more than a page of outputs, its document begins with the number of outputs. So the outputs of such
    // lists are counted before they are written. An output may have several rows.
    await this.store.run(`CREATE OR REPLACE TEMP TABLE level_rows AS SELECT key, count(*) AS rows FROM level_made GROUP BY key;
      CREATE OR REPLACE TEMP TABLE level_counts AS SELECT key, count(*) AS count FROM (
        SELECT DISTINCT key, sort FROM level_made SEMI JOIN (FROM level_rows WHERE rows > ${limits.listPage}) USING (key)) GROUP BY key`);
    const addresses = writer('addresses', range);
    const rows = new ListRows(LEVEL_ROWS, limits, this.store);
    const lists = old === undefined ? [] : reused.map((level) => new OldLists(documentsOf(old, level), limits.listPage)).reverse();
    let pages = 0;
    try {
      await rows.next();
      pages = await this.#listPages(range, async (addPage) => {
        for (;;) {
          let { key } = rows;
          for (const list of lists) if (list.key !== undefined && (key === undefined || list.key < key)) key = list.key;
          if (key === undefined) break;
          const same = lists.filter((list) => list.key === key);
          await this.#writeList(key, rows, same, addresses, addPage);
        }
      });
    } finally {
      await rows.close();
    }
    const starts = {
      rows: `SELECT key || ' ' || lpad((page // ${limits.listPage})::VARCHAR, 8, '0') AS key, start, page FROM list_pages WHERE first = ${range.first}`,
      most: `${pages}`,
      key: 'key',
      within: 'page',
      select: `key || chr(9) || start || chr(10)`,
    };
    return {
      addresses: await addresses.finish(range),
      starts: pages === 0 ? undefined : await writeLevel(writer('starts', range), range, linesIn(starts, limits, this.store)),
    };
  }

  async #writeList(key: string, rows: ListRows, lists: readonly OldLists[], to: LevelWriter, addPage: AddPage): Promise<void> {
    const { listPage: page } = this.form.limits;
    let made = 0;
    for (const list of lists) made += list.made;
    let isCounted = false;
    for (; rows.isAt(key, COUNT); await rows.next()) [made, isCounted] = [made + rows.first, true];
    for (; rows.isAt(key, LESS); await rows.next()) made -= rows.first;
    const removals: [number, ...number[]][] = [];
    for (; rows.isAt(key, GROUP); await rows.next()) {
      if (removals.at(-1)?.[0] !== rows.first) removals.push([rows.first]);
      removals.at(-1)?.push(rows.page, Number(textOf(rows.value)));
    }
    const removed: Uint8Array[] = [];
    for (; rows.isAt(key, REMOVED); await rows.next()) removed.push(rows.value);
    const added: Uint8Array[] = [];
    if (!isCounted) while (rows.isAt(key, MADE)) added.push(await rows.takeOutput());
    made += added.length;
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
    let count = 0;
    const add = (value: Uint8Array) => {
      if (values.length === page && isPaged) endPage();
      values.push(value);
      count += 1;
    };
    for (const value of added) add(value);
    while (rows.isAt(key, MADE)) add(await rows.takeOutput());
    for (const list of lists) {
      for (const value of list.values()) {
        if (rows.isAt(key, CANCELLED) && textOf(rows.value) === outpointOf(value)) await rows.next();
        else add(bytesOf(value));
      }
    }
    if (rows.isAt(key, CANCELLED)) throw new ChangedArchiveError(`the archive lacks the output ${textOf(rows.value)} of ${key}`);
    if (count !== made) throw new ChangedArchiveError(`the archive has ${count} outputs of ${key}, but its documents count ${made}`);
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
        UNION SELECT key FROM level_removed GROUP BY key HAVING count(*) > ${this.form.limits.listPage};
      UPDATE level_removed SET first = NULL, page = NULL WHERE key NOT IN (FROM placed_keys)`);
    const sought = 'SELECT "output" FROM level_removed SEMI JOIN placed_keys USING (key) WHERE first IS NULL';
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
          JOIN removed_heights USING ("output") JOIN (VALUES ${ranges}) AS l(first, last) ON height BETWEEN l.first AND l.last
          WHERE level_removed.first IS NULL) AS r
        ASOF LEFT JOIN list_pages AS p ON p.key = r.key AND p.first = r.first AND r.sort >= p.start;
      CREATE OR REPLACE TEMP TABLE level_removed AS
        SELECT r.key, r."output", coalesce(r.first, f.first) AS first, coalesce(r.page, f.page) AS page
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

/**
 * Writes the outputs that a level of the last build removes from lower levels, as lines with `key`, `output`, `first`
 * and `page`. Lines of outputs from an address's own document have neither `first` nor `page`.
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

/** All rows of a level, for ListRows. */
const LEVEL_ROWS = {
  rows: `SELECT key, ${COUNT} AS kind, count AS first, 0 AS page, '' AS sort, '' AS text, -1 AS number, '' AS id FROM level_counts
    UNION ALL SELECT key, ${LESS}, count(*), 0, '', '', -1, '' FROM level_cancelled GROUP BY key
    UNION ALL SELECT key, ${GROUP}, first, page, '', count(*)::VARCHAR, -1, '' FROM level_removed WHERE first IS NOT NULL GROUP BY ALL
    UNION ALL SELECT key, ${REMOVED}, 0, 0, "output", '["' || "output" || '"]', -1, '' FROM level_removed WHERE first IS NULL
    UNION ALL SELECT key, ${MADE}, 0, 0, sort, text, number, id FROM level_made
    UNION ALL SELECT key, ${CANCELLED}, 0, 0, sort, "output", -1, '' FROM level_cancelled
    UNION ALL SELECT key, ${PLACED}, first, page, "output", "output", -1, '' FROM level_removed WHERE first IS NOT NULL`,
  // An upper bound, because counting the rows exactly would run the join of the made outputs once more.
  most: `3 * (SELECT count(*) FROM level_removed) + 2 * (SELECT count(*) FROM level_cancelled) + (SELECT coalesce(sum(1 + rows), 0) FROM level_rows)`,
};

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
