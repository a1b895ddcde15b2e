/** Tests the client module with the files of every kind of host. */
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import handler from 'serve-handler';
import { afterAll, describe, expect, it } from 'vitest';
import type { Dialect, Layout } from '../../src/pages/mirrorOptions.ts';
import type * as source from '../../src/serve/client/mirrorClient.ts';
import { ROOT } from './cli.ts';
import { recordedOutput } from './recorded.ts';
import { type LocalHost, startServer } from './server.ts';
import { judge, readVectors } from './vectors.ts';

const servers: Server[] = [];
const started: LocalHost[] = [];

/** Closes all servers of this module after the tests. */
function closeHosts(): void {
  afterAll(async () => {
    for (const host of started.splice(0)) await host.close();
    for (const server of servers.splice(0)) server.close().closeAllConnections();
  });
}

/** Starts a static file server with the settings of hosting/files-only. */
async function startFilesOnly(folder: string): Promise<string> {
  const config = JSON.parse(readFileSync(join(ROOT, 'hosting/files-only/serve.json'), 'utf8')) as Parameters<typeof handler>[2];
  const server = createServer((request, response) => handler(request, response, { ...config, public: folder }));
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Starts the local server, which answers exactly like the API. */
export async function startExact(folder: string): Promise<LocalHost> {
  const host = await startServer(folder);
  started.push(host);
  return host;
}

/** Kinds of hosts. Each function returns the URL of a build's folder on that host. */
export const HOSTS: Readonly<Record<string, (folder: string) => Promise<string>>> = {
  'npm start': async (folder) => `http://127.0.0.1:${(await startExact(folder)).port}`,
  'a host of files alone': startFilesOnly,
  'a folder of a host of files alone': async (folder) => `${await startFilesOnly(dirname(folder))}/${basename(folder)}/`,
};

/** Imports the client from a build. */
export const clientIn = async (folder: string): Promise<typeof source> => import(pathToFileURL(join(folder, 'client.js')).href);

/** The recorded GET requests without conditional requests: fetch() handles conditions, not the client. */
const vectors = readVectors().filter(
  ({ method, path, request_headers = {} }) => method === 'GET' && path.startsWith('/runes') && !('If-None-Match' in request_headers),
);

/**
 * The local server's answers to the recorded requests, by folder of the build. The client must give the same answers.
 */
const exactAnswers = new Map<string, readonly string[]>();

async function exactAnswersOf(folder: string): Promise<readonly string[]> {
  const known = exactAnswers.get(folder);
  if (known !== undefined) return known;
  const exact = await startExact(folder);
  const answers: string[] = [];
  for (const { path } of vectors) answers.push((await exact.send('GET', path)).body);
  exactAnswers.set(folder, answers);
  return answers;
}

/**
 * Tests the client of a build with all recorded GET requests. The client reads the build's files from each of these
 * hosts.
 */
export function describeRecorded(hosts: readonly (readonly [host: string, layout: Layout, dialect: Dialect])[]): void {
  closeHosts();

  describe.each(hosts)('from the files of %s in layout %s and dialect %s', (name, layout, dialect) => {
    it('every recorded GET is answered as recorded, or as a rule of vectors.ts decides', async () => {
      expect(vectors).toHaveLength(667);
      const folder = await recordedOutput(layout, dialect);
      const base = (await HOSTS[name]?.(folder)) ?? '';
      const exact = await exactAnswersOf(folder);
      const mirror = new (await clientIn(folder)).Mirror(base);
      const wrong: string[] = [];
      for (const [i, vector] of vectors.entries()) {
        const answer = await mirror.get(vector.path);
        if (answer.body !== exact[i]) wrong.push(`${vector.path} is not as of npm start`);
        // The requests were recorded in dialect hiro.
        const { problems } = dialect === 'hiro' ? judge(vector, { ...answer, headers: {} }) : { problems: [] };
        if (problems.length > 0) wrong.push(`line ${vector.line} ${vector.path}: ${problems.join('; ')}`);
      }
      expect(wrong).toEqual([]);
    });
  });
}
