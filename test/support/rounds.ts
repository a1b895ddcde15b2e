/** Counts the reads and rounds of reads of an answer from an archive. */
import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { PartCache } from '../../src/format/partCache.ts';
import { verifiedRead } from '../../src/format/verifiedRead.ts';
import { answerFromLists } from '../../src/lists/answers.ts';
import { archiveNameOf, archivePath } from '../../src/pages/filePaths.ts';
import type { BuiltSite } from '../../src/pages/mirrorOptions.ts';
import { respond } from '../../src/pages/respond.ts';
import { diskFiles } from './archives.ts';

/** Numbers of an answer: rounds of reads that wait for each other, reads, their bytes, and inflated characters. */
interface Reads {
  readonly rounds: number;
  readonly reads: number;
  readonly bytes: number;
  readonly inflated: number;
}

/**
 * Counts the reads of an answer, with only the manifest and the root in memory. Also checks that a reader that verifies
 * all bytes takes no more rounds.
 */
export async function readsOf(target: string, built: BuiltSite, out: string): Promise<Reads & { readonly verified: Reads }> {
  const reads = await count(target, built, out, false);
  const verified = await count(target, built, out, true);
  expect([target, verified.rounds]).toEqual([target, reads.rounds]);
  return { ...reads, verified };
}

async function count(target: string, built: BuiltSite, out: string, isVerified: boolean): Promise<Reads> {
  const [files, cache, tails] = [diskFiles(out), new PartCache(), new PartCache()];
  let [rounds, reads, pending, bytes, inflated] = [0, 0, 0, 0, 0];
  const read = async (...args: Parameters<typeof files.read>) => {
    if (pending === 0) rounds += 1;
    pending += 1;
    reads += 1;
    await new Promise((resolve) => setImmediate(resolve));
    const part = await files.read(...args);
    bytes += part?.length ?? 0;
    pending -= 1;
    return part;
  };
  const digest = async (part: Uint8Array) => createHash('sha256').update(part).digest();
  const verified = verifiedRead((file, ...part) => read(archivePath(file), ...part), digest, tails);
  const counted: typeof files = {
    ...files,
    read: isVerified ? (path, ...part) => verified(archiveNameOf(path) ?? '', ...part) : read,
    inflate: async (...args) => {
      const text = await files.inflate(...args);
      inflated += text.length;
      return text;
    },
  };
  // A request for an unknown height loads the root into memory.
  await respond('/runes/v1/blocks/16777210/activity', built, counted, answerFromLists, cache);
  [rounds, reads, bytes, inflated] = [0, 0, 0, 0];
  await respond(target, built, counted, answerFromLists, cache);
  return { rounds, reads, bytes, inflated };
}
