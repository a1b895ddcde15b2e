/** Looks at the output of a test's build: verification, and the lists of changes. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Progress } from '../../src/cli/progress.ts';
import { verify } from '../../src/verify/verify.ts';
import { RecordingLog } from './build.ts';

/** Verifies an output. Rejects when something in it is wrong. */
export const check = (out: string) => verify(out, new Progress(new RecordingLog(), false));

/** The paths that the last build listed as added or removed. */
export const list = (out: string, name: 'added' | 'removed'): string[] =>
  readFileSync(join(`${out}.cache/changes`, `${name}.txt`), 'utf8')
    .split('\n')
    .filter(Boolean);

/** The API's paths of all lists of a build in layout `files`; of blocks by height and by hash. */
export const activityPaths = (out: string, folders = ['transactions', 'blocks']): string[] =>
  folders.flatMap((folder) =>
    readdirSync(join(out, 'runes/v1', folder))
      .filter((name) => name.endsWith('.json'))
      .map((name) => `/runes/v1/${folder}/${name.slice(0, -5)}/activity`),
  );
