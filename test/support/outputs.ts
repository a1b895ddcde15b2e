/** Checks the output of a test build: verification, and what a build changed. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect } from 'vitest';
import { Progress } from '../../src/cli/progress.ts';
import { ENCODINGS } from '../../src/pages/mirrorOptions.ts';
import { verify } from '../../src/verify/verify.ts';
import { filesBelow, RecordingLog } from './build.ts';
import { TEST_LIMITS } from './limits.ts';

/** Verifies an output. Rejects if verification finds a fault. */
export const check = (out: string) => verify(out, new Progress(new RecordingLog(), false), undefined, TEST_LIMITS);

/** Returns the paths of files that are new or have other bytes in the tree `after` (build.ts) than in `before`. */
export const addedTo = (before: Readonly<Record<string, string>>, after: Readonly<Record<string, string>>): string[] =>
  Object.keys(after).filter((path) => before[path] !== after[path]);

/** Returns the API's paths of all lists of a build in layout `files`. Blocks occur by height and by hash. */
export const activityPaths = (out: string, folders = ['transactions', 'blocks']): string[] =>
  folders.flatMap((folder) =>
    readdirSync(join(out, 'runes/v1', folder))
      .filter((name) => name.endsWith('.json'))
      .map((name) => `/runes/v1/${folder}/${name.slice(0, -5)}/activity`),
  );

/** True for the path of a page of a list. */
export const isPage = (path: string) => /^runes\/v1\/(?:blocks|transactions)\/.*[.]json$/.test(path);

const UNPACK = { br: brotliDecompressSync, gz: gunzipSync };

/**
 * Checks that each page with three or more records has a compressed file in each encoding, and that no other file has
 * one.
 */
export function expectCompressedPages(out: string): void {
  const all = filesBelow(out);
  const bytes = (path: string) => readFileSync(join(out, path));
  const records = (path: string) => (JSON.parse(bytes(path).toString()) as { results?: unknown[] }).results?.length ?? 0;
  const pages = all.filter((path) => isPage(path) && records(path) >= 3);
  expect(pages.length).toBeGreaterThan(100);
  expect(all.filter((path) => /[.](?:br|gz)$/.test(path)).sort()).toEqual(
    pages.flatMap((path) => ENCODINGS.map((e) => `${path}.${e}`)).sort(),
  );
  for (const path of pages) {
    const page = bytes(path);
    for (const encoding of ENCODINGS) {
      const compressed = bytes(`${path}.${encoding}`);
      expect(UNPACK[encoding](compressed).equals(page), path).toBe(true);
      expect(compressed.length).toBeLessThan(page.length / 2);
    }
  }
}
