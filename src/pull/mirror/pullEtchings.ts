/**
 * Pulls the etchings of a server or a mirror into the table of runes, so that builds of the pulled blocks have
 * etchings. The list of etchings begins with the newest rune. Older etchings never change, so a later pull reads only
 * the first pages of the list.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Progress } from '../../cli/progress.ts';
import { type Field, RUNE_DETAILS, RUNE_FIELDS } from '../../contract/fields.ts';
import { misfitOfRune } from '../../contract/schemas.ts';
import { readFiles } from '../../duckdb/readFilesSql.ts';
import { literal, type Store, text } from '../../duckdb/store.ts';
import { columnsOf, definitionOf } from '../../duckdb/table.ts';
import { InputError } from '../../errors.ts';
import { RUNES } from '../../rows/rowsForm.ts';
import { BadBlockError } from '../blockIdentity.ts';
import { CsvFile } from '../csvFile.ts';
import { writeParquet } from '../parquetFile.ts';
import { checkRunes, RUNES_FILE } from '../pulledFiles.ts';
import { hasChecksum, putRunes } from '../writePulled.ts';
import { parsePageJson, parseResults } from './blockPages.ts';

/** Columns of the table of runes that an etching contains. */
const FIELDS: readonly Field[] = [...RUNE_FIELDS, ...RUNE_DETAILS].filter(({ column }) => column !== 'cenotaph');
const COLUMNS = FIELDS.map(({ column }) => column);

/** Row of the table of runes. Null marks a term that the rune does not have. */
type Row = Readonly<Record<string, string | number | boolean | null>>;

export interface EtchingPage {
  /** Limit that the source applied, which may be smaller than requested. */
  readonly limit: number;
  readonly total: number;
  /** Newest first. Some servers omit runes. */
  readonly runes: readonly Row[];
}

export interface EtchingList {
  readonly limit: number;
  /** True if `total` is the number of runes. Old servers return the highest rune number plus one instead. */
  readonly isCounted: boolean;
  /** Reads a window. Returns undefined if the source does not have etchings. */
  read(limit: number, offset: number): Promise<EtchingPage | undefined>;
  /** Runs `step`, and retries it after a PassingError. `what` names the request in messages. */
  persist<T>(what: string, step: () => Promise<T>): Promise<T>;
}

const hash = z.string().regex(/^(?:0x)?[0-9a-f]{64}$/);
const decimal = z.string().regex(/^[0-9]{1,39}(?:\.[0-9]{1,38})?$/);
const digits = z.string().regex(/^[0-9]{1,39}$/);
const count = z.int().min(0);

const etching = z.object({
  id: z.string().regex(/^[0-9]+:[0-9]+$/),
  name: z.string(),
  spaced_name: z.string(),
  number: count,
  divisibility: count,
  symbol: z.string(),
  turbo: z.boolean(),
  mint_terms: z.object({
    amount: decimal.nullable(),
    cap: decimal.nullable(),
    height_start: digits.nullable(),
    height_end: digits.nullable(),
    offset_start: digits.nullable(),
    offset_end: digits.nullable(),
  }),
  supply: z.object({ premine: decimal }),
  location: z.object({
    block_hash: hash,
    block_height: count,
    // A server may have an empty id for rune 0: the protocol itself defines this rune, and no transaction etched it.
    tx_id: z.union([hash, z.literal('')]),
    tx_index: count,
    timestamp: count,
  }),
});

/** Maximum number of runes that a list may have. A source with more is refused. Mainnet has 270,000 in 2026. */
export const MOST_RUNES = 10_000_000;

const list = z.object({ limit: count.min(1), total: count, results: z.array(z.unknown()) });

/**
 * Parses a window of the list of etchings in either dialect. A cap has a decimal point in dialect `hiro`, and none in
 * `contract`. In both dialects, its digits without the point are the maximum number of mints. Throws a SyntaxError or a
 * ZodError.
 */
export function parseEtchingPage(body: string): EtchingPage {
  // Heights may exceed the precision of a JavaScript number, so they are quoted before JSON.parse(). The pattern cannot
  // match inside a JSON string, because quotes are escaped there.
  const quoted = body.replace(/"((?:height|offset)_(?:start|end))":([0-9]+)/g, '"$1":"$2"');
  const { limit, total, results } = list.parse(parsePageJson(quoted));
  return { limit, total, runes: parseResults(results, etching).map(rowOf) };
}

function rowOf({ mint_terms: terms, supply, location, ...rune }: z.infer<typeof etching>): Row {
  const unprefixed = (hex: string) => hex.replace(/^0x/, '');
  const units = (amount: string | null) => (amount === null ? null : BigInt(amount.replace('.', '')).toString());
  const row: Row = {
    ...rune,
    ...location,
    block_hash: unprefixed(location.block_hash),
    tx_id: unprefixed(location.tx_id),
    premine: units(supply.premine),
    terms_amount: units(terms.amount),
    terms_cap: units(terms.cap),
    terms_height_start: terms.height_start,
    terms_height_end: terms.height_end,
    terms_offset_start: terms.offset_start,
    terms_offset_end: terms.offset_end,
  };
  const cells = Object.fromEntries(COLUMNS.map((column) => [column, row[column] ?? null]));
  const misfit = misfitOfRune(cells);
  if (misfit !== undefined) throw new Error(`it has a rune that no build accepts: ${misfit}`);
  return cells;
}

