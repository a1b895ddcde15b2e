/**
 * What the explorer asks the mirror for.
 */
import { type Activity, type ActivityPage, Mirror, type MirrorManifest } from '../../client/index.ts';
import type { LatestBlocks, Stats } from '../../contract/stats.ts';
import { BASE } from './settings.ts';
import type { ListView } from './views.ts';

export type { Activity };
/** A part of a list, as the API answers it. */
export type Result = ActivityPage;
export type NewBlock = LatestBlocks['blocks'][number];
type Heights = MirrorManifest['heights'];

const mirror = new Mirror(BASE);

/** The part of a list that a view shows. Rejects with the client's errors, and with the signal's reason. */
export const fetchList = ({ kind, id, operation, limit, offset }: ListView, signal: AbortSignal): Promise<Result> =>
  mirror.activity({ [kind]: id, operation, limit, offset, signal });

/** The heights that are held. Empty when they cannot be had, which costs no more than the ways to the neighbours. */
export const fetchHeights = (): Promise<Heights> =>
  mirror.manifest().then(
    ({ heights }) => heights,
    () => [],
  );

/** The heights of the blocks that are held around one; undefined where there is none. */
export interface Neighbours {
  readonly previous: number | undefined;
  readonly next: number | undefined;
}

/** Which held blocks are next to this height. */
export function neighboursOf(height: number, held: Heights): Neighbours {
  let previous: number | undefined;
  for (const [first, last] of held) {
    if (first > height) return { previous, next: first };
    previous = last < height ? last : height > first ? height - 1 : previous;
    if (height < last) return { previous, next: height + 1 };
  }
  return { previous, next: undefined };
}

/** A stats file of the mirror cannot be loaded. Lookups work without it. */
export class MissingStats extends Error {}

/** Loads the stats of all blocks. Rejects with MissingStats. */
export const fetchStats = (): Promise<Stats> => fetchStatsFile('runes/v1/stats.json', (value): value is Stats => isStats(value));

/** Loads the last blocks, newest first. Rejects with MissingStats. */
export const fetchBlocks = async (): Promise<readonly NewBlock[]> =>
  (await fetchStatsFile('runes/v1/blocks.json', (value): value is LatestBlocks => Array.isArray(Object(value)['blocks']))).blocks;

const isStats = (value: unknown): boolean => Array.isArray(Object(value)['activity']) && Array.isArray(Object(value)['runes']);

async function fetchStatsFile<T>(path: string, isRight: (value: unknown) => value is T): Promise<T> {
  try {
    const response = await fetch(new URL(path, BASE));
    // Read in any case: an answer that is left unread keeps its connection.
    const text = await response.text();
    const value: unknown = response.ok ? JSON.parse(text) : undefined;
    if (isRight(value)) return value;
  } catch (error) {
    throw new MissingStats(path, { cause: error });
  }
  throw new MissingStats(path);
}
