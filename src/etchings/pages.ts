/**
 * Renders pages of etchings: the etchings from `page * pageSize` on, oldest first. Etchings are only ever added at the
 * end, so a page changes when one of its runes does.
 */
import type { Dialect } from '../pages/site.ts';
import { LOWER_DIGITS } from '../stats/counting.ts';
import { int, nullable, type Store, text, type Values } from '../store/duckdb.ts';
import { type Etching, renderEtching } from './render.ts';

/** A page with the JSON of each of its etchings, in order. */
export interface EtchingPage {
  readonly page: number;
  readonly etchings: readonly string[];
}

/** How pages are rendered. */
export interface PageForm {
  readonly dialect: Dialect;
  /** Etchings in a page. */
  readonly pageSize: number;
  /** True when the supply has the counts of mints and burns. */
  readonly hasCounts: boolean;
}

const TERMS = ['terms_amount', 'terms_cap', 'terms_height_start', 'terms_height_end', 'terms_offset_start', 'terms_offset_end'] as const;

const ROW = {
  ordinal: int,
  id: text,
  name: text,
  spaced_name: text,
  number: int,
  divisibility: int,
  symbol: text,
  turbo: int,
  terms_amount: nullable(text),
  terms_cap: nullable(text),
  terms_height_start: nullable(text),
  terms_height_end: nullable(text),
  terms_offset_start: nullable(text),
  terms_offset_end: nullable(text),
  premine: text,
  block_hash: text,
  block_height: int,
  tx_id: text,
  tx_index: int,
  timestamp: int,
  mints: int,
  burns: int,
  minted_upper: text,
  minted_lower: text,
  burned_upper: text,
  burned_lower: text,
  is_counted: int,
} as const;

const SUMS = ['minted_upper', 'minted_lower', 'burned_upper', 'burned_lower'] as const;

/** Pages whose rows are in memory at once. */
const PAGES_AT_ONCE = 100;

/**
 * Yields pages as they are after the block `tip`, ascending. `pages` is SQL of their numbers. Needs the table
 * `etchings` (etchings/facts.ts).
 */
export async function* renderPages(pages: string, tip: number, form: PageForm, store: Store): AsyncGenerator<EtchingPage> {
  const { pageSize, hasCounts, dialect } = form;
  await store.run(`CREATE OR REPLACE TEMP TABLE wanted_pages AS SELECT DISTINCT page::BIGINT AS page FROM (${pages}) AS p(page);
    CREATE OR REPLACE TEMP TABLE wanted_etchings AS SELECT e.*, ordinal // ${pageSize} AS page
      FROM etchings e WHERE ordinal // ${pageSize} IN (SELECT page FROM wanted_pages) AND block_height <= ${tip};
    CREATE OR REPLACE TEMP TABLE wanted_sums AS SELECT rune_id, sum(mint)::BIGINT AS mints, sum(burn)::BIGINT AS burns,
        ${SUMS.map((name) => `sum(${name})::HUGEINT AS ${name}`).join(', ')}, min(decimals) AS least, max(decimals) AS most
      FROM state.block_runes WHERE ${hasCounts} AND block_height <= ${tip} AND rune_id IN (SELECT id FROM wanted_etchings) GROUP BY rune_id`);
  // Amounts with other decimals than the rune has cannot be summed, so such a rune has no counts.
  const isCounted = `${hasCounts} AND coalesce(least = divisibility AND most = divisibility, true)`;
  const columns = [
    'ordinal, id, name, spaced_name, number, divisibility, symbol, turbo::INTEGER AS turbo, premine, block_hash, block_height, tx_id, tx_index',
    `"timestamp", coalesce(mints, 0) AS mints, coalesce(burns, 0) AS burns, (${isCounted})::INTEGER AS is_counted`,
    ...TERMS,
    ...SUMS.map((name) => `coalesce(${name}, 0)::VARCHAR AS ${name}`),
  ];
  const numbers = await store.rows('SELECT page FROM wanted_pages ORDER BY page', { page: int });
  for (let i = 0; i < numbers.length; i += PAGES_AT_ONCE) {
    const [first, last] = [numbers[i]?.page ?? 0, numbers[Math.min(i + PAGES_AT_ONCE, numbers.length) - 1]?.page ?? 0];
    const rows = await store.rows(
      `SELECT ${columns.join(', ')} FROM wanted_etchings LEFT JOIN wanted_sums ON rune_id = id
       WHERE page BETWEEN ${first} AND ${last} ORDER BY ordinal`,
      ROW,
    );
    let page: { page: number; etchings: string[] } | undefined;
    for (const row of rows) {
      const number = Math.floor(row.ordinal / pageSize);
      if (page?.page !== number) {
        if (page !== undefined) yield page;
        page = { page: number, etchings: [] };
      }
      page.etchings.push(renderEtching(etchingOf(row), dialect, tip));
    }
    if (page !== undefined) yield page;
  }
}

function etchingOf({ turbo, is_counted, mints, burns, ...row }: Values<typeof ROW>): Etching {
  const joined = (upper: string, lower: string) => BigInt(upper) * 10n ** BigInt(LOWER_DIGITS) + BigInt(lower);
  const [minted, burned] = [joined(row.minted_upper, row.minted_lower), joined(row.burned_upper, row.burned_lower)];
  return { ...row, turbo: turbo === 1, counts: is_counted === 1 ? { mints, burns, minted, burned } : undefined };
}
