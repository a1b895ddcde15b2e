/**
 * A block's records from the pages of its list, which may change while they are read.
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

/** Gets a window of the list of the block at a height. */
export type ReadPage = (height: number, limit: number, offset: number) => Promise<Page>;

/**
 * All records of a block. Throws a BadBlockError when its pages do not belong together: another total, another block, a record too few or twice. That happens
 * when the block is replaced between two of them.
 */
export async function readBlock(height: number, limit: number, read: ReadPage): Promise<Block> {
  const first = await read(height, limit, 0);
  const { total } = first;
  // A server may give less than it is asked for, and says so.
  const step = Math.min(limit, first.limit);
  const records: ActivityRecord[] = [];
  for (let offset = 0; offset === 0 || offset < total; offset += step) {
    const next = offset === 0 ? first : await read(height, step, offset);
    if (next.total !== total) throw new BadBlockError(`has pages that disagree on the total, ${total} and ${next.total}`);
    const expected = Math.min(step, total - offset);
    if (next.results.length !== expected) {
      throw new BadBlockError(`has a page of ${next.results.length} records at offset ${offset}, where ${expected} must be`);
    }
    for (const record of next.results) records.push(record);
  }
  return checkBlock(height, records);
}
