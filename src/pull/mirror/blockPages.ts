/**
 * Reads a block from the pages of its activity, which may change between two requests. Checks every size against a
 * limit before use, so that a broken or hostile source cannot fill the memory.
 */
import { z } from 'zod';
import type { ActivityRecord } from '../../contract/recordJson.ts';
import { activityInput, misfitOf } from '../../contract/schemas.ts';
import { InputError } from '../../errors.ts';
import { BadBlockError } from '../blockIdentity.ts';
import type { AddRecords } from '../writePulled.ts';

/** Maximum average bytes of a record or an etching in a page. Larger pages are refused. A typical record has 600. */
const MOST_BYTES = 2048;

/** Returns the maximum size in bytes of a page with this many records, including the JSON around the records. */
export const bytesOf = (records: number): number => 64 * 1024 + records * MOST_BYTES;

/** Minimum average bytes per JSON value. A page with more values for its length is refused. Real pages have 25. */
const BYTES_PER_VALUE = 8;

/** Maximum number of JSON values in a page: 40 for each of 100,000 records. A page with more is refused. */
const MOST_VALUES = 4_000_000;

/**
 * Parses the JSON of a page. Throws an Error if it has too many values for its length, because small values such as
 * `[[],[],[]]` take ten times the memory of their text.
 */
export function parsePageJson(text: string): unknown {
  const most = 100 + Math.min(text.length / BYTES_PER_VALUE, MOST_VALUES);
  let values = 0;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === 0x2c || code === 0x5b || code === 0x7b) values += 1;
  }
  if (values > most) throw new Error(`it has ${values} JSON values, more than the ${Math.floor(most)} that a page of this length may have`);
  return JSON.parse(text);
}

/**
 * Parses the results of a page one by one. A schema of the complete array would report every wrong result, and there
 * may be many. Throws an Error for the first wrong result.
 */
export const parseResults = <T>(results: readonly unknown[], schema: z.ZodType<T>): T[] =>
  results.map((result, i) => {
    const { data, error } = schema.safeParse(result);
    if (error !== undefined) throw new Error(`results.${i}.${misfitOf(error)}`);
    return data as T;
  });

const page = z.object({ limit: z.int().min(1), total: z.int().min(0), results: z.array(z.unknown()) });

export interface Page {
  readonly limit: number;
  readonly total: number;
  readonly results: readonly ActivityRecord[];
}

/** Parses a page of records and checks it against the contract. Throws a SyntaxError, a ZodError or an Error. */
export function parsePage(text: string): Page {
  const { results, ...window } = page.parse(parsePageJson(text));
  return { ...window, results: parseResults(results, activityInput) as ActivityRecord[] };
}

/**
 * Maximum number of records of a block: the layout `archive` stores the number of a transaction's records in 24 bits.
 * The largest blocks of mainnet have some ten thousand records. The size of a block limits it to less than a million.
 */
export const MOST_RECORDS = 2 ** 24 - 1;

/**
 * Reads all records of a block, and passes them to `add` page by page. `read` fetches a window of the block's activity.
 * Throws a BadBlockError if totals or sizes of the pages do not match, for example because the source replaced the
 * block between two requests. Throws an InputError for more than MOST_RECORDS records.
 */
export async function readBlock(
  height: number,
  limit: number,
  read: (limit: number, offset: number) => Promise<Page>,
  add: AddRecords,
): Promise<void> {
  const first = await read(limit, 0);
  const { total } = first;
  if (total > MOST_RECORDS)
    throw new InputError(`the source says that block ${height} has ${total} records, more than ${MOST_RECORDS}`, [
      'No block has that many. Check that --from is a source to be trusted.',
    ]);
  // A server may apply a smaller limit than requested. The page contains the limit that the server applied.
  const step = Math.min(limit, first.limit);
  for (let offset = 0; offset === 0 || offset < total; offset += step) {
    const next = offset === 0 ? first : await read(step, offset);
    if (next.total !== total) throw new BadBlockError(`has pages with different totals, ${total} and ${next.total}`);
    const expected = Math.min(step, total - offset);
    if (next.results.length !== expected)
      throw new BadBlockError(`has a page of ${next.results.length} records at offset ${offset}, expected ${expected}`);
    await add(next.results);
  }
}
