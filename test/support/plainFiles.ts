/**
 * A host that only serves files, over real sockets. For missing or wrong files, a test can make it answer like certain
 * real hosts.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

export interface PlainFiles {
  /** The URL of the folder, without a slash at its end. */
  readonly base: string;
  /** The folder to serve, which a test may change at any time. */
  folder: string;
  /** Paths of all requests (`runes/v1/...`), in order. */
  readonly asked: string[];
  /** Called for each request with its path and the file, if there is one. Returns true if it has answered. */
  intercept: (path: string, file: Buffer | undefined, response: ServerResponse) => boolean | Promise<boolean>;
  close(): Promise<void>;
}

export async function startPlainFiles(folder: string): Promise<PlainFiles> {
  const server = createServer(async (request, response) => {
    const path = new URL(request.url ?? '', 'http://host').pathname.slice(1);
    host.asked.push(path);
    const at = join(host.folder, path);
    const file = existsSync(at) && statSync(at).isFile() ? readFileSync(at) : undefined;
    if (await host.intercept(path, file, response)) return;
    response.writeHead(file === undefined ? 404 : 200, { 'content-type': file === undefined ? 'text/html' : 'application/octet-stream' });
    response.end(file ?? '<h1>Not Found</h1>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host: PlainFiles = {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    folder,
    asked: [],
    intercept: () => false,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return host;
}
