/**
 * Writes the balances of addresses and the holders of runes (balances.ts). Both are made from tables of pairs, which have a row for each
 * address and rune with a balance in a level.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { MOST_RUNES_NAMED } from '../contract/schemas.ts';
import { writeLines } from '../disk/lineFile.ts';
import { isWithin } from '../duckdb/blockRanges.ts';
import { GrowingTable } from '../duckdb/growingTable.ts';
import { readLines } from '../duckdb/readFilesSql.ts';
import { rowParts } from '../duckdb/sortedRows.ts';
import { int, type Store, text } from '../duckdb/store.ts';
import { columns } from '../duckdb/table.ts';
import { type BlockInput, type LevelPlan, lastLevel } from '../engine/archive/listedRecords.ts';
import { documentStart, type LevelForm, type LevelWriter, padded, TEXTS, valueText, writeTexts } from '../engine/archive/makeLevels.ts';
import type { StoredDocument } from '../engine/archive/storedArchive.ts';
import type { EtchingTable } from '../engine/state/knownEtchings.ts';
import { ArchiveError } from '../format/archiveError.ts';
import { pageKey } from '../format/documents.ts';
import { type DocumentLevel, type LevelRange, lastRanked } from '../format/levels.ts';
import type { BalanceTables, HolderLevel, Unbalanced } from '../format/listTables.ts';
import { groupBy } from '../groupBy.ts';
import { countCrossing } from '../limits.ts';
import { changesIn, digitsOf, joinedParts, partsOf, summedChanges } from './balanceChanges.sql.ts';
import { pairKey, parseBalance, parseHoldersHead } from './balances.ts';
import { runeKey } from './etchings.ts';

interface BalanceForm extends LevelForm<`balances.${'addresses' | 'holders'}`> {
  /** Height of the highest block. */
  readonly tip: number;
  /** The blocks of all levels that are not kept. */
  readonly read: BlockInput;
  readonly etchings: EtchingTable;
}

/** Writes the levels (format/levels.ts) that changed since the last build. Returns all levels. */
export async function writeBalances(plans: readonly LevelPlan[], form: BalanceForm, store: Store): Promise<BalanceTables> {
  const before = form.old?.root.lists?.balances;
  const ranked = lastRanked(form.tip, form.limits.listLevels);
  const addresses: DocumentLevel[] = [];
  const holders: HolderLevel[] = [];
  const rows = await BalanceRows.begin(form, store);
  for (const plan of plans) {
    const known = { addresses: lastLevel(plan, before?.addresses), holders: lastLevel(plan, before?.holders) };
    const level = plan.isKept ? rows.keep(known) : await rows.write(plan, plan.last <= ranked);
    if (level.addresses !== undefined) addresses.push(level.addresses);
    if (level.holders !== undefined) holders.push(level.holders);
  }
  await rows.end();
  const unbalanced = await findUnbalanced(holders, form, store);
  return { addresses, holders, ...(unbalanced === undefined ? {} : { unbalanced }) };
}

/** Finds runes that have balances below zero after the highest block. */
async function findUnbalanced(levels: readonly HolderLevel[], { etchings }: BalanceForm, store: Store): Promise<Unbalanced | undefined> {
  const sums = new Map<number, number>();
  for (const { belowZero = [] } of levels) for (const [ordinal, change] of belowZero) sums.set(ordinal, (sums.get(ordinal) ?? 0) + change);
  const all = [...sums].filter(([, balances]) => balances > 0).map(([ordinal]) => ordinal);
  if (all.length === 0) return undefined;
  const named = all.sort((a, b) => a - b).slice(0, MOST_RUNES_NAMED);
  const rows = await store.rows(`SELECT id FROM ${etchings} WHERE ordinal IN (${named.join()}) ORDER BY ordinal`, { id: text });
  return { runes: rows.map(({ id }) => id), more: all.length - rows.length };
}

/** The documents of balances and of holders in a level. Undefined if the level has none. */
interface KnownLevel {
  readonly addresses: DocumentLevel | undefined;
  readonly holders: HolderLevel | undefined;
}

/** Returns the SQL expression of a JSON list without its closing bracket, so that more items can follow. */
const listStart = (...columns: readonly string[]): string =>
  `left(to_json([${columns.map((column) => `to_json(${column})`).join(', ')}])::VARCHAR, -1)`;
/** SQL expressions of the beginning of an entry of an address's list, and of the first value of a rune's document. */
const BALANCE = listStart('ordinal', 'id', 'number', 'name', 'spaced_name', 'divisibility');
const HEAD = listStart('id', 'number', 'name', 'divisibility');

