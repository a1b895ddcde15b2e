/**
 * Renders pages of etchings: the etchings from `page * pageSize` on, oldest first. Etchings are only ever added at the
 * end, so a page changes when one of its runes does.
 */
import { countCrossing, type WorkLimits } from '../limits.ts';
import type { Dialect } from '../pages/site.ts';
import { LOWER_DIGITS } from '../stats/counting.ts';
import { int, type Store, text } from '../store/duckdb.ts';
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
  readonly limits: Pick<WorkLimits, 'etchingPagesAtOnce'>;
}

/** A row of the query below, as JSON. Large integers are texts, and what a rune does not have is null. */
interface Row extends Omit<Etching, 'counts'> {
  readonly ordinal: number;
  readonly mints: number;
  readonly burns: number;
  readonly minted_upper: string;
  readonly minted_lower: string;
  readonly burned_upper: string;
  readonly burned_lower: string;
  /** False when the mints and burns of the rune cannot be summed. */
  readonly is_counted: boolean;
}

const SUMS = ['minted_upper', 'minted_lower', 'burned_upper', 'burned_lower'] as const;

/**
 * Yields pages as they are after the block `tip`, ascending. `pages` is SQL of their numbers. Needs the table
 * `etchings` (etchings/facts.ts).
 */
export async function* renderPages(pages: string, tip: number, form: PageForm, store: Store): AsyncGenerator<EtchingPage> {
  const { pageSize, hasCounts, dialect } = form;
  const { etchingPagesAtOnce: atOnce } = form.limits;
  await store.run(`CREATE OR REPLACE TEMP TABLE wanted_pages AS SELECT DISTINCT page::BIGINT AS page FROM (${pages}) AS p(page);
    CREATE OR REPLACE TEMP TABLE wanted_etchings AS SELECT r.*, ordinal, ordinal // ${pageSize} AS page
      FROM etchings e JOIN state.runes r USING (id) WHERE ordinal // ${pageSize} IN (SELECT page FROM wanted_pages) AND e.block_height <= ${tip};
    CREATE OR REPLACE TEMP TABLE wanted_sums AS SELECT rune_id, sum(mint)::BIGINT AS mints, sum(burn)::BIGINT AS burns,
        ${SUMS.map((name) => `sum(${name})::HUGEINT AS ${name}`).join(', ')}, min(decimals) AS least, max(decimals) AS most
      FROM state.block_runes WHERE ${hasCounts} AND block_height <= ${tip} AND rune_id IN (SELECT id FROM wanted_etchings) GROUP BY rune_id`);
  // Amounts with other decimals than the rune has cannot be summed, so such a rune has no counts.
  const isCounted = `${hasCounts} AND coalesce(least = divisibility AND most = divisibility, true)`;
  const columns = [
    'ordinal, id, name, spaced_name, number, divisibility, symbol, turbo, premine, block_hash, block_height, tx_id, tx_index, "timestamp"',
    `coalesce(mints, 0) AS mints, coalesce(burns, 0) AS burns, ${isCounted} AS is_counted`,
    'terms_amount, terms_cap, terms_height_start, terms_height_end, terms_offset_start, terms_offset_end',
    ...SUMS.map((name) => `coalesce(${name}, 0)::VARCHAR AS ${name}`),
  ];
  const numbers = await store.rows('SELECT page FROM wanted_pages ORDER BY page', { page: int });
  if (numbers.length > atOnce) countCrossing('etchingPagesAtOnce');
  for (let i = 0; i < numbers.length; i += atOnce) {
    const [first, last] = [numbers[i]?.page ?? 0, numbers[Math.min(i + atOnce, numbers.length) - 1]?.page ?? 0];
    // One JSON text for each row: the store takes ten times as long to convert two dozen cells.
    const rows = await store.rows(
      `SELECT to_json(e)::VARCHAR AS row FROM (SELECT ${columns.join(', ')} FROM wanted_etchings LEFT JOIN wanted_sums ON rune_id = id
         WHERE page BETWEEN ${first} AND ${last}) AS e ORDER BY ordinal`,
      { row: text },
    );
    let page: { page: number; etchings: string[] } | undefined;
    for (const { row: json } of rows) {
      const row = JSON.parse(json) as Row;
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

function etchingOf(row: Row): Etching {
  const joined = (upper: string, lower: string) => BigInt(upper) * 10n ** BigInt(LOWER_DIGITS) + BigInt(lower);
  const { mints, burns, minted_upper, minted_lower, burned_upper, burned_lower, is_counted } = row;
  const [minted, burned] = [joined(minted_upper, minted_lower), joined(burned_upper, burned_lower)];
  return { ...row, counts: is_counted ? { mints, burns, minted, burned } : undefined };
}
