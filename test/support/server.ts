/** Starts a real local server on a free port, and sends raw requests to it. */
import { type Agent, type IncomingHttpHeaders, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { createMirrorServer, type ServerSettings } from '../../src/serve/local/server.ts';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The decompressed body. */
  readonly body: string;
}

/** A host under test, with everything that the case table (cases.ts) needs. */
export interface Host {
  /** Sends the target unchanged, without normalisation. */
  send(method: string, target: string, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  close(): Promise<void>;
}

/** A host that listens on this machine. */
export interface LocalHost extends Host {
  readonly port: number;
}

/** Returns a function that sends requests to a server on this machine. Without an agent, each request uses a new connection. */
export function sendTo(port: number, agent: Agent | false = false): Host['send'] {
  return (method, target, headers = {}) =>
    new Promise((resolve, reject) => {
      const outgoing = request({ host: '127.0.0.1', port, method, path: target, headers, agent }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: textOf(Buffer.concat(chunks), response.headers) }),
        );
        response.on('error', reject);
      });
      outgoing.on('error', reject);
      outgoing.end();
    });
}

function textOf(bytes: Buffer, headers: IncomingHttpHeaders): string {
  // A 304 and the answer to HEAD have no body to decompress.
  const encoding = bytes.length === 0 ? undefined : headers['content-encoding'];
  if (encoding === 'gzip') return gunzipSync(bytes).toString('utf8');
  // Cloudflare's engine compresses like this.
  return (encoding === 'br' ? brotliDecompressSync(bytes) : bytes).toString('utf8');
}

export const startServer = async (dir: string, settings: Partial<ServerSettings> = {}): Promise<Listening> =>
  listening(createMirrorServer(dir, settings));

export interface Listening extends LocalHost {
  /** Without a slash at the end. */
  readonly url: string;
}

/** Lets a server listen on a free port of this machine. */
export async function listening(server: Server): Promise<Listening> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    send: sendTo(port),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