/** SQL expression of the end of an entry: the balance after the level and, if it is not 0, the balance before the level. */
const UNITS = `',"' || units || CASE WHEN before = '0' THEN '"]' ELSE '","' || before || '"]' END`;

/** Columns of tables of pairs: the index of the level, the key of the address, the rune, and the balance after and before the level. */
const PAIRS = columns('level INTEGER, key VARCHAR, ordinal BIGINT, units VARCHAR, before VARCHAR');

/** SQL conditions for units above and below zero. Units are texts. Only positive numbers sort after '0'. */
const isAbove = (units: string): string => `(${units} > '0')`;
const isBelow = (units: string): string => `starts_with(${units}, '-')`;

/**
 * Returns SQL that selects the newest row of each pair in `rows`. Joins instead of aggregating, because DuckDB can join more rows than fit
 * into memory, but cannot aggregate so many texts.
 */
const newest = (rows: string): string =>
  // Rows of level 0, the lowest, hide no rows of older levels. To omit them on the right side saves time, because it has the most rows.
  `FROM (${rows}) AS r ANTI JOIN (FROM (${rows}) WHERE level > 0) AS o ON o.key = r.key AND o.ordinal = r.ordinal AND o.level > r.level`;

/** Temporary tables of BalanceRows. */
const TABLES = ['balance_runes', 'level_runes', 'part_changes', 'changed_pairs', 'part_pairs', 'pairs_below', 'list_pairs', 'whole_lists'];

/**
 * Keeps or writes levels, the lowest first. After a new level, all higher levels must be new, too. Both kinds of documents are written in
 * parts, by ranges of addresses or of runes, so that no statement sorts, groups or joins more than a part.
 */
class BalanceRows {
  /** Kept levels by index; undefined for written levels. */
  readonly #levels: (KnownLevel | undefined)[] = [];
  /** The pairs of each written level, the lowest first. */
  readonly #pairs: GrowingTable<typeof PAIRS>[] = [];

  private constructor(
    private readonly form: BalanceForm,
    private readonly store: Store,
  ) {}

  static async begin(form: BalanceForm, store: Store): Promise<BalanceRows> {
    await store.run(`
      CREATE OR REPLACE TEMP TABLE balance_runes (ordinal BIGINT, balance VARCHAR, head VARCHAR);
      CREATE OR REPLACE TEMP TABLE level_runes (level INTEGER, ordinal BIGINT, entries BIGINT, change BIGINT, below_zero BIGINT, is_marked BOOLEAN)`);
    return new BalanceRows(form, store);
  }

  /** Drops the tables, to free their memory. */
  async end(): Promise<void> {
    for (const pairs of this.#pairs) await pairs.drop();
    await this.store.run(TABLES.map((table) => `DROP TABLE IF EXISTS ${table}`).join('; '));
  }

  keep(level: KnownLevel): KnownLevel {
    this.#levels.push(level);
    return level;
  }

  get #level(): number {
    return this.#levels.length - 1;
  }

