/** Hosts of files from which the client reads a mirror, and the programs of docs/client.md. */
import { cpSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import handler from 'serve-handler';
import { afterAll, expect } from 'vitest';
import type * as source from '../../src/serve/client/mirrorClient.ts';
import { temporaryFolder, writeFiles } from './build.ts';
import { ROOT } from './cli.ts';
import { blockBelow } from './pages.ts';
import { type Listening, listening, startServer } from './server.ts';

const started: Listening[] = [];

/** Closes all servers of this module after the tests. */
export function closeHosts(): void {
  afterAll(async () => {
    for (const host of started.splice(0)) await host.close();
  });
}

/** Notes a server, so that it is closed. */
async function kept(starting: Promise<Listening>): Promise<Listening> {
  const host = await starting;
  started.push(host);
  return host;
}

/** Starts a static file server with the settings of hosting/files-only. */
async function startFilesOnly(folder: string): Promise<string> {
  const config = JSON.parse(readFileSync(join(ROOT, 'hosting/files-only/serve.json'), 'utf8')) as Parameters<typeof handler>[2];
  return (await kept(listening(createServer((request, response) => handler(request, response, { ...config, public: folder }))))).url;
}

/** Starts the local server, which answers exactly like the API. */
export const startExact = (folder: string): Promise<Listening> => kept(startServer(folder));

/** Kinds of hosts. Each function returns the URL of a build's folder on that host. */
export const HOSTS: Readonly<Record<string, (folder: string) => Promise<string>>> = {
  'npm start': async (folder) => (await startExact(folder)).url,
  'a host of files alone': startFilesOnly,
  'a folder of a host of files alone': async (folder) => `${await startFilesOnly(dirname(folder))}/${basename(folder)}/`,
};

/** Imports the client from a build. */
export const clientIn = async (folder: string): Promise<typeof source> => import(pathToFileURL(join(folder, 'client.js')).href);

/**
 * Writes the program of docs/client.md below a heading into a new folder, beside the client of a build as its package.
 * Replaces some of its texts, each of which it must have once. Returns the path of the program.
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