export interface EtchingPull {
  /** Path of the folder `pulled`. */
  readonly folder: string;
  /**
   * Height of the highest settled block. No reorganisation removes a rune that was etched at or below this height. So
   * the pull reads the list, from the newest rune on, only down to the first such rune that the table already has.
   */
  readonly settled: number;
  /** True to keep runes that the source lacks, because pulled rows refer to them. */
  readonly keepsOthers: boolean;
}

/**
 * Updates the table of runes. Returns the number of runes that were read, or undefined if the source does not have
 * etchings. Throws an InputError if the table is damaged.
 */
export async function pullEtchings(
  source: EtchingList,
  { folder, settled, keepsOthers }: EtchingPull,
  store: Store,
  progress: Progress,
): Promise<number | undefined> {
  const path = join(folder, RUNES_FILE);
  const isKnown = existsSync(path) && hasChecksum(path);
  if (isKnown) await checkRunes(path);
  await store.run(`CREATE OR REPLACE TEMP TABLE pulled_runes (${definitionOf(columnsOf(FIELDS))})`);
  if (isKnown)
    await store.run(
      `INSERT INTO pulled_runes BY NAME SELECT COLUMNS(c -> c IN (${COLUMNS.map(literal).join(', ')})) FROM ${readFiles('parquet', [path])}`,
    );
  progress.begin('runes');
  const { file, kept } = await source.persist('the list of etchings', async () => {
    const file = new CsvFile(folder, COLUMNS);
    try {
      return { file, kept: await readNew(source, settled, file, store, progress) };
    } catch (error) {
      file.drop();
      throw error;
    }
  });
  if (kept === undefined) return undefined;
  const more = `FROM pulled_runes WHERE (${keepsOthers ? 'true' : kept}) AND id NOT IN (SELECT id FROM fetched)`;
  const parquet = await writeParquet(folder, { csv: file.end(), fields: FIELDS, order: RUNES.order, more }, store);
  await store.run('DROP TABLE pulled_runes');
  await putRunes(folder, parquet);
  return file.rows;
}

/**
 * Adds each new rune of the list to the file once. Reads from the newest rune down to the first settled rune that the
 * table also has. Returns the SQL condition for the rows of the table to keep: this settled rune and all older runes.
 * Returns undefined if the source has no list.
 */
async function readNew(
  source: EtchingList,
  settled: number,
  file: CsvFile<string>,
  store: Store,
  progress: Progress,
): Promise<string | undefined> {
  const seen = new Set<string>();
  let step = source.limit;
  let total: number | undefined;
  for (let offset = 0; total === undefined || offset < total; offset += step) {
    const page = await source.read(step, offset);
    if (page === undefined) return undefined;
    step = Math.min(step, page.limit);
    if (page.total > MOST_RUNES)
      throw new InputError(`the source says that it has ${page.total} etchings, more than ${MOST_RUNES}`, [
        'No chain has that many. Check that --from is a source to be trusted.',
      ]);
    if (page.runes.length > step) throw new BadBlockError(`has a page of ${page.runes.length} etchings, expected ${step} at most`);
    if (total !== undefined && page.total !== total)
      throw new BadBlockError(`changed between two pages, from ${total} to ${page.total} etchings`);
    total = page.total;
    const known = await knownRows(page.runes, store);
    for (const [i, rune] of page.runes.entries()) {
      const [id, height, index] = [String(rune['id']), Number(rune['block_height']), Number(rune['tx_index'])];
      if (
        height <= settled &&
        known.get(id) === JSON.stringify(rune) &&
        (await isSameBelow(source, total - offset - i, height, index, store))
      ) {
        return `(block_height, tx_index) <= (${height}, ${index})`;
      }
      if (seen.has(id)) continue;
      seen.add(id);
      file.add(rune);
    }
    progress.show(Math.min(offset + step, total), total, 'runes');
  }
  if (source.isCounted && file.rows !== total)
    throw new BadBlockError(`has ${file.rows} etchings in its pages, but says that it has ${total}`);
  return 'false';
}

/**
 * True if table and list have the same number of runes up to this rune. Then the table lacks no older rune. Always true
 * for old servers, whose `total` is not the number of runes.
 */
async function isSameBelow(source: EtchingList, listed: number, height: number, index: number, store: Store): Promise<boolean> {
  if (!source.isCounted) return true;
  const runes = await store.number(`SELECT count(*) AS number FROM pulled_runes WHERE (block_height, tx_index) <= (${height}, ${index})`);
  return runes === listed;
}

/** Returns the rows that `pulled_runes` has for these runes, as JSON by rune id. */
async function knownRows(runes: readonly Row[], store: Store): Promise<Map<string, string>> {
  if (runes.length === 0) return new Map();
  const ids = runes.map(({ id }) => literal(String(id)));
  const rows = await store.rows(`SELECT id, to_json(k)::VARCHAR AS row FROM pulled_runes AS k WHERE id IN (${ids.join(', ')})`, {
    id: text,
    row: text,
  });
  return new Map(rows.map(({ id, row }) => [id, JSON.stringify(JSON.parse(row))]));
}