  /** Writes a level. Without `isRanked`, it may have marks instead of complete lists ("Holders" in balances.ts). */
  async write(range: LevelRange, isRanked: boolean): Promise<KnownLevel> {
    const { read, etchings, limits, state } = this.form;
    const { kept: records, records: bound } = read;
    const { listPage: page } = limits;
    this.#levels.push(undefined);
    const level = this.#level;
    const below = this.#pairs.map((pairs) => `FROM ${pairs}`);
    // The balances before a level of the last build that began at the same block hold if no level below changed.
    const replaced = below.length > 0 ? undefined : lastLevel(range, this.form.old?.root.lists?.balances?.addresses);
    const pairs = await GrowingTable.create('level_pairs', PAIRS, this.store);
    this.#pairs.push(pairs);
    const changes = {
      rows: `SELECT url_encode(address) AS key, ordinal, units, sign FROM (${changesIn(range.first, range.last, { records, runes: state.runes })}) JOIN ${etchings} USING (id)`,
      most: `(SELECT count(*) FROM ${records} WHERE ${isWithin(range)})`,
      keys: `SELECT url_encode(address) AS key FROM ${records} WHERE ${isWithin(range)} AND address IS NOT NULL`,
      ...{ bound, key: 'key', rowBytes: CHANGE_BYTES },
    };
    const addresses = this.form.open('balances.addresses', range);
    for await (const part of rowParts(changes, limits, this.store)) {
      const long = await this.#changePairs(part, below, replaced);
      await pairs.add('FROM changed_pairs');
      await this.#writeDocuments(addresses, 'key', long, 'FROM changed_pairs', below);
    }
    await this.store.run(`INSERT INTO level_runes SELECT level, ordinal, count(*), sum(${isAbove('units')}::INT - ${isAbove('before')}::INT),
      sum(${isBelow('units')}::INT - ${isBelow('before')}::INT), false FROM ${pairs} WHERE units <> before GROUP BY level, ordinal`);
    if (!isRanked) await this.#markRunes();
    const long = await this.store.count(`CREATE OR REPLACE TEMP TABLE long_runes AS SELECT ordinal FROM level_runes
      WHERE level = ${level} AND entries > ${page} AND NOT is_marked`);
    const holders = this.form.open('balances.holders', range);
    await this.#writeDocuments(holders, 'ordinal', long, `FROM ${pairs}`, below);
    const written = { addresses: await addresses.finish(range), holders: await holders.finish(range) };
    const rows = await this.store.rows(
      `SELECT ordinal, below_zero FROM level_runes WHERE level = ${level} AND below_zero <> 0 ORDER BY ordinal`,
      { ordinal: int, below_zero: int },
    );
    if (written.holders === undefined || rows.length === 0) return written;
    return { ...written, holders: { ...written.holders, belowZero: rows.map((row) => [row.ordinal, row.below_zero] as const) } };
  }

