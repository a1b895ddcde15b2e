/** Checks the output of a test build: verification, and what a build changed. */
import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Progress } from '../../src/cli/progress.ts';
import { verify } from '../../src/verify/verify.ts';
import { RecordingLog, temporaryFolder } from './build.ts';
import { TEST_LIMITS } from './limits.ts';

/** Verifies an output. Rejects if verification finds a fault. */
export const check = (out: string) => verify(out, new Progress(new RecordingLog(), false), undefined, TEST_LIMITS);

/** Returns a copy of an output that a test may damage. */
export function copyOf(dist: string): string {
  const copy = join(temporaryFolder(), 'copy');
  cpSync(dist, copy, { recursive: true });
  return copy;
}

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
