/** A host that only serves files, over real sockets. For missing or wrong files, a test can make it answer like certain real hosts. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { listening } from './server.ts';

/** Fault in the answer to a request. */
export type Fault =
  | { readonly kind: 'status'; readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  /** Cuts the connection before the answer, or in its middle. */
  | { readonly kind: 'cut'; readonly after: 'nothing' | 'half' }
  /** Sends half of the body, and then nothing. */
  | { readonly kind: 'silence' }
  | { readonly kind: 'body'; readonly body: string };

export interface PlainFiles {
  /** The URL of the folder, without a slash at its end. */
  readonly base: string;
  /** The folder to serve, which a test may change at any time. */
  folder: string;
  /** Paths of all requests (`runes/v1/...`), in order. */
  readonly asked: string[];
  /** Called for each request with its path and the file, if there is one. Returns true if it has answered. */
  intercept: (path: string, file: Buffer | undefined, response: ServerResponse) => boolean | Promise<boolean>;
  /** Called for each request with its path. Returns the fault to apply. */
  fault: (path: string) => Fault | undefined;
  close(): Promise<void>;
}

function fail(fault: Fault, file: Buffer, response: ServerResponse): void {
  if (fault.kind === 'status') response.writeHead(fault.status, fault.headers).end(fault.body ?? '{"error":"no"}');
  else if (fault.kind === 'body') response.writeHead(200).end(fault.body);
  else if (fault.kind === 'cut' && fault.after === 'nothing') response.socket?.destroy();
  else
    response
      .writeHead(200, { 'content-length': file.length })
      .write(file.subarray(0, file.length / 2), () => fault.kind === 'cut' && response.socket?.destroy());
}

export async function startPlainFiles(folder: string): Promise<PlainFiles> {
  const server = createServer(async (request, response) => {
    const path = new URL(request.url ?? '', 'http://host').pathname.slice(1);
    host.asked.push(path);
    const at = join(host.folder, path);
    const file = existsSync(at) && statSync(at).isFile() ? readFileSync(at) : undefined;
    const fault = host.fault(path);
    if (fault !== undefined) return fail(fault, file ?? Buffer.from('nothing'), response);
    if (await host.intercept(path, file, response)) return;
    response.writeHead(file === undefined ? 404 : 200, { 'content-type': file === undefined ? 'text/html' : 'application/octet-stream' });
    response.end(file ?? '<h1>Not Found</h1>');
  });
  const { url, close } = await listening(server);
  const host: PlainFiles = {
    base: url,
    folder,
    asked: [],
    intercept: () => false,
    fault: () => undefined,
    close,
  };
  return host;
}
