/**
 * Makes rankings: all balances of runes after a block, the largest first (archive/balanceTables.ts).
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { type HolderLevel, holdersKey, ordinalOfKey, rankingPageKey } from '../archive/balanceTables.ts';
import type { DocumentLevel } from '../archive/documents.ts';
import type { LevelRange } from '../archive/levels.ts';
import { int, type Store, text } from '../store/duckdb.ts';
import { readLines } from '../store/files.ts';
import { type LevelForm, reusedLevels } from './changes.ts';
import { documentsOf, type IsWanted, type StoredDocument } from './documents.ts';
import type { LevelPlan } from './listedRecords.ts';
import type { OldArchive } from './oldArchive.ts';
import { changesIn, digitsOf, joinedParts, partsOf } from './unitSql.ts';

/** SQL of the first value of a rune's document, without the bracket at the end. */
export const RUNE_HEAD = `left(to_json([to_json(id), to_json(number), to_json(name), to_json(divisibility)])::VARCHAR, -1)`;

/** A set of runes by their ordinals. */
interface Runes {
  has(ordinal: number): boolean;
  /** False if it has none of the ordinals from `first` to `last`. */
  hasAny(first: number, last: number): boolean;
}

const ALL: Runes = { has: () => true, hasAny: () => true };
const allBut = (runes: ReadonlySet<number>): Runes => ({ has: (ordinal) => !runes.has(ordinal), hasAny: () => true });
/** The runes after an ordinal. */
export const runesAfter = (before: number): Runes => ({ has: (ordinal) => ordinal > before, hasAny: (_, last) => last > before });

function only(runes: ReadonlySet<number>): Runes {
  const sorted = Float64Array.from(runes).sort();
  const countBelow = (ordinal: number): number => {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sorted[middle] ?? 0) < ordinal) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return { has: (ordinal) => runes.has(ordinal), hasAny: (first, last) => countBelow(last + 1) > countBelow(first) };
}

/** Collects balances in the tables `balance_parts` (parts of balances, to be added) and `ranked_runes`. */
export class Balances {
  readonly #store: Store;
  readonly #old: OldArchive | undefined;
  readonly #file: string;

  /** `scratch` is a folder for temporary files. */
  constructor(scratch: string, old: OldArchive | undefined, store: Store) {
    this.#store = store;
    this.#old = old;
    this.#file = join(scratch, 'holders.ndjson');
  }

