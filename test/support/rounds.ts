/** Counts the reads from an archive for an answer, and the rounds of reads. */
import { createHash } from 'node:crypto';
import { expect, vi } from 'vitest';
import { PartCache } from '../../src/format/partCache.ts';
import { verifiedRead } from '../../src/format/verifiedRead.ts';
import { answerFromLists } from '../../src/lists/answers.ts';
import { archiveNameOf, archivePath } from '../../src/pages/filePaths.ts';
import type { BuiltSite } from '../../src/pages/mirrorOptions.ts';
import { respond } from '../../src/pages/respond.ts';
import { diskFiles } from './archives.ts';

/**
 * Counts for one answer. All reads that run at the same time are one round. `inflated` is the number of decompressed characters, and
 * `parsed` the number of parsed values, those of directories included.
 */
interface Reads {
  readonly rounds: number;
  readonly reads: number;
  readonly bytes: number;
  readonly inflated: number;
  readonly parsed: number;
}

/**
 * Counts the reads for an answer when only the manifest and the root are in memory. `verified` has the counts of a reader that verifies all
 * bytes. It must need the same number of rounds.
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
  // Loads the root into memory. The mirror has no block of this height, so the request reads no other file.
  await respond('/runes/v1/blocks/16777210/activity', built, counted, answerFromLists, cache);
  [rounds, reads, bytes, inflated] = [0, 0, 0, 0];
  const parse = vi.spyOn(JSON, 'parse');
  await respond(target, built, counted, answerFromLists, cache);
  const parsed = parse.mock.calls.length;
  parse.mockRestore();
  return { rounds, reads, bytes, inflated, parsed };
}
