/** The client module of a build, and the programs of docs/client.md that use it. */
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'vitest';
import type * as source from '../../src/serve/client/mirrorClient.ts';
import { temporaryFolder, writeFiles } from './build.ts';
import { blockBelow } from './pages.ts';

/** Imports the client from a build. */
export const clientIn = async (folder: string): Promise<typeof source> => import(pathToFileURL(join(folder, 'client.js')).href);

/**
 * Writes the program of docs/client.md below a heading into a new folder, beside the client of a build as its package. Replaces some of its
 * texts, each of which it must have once. Returns the path of the program.
 */
export function exampleBelow(heading: string, build: string, replaced: readonly (readonly [text: string | RegExp, by: string])[]): string {
  const [folder, installed] = [temporaryFolder(), 'node_modules/rune-activity-mirror-client'];
  const program = replaced.reduce(
    (text, [what, by]) => {
      expect(text.split(what)).toHaveLength(2);
      return text.replace(what, by);
    },
    blockBelow('docs/client.md', heading, 'js'),
  );
  writeFiles(folder, { 'example.mjs': program, [`${installed}/package.json`]: '{"type":"module","exports":"./client.js"}' });
  for (const name of ['client.js', 'lists.js', 'pending.js', 'proofs.js']) cpSync(join(build, name), join(folder, installed, name));
  return join(folder, 'example.mjs');
}