  /** Starts with no balances. */
  async clear(): Promise<void> {
    await this.#store.run(`CREATE OR REPLACE TEMP TABLE balance_parts (ordinal BIGINT, address VARCHAR, upper HUGEINT, lower HUGEINT);
      CREATE OR REPLACE TEMP TABLE ranked_runes (ordinal BIGINT)`);
  }

  /** Adds the changes in listed records of some blocks, and their runes. `above` excludes runes up to this ordinal. */
  async addListed({ first, last }: LevelRange, above = -1): Promise<void> {
    const sql = `FROM (${changesIn(first, last)}) JOIN etchings USING (id) WHERE ordinal > ${above}`;
    await this.#store.run(`CREATE OR REPLACE TEMP TABLE listed_changes AS SELECT ordinal, address, upper, lower ${sql};
      INSERT INTO ranked_runes SELECT DISTINCT ordinal FROM listed_changes;
      INSERT INTO balance_parts SELECT * FROM listed_changes WHERE upper <> 0 OR lower <> 0;
      DROP TABLE listed_changes`);
  }

  /** Adds the documents of some runes, from a level of the last build. Returns their ordinals. */
  async addLevel(level: DocumentLevel, runes: Runes): Promise<Set<number>> {
    const found = new Set<number>();
    if (this.#old === undefined) return found;
    const handle = openSync(this.#file, 'w');
    try {
      const isWanted: IsWanted = (from, end) => runes.hasAny(firstOrdinal(from), end === undefined ? MOST_RUNES : firstOrdinal(end));
      for (const { key, values } of documentsOf(this.#old, level, isWanted)) {
        const ordinal = ordinalOfKey(key);
        if (!runes.has(ordinal)) continue;
        found.add(ordinal);
        // The first value of a rune's document is its head.
        const holders = key.includes('.') ? values : values.slice(1);
        writeSync(handle, `{"ordinal":${ordinal},"holders":[${holders.join()}]}\n`);
      }
    } finally {
      closeSync(handle);
    }
    if (found.size === 0) return found;
    const rows = readLines(this.#file, `ordinal: 'BIGINT', holders: 'VARCHAR[][]'`);
    await this.#store.run(`INSERT INTO ranked_runes SELECT DISTINCT ordinal FROM ${rows};
      INSERT INTO balance_parts SELECT ordinal, holder[1], ${partsOf('holder[2]')} FROM (SELECT ordinal, unnest(holders) AS holder FROM ${rows})`);
    return found;
  }

  /** Sums all parts, in the table `balances`. */
  async sum(): Promise<void> {
    await this.#store.run(`CREATE OR REPLACE TEMP TABLE balances AS SELECT * FROM (
        SELECT ordinal, address, ${joinedParts('upper', 'lower')} FROM (
          SELECT ordinal, address, sum(upper)::HUGEINT AS upper, sum(lower)::HUGEINT AS lower FROM balance_parts GROUP BY ordinal, address))
      WHERE upper <> 0 OR lower <> 0`);
  }

  /** Adds the balances of the last `sum`, of the runes in `ranked_runes`. */
  async addSummed(): Promise<void> {
    await this.#store.run('INSERT INTO balance_parts SELECT * FROM balances WHERE ordinal IN (SELECT ordinal FROM ranked_runes)');
  }

  /** Returns the ordinals of the runes in `ranked_runes`. */
  async runes(): Promise<Set<number>> {
    return new Set((await this.#store.rows('SELECT DISTINCT ordinal FROM ranked_runes', { ordinal: int })).map(({ ordinal }) => ordinal));
  }

  /** Returns the ordinals of runes with a balance below zero, ascending. Call it after `sum`. */
  async unbalanced(): Promise<number[]> {
    const rows = await this.#store.rows('SELECT DISTINCT ordinal FROM balances WHERE upper < 0 OR lower < 0 ORDER BY ordinal', {
      ordinal: int,
    });
    return rows.map(({ ordinal }) => ordinal);
  }

  /** Yields the documents of the runes in `ranked_runes`. `page` is the number of balances in a page. Call it after `sum`. */
  async *documents(page: number): AsyncGenerator<StoredDocument> {
    const heads = await this.#store.rows(
      `SELECT ordinal, ${RUNE_HEAD} AS head, coalesce(entries, 0)::BIGINT AS entries, coalesce(total, 0)::BIGINT AS total
       FROM (SELECT DISTINCT ordinal FROM ranked_runes) JOIN etchings USING (ordinal) JOIN state.runes USING (id)
         LEFT JOIN (SELECT ordinal, count(*) AS entries, count(*) FILTER (upper > 0 OR lower > 0) AS total FROM balances GROUP BY ordinal)
         USING (ordinal) ORDER BY ordinal`,
      { ordinal: int, head: text, entries: int, total: int },
    );
    const rows = this.#holders();
    try {
      for (const { ordinal, head, entries, total } of heads) {
        if (entries < page) {
          const values = [`${head}]`];
          for (let i = 0; i < entries; i += 1) values.push(await nextOf(rows));
          yield { key: holdersKey(ordinal), values };
          continue;
        }
        yield { key: holdersKey(ordinal), values: [`${head},${total}]`] };
        for (let first = 0; first < entries; first += page) {
          const values: string[] = [];
          for (let i = first; i < Math.min(first + page, entries); i += 1) values.push(await nextOf(rows));
          yield { key: rankingPageKey(ordinal, first / page), values };
        }
      }
    } finally {
      await rows.return(undefined);
    }
  }

  async *#holders(): AsyncGenerator<string> {
    const sql = `SELECT '[' || to_json(address) || ',"' || ${digitsOf('upper', 'lower')} || '"]' FROM balances
      ORDER BY ordinal, upper DESC, lower DESC, address`;
    for await (const chunk of this.#store.stream(sql)) for (const [value] of chunk.getRows()) yield String(value);
  }
}

const MOST_RUNES = 10 ** holdersKey(0).length;

/** Returns the lowest ordinal of keys that are equal to this start of a key, or after it. */
const firstOrdinal = (start: string): number => Number(start.slice(0, holdersKey(0).length).padEnd(holdersKey(0).length, '0'));

async function nextOf(rows: AsyncGenerator<string>): Promise<string> {
  const { value, done } = await rows.next();
  if (done === true) throw new Error('a ranking has fewer balances than were counted');
  return value;
}

/** How rankings are made. */
export interface RankingForm extends LevelForm {
  /** Balances in a page. */
  readonly page: number;
  /** The last block of the rankings of the last build. */
  readonly lastRanked: number;
}

/** Writes the levels of rankings. `plans` are of rankings only, ascending; `before` are all holders of the last build. */
export async function writeRankings(
  plans: readonly LevelPlan[],
  before: readonly HolderLevel[],
  { writer, page, lastRanked }: RankingForm,
  balances: Balances,
): Promise<HolderLevel[]> {
  const levels: HolderLevel[] = [];
  let lower: { readonly plan: LevelPlan; readonly level: HolderLevel | undefined } | undefined;
  for (const plan of plans) {
    const kept = reusedLevels(plan, before);
    let level = kept[0];
    if (!plan.isSame) {
      await balances.clear();
      // Of several rankings of a rune, the newest is right.
      const done = new Set<number>();
      for (const one of [...kept].reverse()) {
        const isRanking = one.last <= lastRanked;
        const found = await balances.addLevel(one, isRanking ? allBut(done) : ALL);
        if (isRanking) for (const ordinal of found) done.add(ordinal);
      }
      await balances.addListed(plan);
      const runes = await balances.runes();
      if (lower?.plan.isSame === false) {
        // `done` has no rune: a level reuses a ranking only if the ranking below it is the same.
        await balances.addSummed();
      } else if (lower?.level !== undefined) {
        await balances.addLevel(lower.level, only(new Set([...runes].filter((ordinal) => !done.has(ordinal)))));
      }
      await balances.sum();
      const documents = writer('holders', plan);
      for await (const document of balances.documents(page)) documents.add(document);
      const below = (lower?.level?.unbalanced ?? []).filter((ordinal) => !runes.has(ordinal));
      const unbalanced = [...below, ...(await balances.unbalanced())].sort((a, b) => a - b);
      const written = documents.finish(plan);
      level = written && (unbalanced.length === 0 ? written : { ...written, unbalanced });
    }
    if (level !== undefined) levels.push(level);
    lower = { plan, level };
  }
  return levels;
}
