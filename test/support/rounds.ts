/** Counts the reads and rounds of reads of an answer from an archive. */
import { PartCache } from '../../src/format/partCache.ts';
import { answerFromLists } from '../../src/lists/answers.ts';
import type { BuiltSite } from '../../src/pages/mirrorOptions.ts';
import { respond } from '../../src/pages/respond.ts';
import { diskFiles } from './archives.ts';

/** Returns the rounds of reads that wait for each other, the reads, their bytes, and the inflated characters, with nothing in memory but manifest and root. */
export async function readsOf(
  target: string,
  built: BuiltSite,
  out: string,
): Promise<{ rounds: number; reads: number; bytes: number; inflated: number }> {
  const [files, cache] = [diskFiles(out), new PartCache()];
  // An unknown height reads the root.
  await respond('/runes/v1/blocks/16777210/activity', built, files, answerFromLists, cache);
  let [rounds, reads, pending, bytes, inflated] = [0, 0, 0, 0, 0];
  const counted = {
    ...files,
    read: async (...args: Parameters<typeof files.read>) => {
      if (pending === 0) rounds += 1;
      pending += 1;
      reads += 1;
      await new Promise((resolve) => setImmediate(resolve));
      const part = await files.read(...args);
      bytes += part?.length ?? 0;
      pending -= 1;
      return part;
    },
    inflate: async (...args: Parameters<typeof files.inflate>) => {
      const text = await files.inflate(...args);
      inflated += text.length;
      return text;
    },
  };
  await respond(target, built, counted, answerFromLists, cache);
  return { rounds, reads, bytes, inflated };
}
