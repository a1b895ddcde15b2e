/** Hosts of files from which the client reads a mirror. */
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import handler from 'serve-handler';
import { afterAll } from 'vitest';
import type * as source from '../../src/serve/client/mirrorClient.ts';
import { ROOT } from './cli.ts';
import { type LocalHost, startServer } from './server.ts';

const servers: Server[] = [];
const started: LocalHost[] = [];

/** Closes all servers of this module after the tests. */
export function closeHosts(): void {
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