  /**
   * Writes the documents of addresses or runes from the pairs that the level changes, with the complete lists of those in `long_addresses`
   * or `long_runes`, which has `lists` rows. Such a list may be much longer than its changes, so the pairs of the levels below are divided,
   * too. `lower` selects those of each written level.
   */
  async #writeDocuments(
    to: LevelWriter,
    subject: 'key' | 'ordinal',
    lists: number,
    changed: string,
    lower: readonly string[],
  ): Promise<void> {
    const { etchings, limits, read, state } = this.form;
    const level = this.#level;
    const [long, kind, key] =
      subject === 'key' ? (['long_addresses', 'addresses', 'key'] as const) : (['long_runes', 'holders', padded('ordinal')] as const);
    const hasLong = lists > 0;
    if (hasLong) countCrossing('listPage');
    const below = await this.#entriesOf(this.#listsBelow(kind, `SELECT ${key} FROM ${long} ORDER BY ${subject}`));
    const isLong = `SEMI JOIN ${long} USING (${subject})`;
    const queries = [changed, ...(hasLong ? [...lower.map((pairs) => `${pairs} ${isLong}`), below.rows] : [])];
    const rows = queries.map((query) => `SELECT ${Object.keys(PAIRS).join()} FROM (${query})`).join(' UNION ALL ');
    // A record changes one pair.
    const bound = hasLong ? undefined : read.records;
    for await (const part of rowParts({ rows, bound, key: subject, rowBytes: PAIR_BYTES }, limits, this.store)) {
      // `balance_runes` has runes as JSON: those that the documents of parts need, few after a new block.
      await this.store.run(`CREATE OR REPLACE TEMP TABLE part_pairs AS FROM (${part}) WHERE level = ${level};
        CREATE OR REPLACE TEMP TABLE list_pairs AS FROM (${part}) ${isLong};
        INSERT INTO balance_runes SELECT ordinal, ${BALANCE}, ${HEAD}
          FROM ${etchings} JOIN (SELECT id, number, name, spaced_name, divisibility FROM ${state.runes}) USING (id)
          WHERE ordinal IN (SELECT ordinal FROM part_pairs UNION SELECT ordinal FROM list_pairs) AND ordinal NOT IN (SELECT ordinal FROM balance_runes)`);
      await this.#makeLists(subject);
      const texts = subject === 'key' ? this.#addressRows : this.#holderRows;
      await writeTexts(to, this.store.stream(`SELECT ${TEXTS} FROM (FROM (${texts}) ORDER BY rank, document, place, also)`));
    }
    rmSync(below.file);
  }

  /**
   * Makes `changed_pairs` from changes of some addresses, and `long_addresses`, of which it returns the number of rows. `lower` selects the
   * pairs of each written level below. `replaced` is a level of the last build whose entries have the balances before this level.
   */
  async #changePairs(changes: string, lower: readonly string[], replaced: DocumentLevel | undefined): Promise<number> {
    const level = this.#level;
    await this.store.run(`CREATE OR REPLACE TEMP TABLE part_changes AS ${summedChanges(changes, 'key, ordinal')}`);
    // The files of a level that is written again are worth nothing else, so their damage must not cost a full build.
    const below = await this.#entriesOf(this.#changedBelow(replaced)).catch((error: unknown) => {
      if (!(error instanceof ArchiveError)) throw error;
      return this.#entriesOf(this.#changedBelow(undefined));
    });
    await this.store.run(`CREATE OR REPLACE TEMP TABLE pairs_below AS ${below.rows}`);
    rmSync(below.file);
    const known = `FROM (${[...lower, 'FROM pairs_below'].join(' UNION ALL ')}) SEMI JOIN part_changes USING (key, ordinal)`;
    return this.store.count(`CREATE OR REPLACE TEMP TABLE changed_pairs AS
      SELECT ${level} AS level, key, ordinal, ${digitsOf('upper', 'lower')} AS units, before FROM (
        SELECT key, ordinal, coalesce(b.units, '0') AS before,
          ${joinedParts('(c.upper + coalesce(b.upper, 0))', '(c.lower + coalesce(b.lower, 0))')}
        FROM part_changes AS c LEFT JOIN (
          SELECT key, ordinal, units, ${partsOf('units')} FROM (${newest(known)})) AS b USING (key, ordinal));
      CREATE OR REPLACE TEMP TABLE long_addresses AS
        SELECT key FROM changed_pairs GROUP BY key HAVING count(*) > ${this.form.limits.listPage}`);
  }

  /**
   * Yields the balances that the pairs in `part_changes` have before the level: from `replaced`, or else from the newest of the levels
   * below that has the pair. A new block changes few pairs that `replaced` does not have.
   */
  async *#changedBelow(replaced: DocumentLevel | undefined): AsyncGenerator<Loaded> {
    const below = this.#levelsBelow('addresses');
    if (below.length === 0) return;
    const levels = [...(replaced === undefined ? [] : [{ level: this.#level, documents: replaced }]), ...below];
    for await (const chunk of this.store.stream('SELECT key, ordinal FROM part_changes ORDER BY key, ordinal')) {
      // The runes whose balances are not found yet, by address.
      const missing = new Map<string, Set<number>>();
      for (const [key, pairs] of groupBy(chunk.getRows(), ([key]) => String(key)))
        missing.set(key, new Set(pairs.map(([, ordinal]) => Number(ordinal))));
      for (const { level, documents } of levels) {
        const take = (subject: string, entries: readonly string[]): Loaded => {
          // An address can have many balances that the records do not change.
          const found = entries.filter((entry) => missing.get(subject)?.delete(Number.parseInt(entry.slice(1), 10)));
          return { level, subject, entries: level < this.#level ? found : found.map(entryBefore) };
        };
        const pairs: string[] = [];
        for await (const { key, values } of this.#find(documents, [...missing.keys()])) {
          const { total, entries } = listIn('addresses', values);
          if (total === undefined) yield take(key, entries);
          // Beside a complete list, each balance that changed in the level has a document of its own.
          else for (const ordinal of missing.get(key) ?? []) pairs.push(pairKey(key, ordinal));
        }
        for await (const { key, values } of this.#find(documents, pairs)) yield take(key.slice(0, key.indexOf(' ')), values);
        for (const [key, ordinals] of missing) if (ordinals.size === 0) missing.delete(key);
      }
    }
  }

  /**
   * Yields the balances of addresses or runes with long lists, whose keys `keys` selects: all entries of the newest complete list below,
   * and of the levels above that list.
   */
  async *#listsBelow(kind: keyof KnownLevel, keys: string): AsyncGenerator<Loaded> {
    const done = new Set<string>();
    for (const { level, documents } of this.#levelsBelow(kind))
      for await (const chunk of this.store.stream(keys)) {
        const sought = chunk.getRows().map(([key]) => String(key));
        const missing = sought.filter((key) => !done.has(key));
        for await (const { key, values } of this.#find(documents, missing)) {
          const subject = kind === 'holders' ? Number(key) : key;
          const { total, entries } = listIn(kind, values);
          if (total === undefined) yield { level, subject, entries };
          else {
            done.add(key);
            const pages = Array.from({ length: Math.ceil(total / this.form.limits.listPage) }, (_, page) => pageKey(key, page));
            for await (const page of this.#find(documents, pages)) yield { level, subject, entries: page.values };
          }
        }
      }
  }

  /** Returns the kept levels that have documents, the newest first. */
  #levelsBelow(kind: keyof KnownLevel): { readonly level: number; readonly documents: DocumentLevel }[] {
    return this.#levels.flatMap((known, level) => (known?.[kind] === undefined ? [] : [{ level, documents: known[kind] }])).reverse();
  }

  /** Finds documents in a level of the last build by their keys, which must ascend. */
  #find(level: DocumentLevel, keys: readonly string[]): AsyncIterable<StoredDocument> | readonly StoredDocument[] {
    return this.form.old?.find(level, keys) ?? [];
  }

  /** Writes entries to a file, which the caller removes. Returns SQL that selects them as pairs. */
  async #entriesOf(documents: AsyncIterable<Loaded>): Promise<{ file: string; rows: string }> {
    const lines = await writeLines(join(this.form.scratch, 'entries.ndjson'), async (to) => {
      for await (const { level, subject, entries } of documents)
        if (entries.length > 0)
          to.add(
            `{"level":${level},"${typeof subject === 'number' ? 'ordinal' : 'key'}":${JSON.stringify(subject)},"entries":[${entries.join()}]}`,
          );
    });
    // An entry of an address begins with a rune, and an entry of a rune with an address.
    const rows = `SELECT level, coalesce("key", url_encode(entry[1])) AS key, coalesce(ordinal, entry[1]::BIGINT) AS ordinal,
        CASE WHEN ordinal IS NULL THEN entry[7] ELSE entry[2] END AS units,
        coalesce(CASE WHEN ordinal IS NULL THEN entry[8] ELSE entry[3] END, '0') AS before FROM (
      SELECT level, "key", ordinal, unnest(entries) AS entry FROM ${readLines(lines, `level: 'INTEGER', "key": 'VARCHAR', ordinal: 'BIGINT', entries: 'VARCHAR[][]'`)})`;
    return { file: lines.file, rows };
  }

  /**
   * Marks each rune that gets no complete list in this level, although it has more than a page of entries. Its list was already longer than
   * a page in the levels below, or a level below marks the rune, too.
   */
  async #markRunes(): Promise<void> {
    const { listPage: page } = this.form.limits;
    const level = this.#level;
    const rows = await this.store.rows(
      `SELECT a.ordinal, coalesce(sum(b.change), 0)::BIGINT AS total, count(*) FILTER (b.is_marked) AS marks
       FROM level_runes AS a LEFT JOIN level_runes AS b ON b.ordinal = a.ordinal AND b.level < a.level
       WHERE a.level = ${level} AND a.entries > ${page} GROUP BY a.ordinal ORDER BY a.ordinal`,
      { ordinal: int, total: int, marks: int },
    );
    const below = new Map(rows.map(({ ordinal, total, marks }) => [runeKey(ordinal), { ordinal, total, isMarked: marks > 0 }]));
    for (const { documents } of this.#levelsBelow('holders')) {
      for await (const { key, values } of this.#find(documents, [...below.keys()])) {
        const { change, total } = parseHoldersHead(values[0] ?? '');
        const rune = below.get(key);
        if (rune === undefined) continue;
        rune.total += change;
        if (total === null) rune.isMarked = true;
      }
    }
    const marked = [...below.values()].filter(({ total, isMarked }) => isMarked || total > page).map(({ ordinal }) => ordinal);
    if (marked.length > 0)
      await this.store.run(`UPDATE level_runes SET is_marked = true WHERE level = ${level} AND ordinal IN (${marked.join()})`);
  }

  /** Makes the complete list of each address or rune in `list_pairs`. */
  #makeLists(subject: 'key' | 'ordinal'): Promise<void> {
    const [key, other, entry] =
      subject === 'key' ? ['key', 'ordinal', 'balance'] : [padded('ordinal'), 'url_decode(key)', `'[' || ${ADDRESS}`];
    // Rows are inserted in the order of the list, so the rowid of a row gives its position.
    return this.store.run(`CREATE OR REPLACE TEMP TABLE whole_lists AS
      SELECT ${subject} AS rank, ${key} AS key, ${entry} || ',"' || units || '"]' AS value
      FROM (${newest('FROM list_pairs')})
      JOIN balance_runes USING (ordinal) WHERE ${isAbove('units')} ORDER BY rank, strlen(units) DESC, units DESC, ${other};
      CREATE OR REPLACE TEMP TABLE list_starts AS SELECT rank, min(rowid) AS start, count(*) AS total FROM whole_lists GROUP BY rank`);
  }

  /** SQL that selects the complete lists: the first entry of each page for the list's own document, and the documents of the pages. */
  get #lists(): string {
    const { listPage: page } = this.form.limits;
    const placed = 'SELECT rank, key, w.rowid - start AS place, value FROM whole_lists AS w JOIN list_starts USING (rank)';
    const start = documentStart(`key || ' ' || ${padded(`place // ${page}`)}`);
    return `SELECT rank, 0, place, '', ${valueText('value')} FROM (${placed}) WHERE place % ${page} = 0
      UNION ALL SELECT rank, 1 + place // ${page}, place, '', CASE WHEN place % ${page} = 0 THEN ${start} ELSE '' END || ${valueText('value')} FROM (${placed})`;
  }

  /** SQL that selects the rows of the documents of addresses. */
  get #addressRows(): string {
    // Beside a complete list, each balance that changed in the level has a document of its own (`pairKey`), after the pages of the list.
    return `
      SELECT key AS rank, 0 AS document, ${HEAD_PLACE} AS place, '' AS also, ${documentStart('key')} AS text FROM (SELECT DISTINCT key FROM part_pairs)
      UNION ALL SELECT key, CASE WHEN l.key IS NULL THEN 0 ELSE ${MOST_PAGES} + ordinal END, ordinal, '',
        CASE WHEN l.key IS NULL THEN '' ELSE ${documentStart(`p.key || ' r' || ${padded('ordinal')}`)} END || ${valueText('balance')} || ${UNITS}
      FROM part_pairs AS p JOIN balance_runes USING (ordinal) LEFT JOIN long_addresses AS l USING (key)
      UNION ALL SELECT key, 0, -1, '', ${valueText('coalesce(total, 0)')} FROM long_addresses SEMI JOIN part_pairs USING (key) LEFT JOIN list_starts ON rank = key
      UNION ALL ${this.#lists}`;
  }

  /** SQL that selects the rows of the documents of holders. Holders are sorted by address, because readers sort them by balance. */
  get #holderRows(): string {
    const level = this.#level;
    const { listPage: page } = this.form.limits;
    return `
      SELECT ordinal AS rank, 0 AS document, ${HEAD_PLACE} AS place, '' AS also, ${documentStart(padded('ordinal'))} || ${valueText('head')} || ',' || change
        || CASE WHEN is_marked THEN ',null' WHEN entries > ${page} THEN ',' || coalesce(total, 0) ELSE '' END || ']' AS text
      FROM level_runes JOIN balance_runes USING (ordinal) LEFT JOIN list_starts ON rank = ordinal
      WHERE level = ${level} AND ordinal IN (SELECT ordinal FROM part_pairs)
      UNION ALL SELECT ordinal, 0, -1, key, ${valueText(`'[' || ${ADDRESS}`)} || ${UNITS}
      FROM part_pairs JOIN level_runes USING (level, ordinal) WHERE units <> before AND entries <= ${page}
      UNION ALL ${this.#lists}`;
  }
}

