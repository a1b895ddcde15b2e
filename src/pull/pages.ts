/**
 * Reads a block from the pages of its list, which may change between two requests.
 */
import { z } from 'zod';
import type { ActivityRecord } from '../contract/contractJson.ts';
import { activityInput } from '../contract/schemas.ts';
import { BadBlockError, type Block, checkBlock } from './block.ts';

const page = z.object({ limit: z.int().min(1), total: z.int().min(0), results: z.array(activityInput) });

export interface Page {
  readonly limit: number;
  readonly total: number;
  readonly results: readonly ActivityRecord[];
}

/** Parses a page of records and checks it against the contract. Throws a SyntaxError or a ZodError. */
export function parsePage(text: string): Page {
  return page.parse(JSON.parse(text)) as Page;
}

/** Fetches a window of a block's list. */
export type ReadPage = (height: number, limit: number, offset: number) => Promise<Page>;

/**
 * Reads all records of a block. Throws a BadBlockError if the pages do not match, because of their totals, block hashes
 * or number of records. That happens if the source replaces the block between two requests.
 */
export async function readBlock(height: number, limit: number, read: ReadPage): Promise<Block> {
  const first = await read(height, limit, 0);
  const { total } = first;
  // A server may apply a smaller limit than requested; the page contains the limit that it applied.
  const step = Math.min(limit, first.limit);
  const records: ActivityRecord[] = [];
  for (let offset = 0; offset === 0 || offset < total; offset += step) {
    const next = offset === 0 ? first : await read(height, step, offset);
    if (next.total !== total) throw new BadBlockError(`has pages with different totals, ${total} and ${next.total}`);
    const expected = Math.min(step, total - offset);
    if (next.results.length !== expected) {
      throw new BadBlockError(`has a page of ${next.results.length} records at offset ${offset}, expected ${expected}`);
    }
    for (const record of next.results) records.push(record);
  }
  return checkBlock(height, records);
}
