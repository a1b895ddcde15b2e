/** Requests of the explorer to the mirror. */
import type { Stats } from '../../contract/statsSchemas.ts';
import { type FoundRune, findRunes, readSearchFile, type SearchFile } from '../../lists/searchFiles.ts';
import type { Operation } from '../../pages/blockAndTransactionLists.ts';
import { STATS_PATH, statsFilePath } from '../../pages/filePaths.ts';
import { type Activity, Mirror } from '../../serve/client/mirrorClient.ts';
import { BASE } from './settings.ts';

export const mirror = new Mirror(BASE);

/** Fetches the statistics of all blocks. Rejects if they cannot be read. */
export async function fetchStats(): Promise<Stats> {
  const { status, body } = await mirror.get(`/${STATS_PATH}`);
  if (status !== 200) throw new Error(`${STATS_PATH} cannot be read: status ${status}`);
  return JSON.parse(body) as Stats;
}

/** Numbers of records of a block: all, and by operation. */
type BlockCounts = Readonly<Record<Operation | 'records', number>>;

/** Counts of blocks, by hash. Cached, because a block's views with other filters show the same counts. */
const counted = new Map<string, Promise<BlockCounts | undefined>>();

/** Fetches the counts of a block. Undefined if they fail to load or belong to another block of this height. */
export function fetchBlockStats({ block_hash, block_height }: Activity['location']): Promise<BlockCounts | undefined> {
  const counts = counted.get(block_hash) ?? findBlockStats(block_hash, block_height).catch(() => undefined);
  counted.set(block_hash, counts);
  return counts;
}

/** Finds a block in the stats of a hundred heights. Reads them only up to the block, because many runes may follow after the blocks. */
async function findBlockStats(hash: string, height: number): Promise<BlockCounts | undefined> {
  const { body } = await fetch(new URL(statsFilePath(height), BASE));
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  const rule = new RegExp(`{[^{}]*"hash":"${hash}"[^{}]*}`);
  let text = '';
  for (;;) {
    const { done = true, value } = (await reader?.read()) ?? {};
    if (done) return undefined;
    text += value;
    const [entry] = rule.exec(text) ?? [];
    if (entry === undefined) continue;
    await reader?.cancel();
    return JSON.parse(entry) as BlockCounts;
  }
}

const searchFiles = new Map<string, Promise<SearchFile | undefined>>();

/** Finds runes by the first letters of their names, in upper case, oldest first. Keeps files in memory. Rejects if one cannot be read. */
export const findByLetters = (letters: string): Promise<FoundRune[]> =>
  findRunes(letters, (path) => {
    const read = searchFiles.get(path) ?? fetchSearchFile(path);
    searchFiles.set(path, read);
    read.catch(() => searchFiles.delete(path));
    return read;
  });

/** Forgets the search files. Called when the mirror has new data. */
export const forgetSearchFiles = (): void => searchFiles.clear();

/** Undefined if the mirror does not have the file, as no rune has such a name. Object stores may answer 403 for a missing file. */
async function fetchSearchFile(path: string): Promise<SearchFile | undefined> {
  const response = await fetch(new URL(path, BASE));
  const text = await response.text();
  if (response.status === 404 || response.status === 403) return undefined;
  const file = response.ok ? readSearchFile(text) : undefined;
  if (file === undefined) throw new Error(`${path} cannot be read: status ${response.status}`);
  return file;
}