/** Value of the column `place` in the row that begins a document. It sorts before the places of all entries. */
const HEAD_PLACE = -2;

/**
 * Added to ordinals in the column `document`, so that the documents of single runes sort after all pages. A page has its index plus 1 in
 * this column, and an index has at most 8 digits.
 */
const MOST_PAGES = 1e8;

/** SQL expression of an address as JSON. */
const ADDRESS = 'to_json(url_decode(key))';

/** Bytes of memory that DuckDB needs for a change of a balance, and to sort the texts of a pair of an address and a rune. */
const [CHANGE_BYTES, PAIR_BYTES] = [384, 800];

/** Entries from a document of the last build. */
interface Loaded {
  /** Index of the level. */
  readonly level: number;
  /** The key of an address, or the ordinal of a rune. */
  readonly subject: string | number;
  readonly entries: readonly string[];
}

/** Returns the entries in a document of an address or a rune. With a complete list, `total` says how many pages have. */
function listIn(
  kind: keyof KnownLevel,
  values: readonly string[],
): { readonly total?: number | undefined; readonly entries: readonly string[] } {
  const [first = '', ...entries] = values;
  if (kind === 'holders') return { total: parseHoldersHead(first).total ?? undefined, entries };
  return first.startsWith('[') ? { entries: values } : { total: Number(first), entries };
}

/** Returns the part of an address's entry that is loaded, with the balance before the level in place of that after it. */
function entryBefore(entry: string): string {
  const { other, before } = parseBalance(entry);
  return JSON.stringify([other, ...Array.from({ length: 5 }, () => ''), String(before)]);
}
