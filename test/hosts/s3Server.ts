/**
 * A small S3 server in memory, with the operations that rclone uses. Like the real one, it stores a complete object or nothing, and
 * requests need the access key, unless reading is public. It believes rclone's signatures. Similar servers on npm write objects in place,
 * so that a reader may find a partial object, and they omit folders from listings.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listening } from '../support/server.ts';

export const ACCESS_KEY = { id: 'test-key', secret: 'test-secret' };
export const BUCKET = 'bucket';

interface StoredObject {
  readonly bytes: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

export interface S3Server {
  readonly port: number;
  /** Stored objects, by key. */
  readonly objects: Map<string, StoredObject>;
  /** Requests so far, as method and key. For a listing: the method, `?` and the query. */
  readonly requests: string[];
  /** Returns the status of an error to answer with, or undefined to let the request pass. May wait first. */
  intercept: (method: string, key: string) => Promise<number | undefined>;
  close(): Promise<void>;
}

/** Number of keys on one page of a listing. It is so low that the listings of the tests have several pages. */
const KEYS_PER_LISTING = 100;

export async function startS3({ isPublic = false }: { readonly isPublic?: boolean } = {}): Promise<S3Server> {
  const objects = new Map<string, StoredObject>();
  const requests: string[] = [];
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      if (!response.headersSent) sendError(response, 500, 'InternalError', String(error));
    });
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request);
    if (body === undefined) return;
    const { method = 'GET', url = '/' } = request;
    const { pathname, searchParams } = new URL(url, 'http://s3');
    const [, bucket = '', key = ''] = /^\/([^/]*)\/?(.*)$/.exec(decodeURIComponent(pathname)) ?? [];
    requests.push(key === '' ? `${method} ?${searchParams}` : `${method} ${key}`);
    const isKnown = request.headers.authorization?.startsWith(`AWS4-HMAC-SHA256 Credential=${ACCESS_KEY.id}/`) === true;
    if (!isKnown && !(isPublic && method === 'GET' && key !== '')) return sendError(response, 403, 'AccessDenied', 'unknown key');
    if (bucket !== BUCKET) return sendError(response, 404, 'NoSuchBucket', bucket);
    const status = await s3.intercept(method, key);
    if (status !== undefined) return sendError(response, status, 'Intercepted', 'made to fail');
    if (key === '') {
      if (method === 'GET') response.writeHead(200, { 'content-type': 'application/xml' }).end(listing(objects, searchParams));
      else sendError(response, 501, 'NotImplemented', `${method} of a bucket`);
      return;
    }
    if (method === 'PUT') {
      put(request, response, key, body);
      return;
    }
    if (method === 'DELETE') {
      objects.delete(key);
      response.writeHead(204).end();
      return;
    }
    const object = objects.get(key);
    if (object === undefined) return sendError(response, 404, 'NoSuchKey', key, method);
    response.writeHead(200, { ...object.headers, 'content-length': object.bytes.length });
    response.end(method === 'HEAD' ? undefined : object.bytes);
  }

  function put(request: IncomingMessage, response: ServerResponse, key: string, bytes: Buffer): void {
    const md5 = createHash('md5').update(bytes);
    const kept = ['content-type', 'cache-control', 'x-amz-meta-mtime'].flatMap((name) => {
      const value = request.headers[name];
      return typeof value === 'string' ? [[name, value] as const] : [];
    });
    const headers = { ...Object.fromEntries(kept), etag: `"${md5.digest('hex')}"`, 'last-modified': new Date().toUTCString() };
    objects.set(key, { bytes, headers });
    response.writeHead(200, { etag: headers.etag }).end();
  }

  const { port, close } = await listening(server);
  const s3: S3Server = {
    port,
    objects,
    requests,
    intercept: () => Promise.resolve(undefined),
    close,
  };
  return s3;
}

/** Returns the complete body of a request, or undefined if the client disconnects before the end. */
async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer);
  } catch {
    return undefined;
  }
  const body = Buffer.concat(chunks);
  return request.complete && body.length === Number(request.headers['content-length'] ?? body.length) ? body : undefined;
}

function sendError(response: ServerResponse, status: number, code: string, message: string, method = 'GET'): void {
  const body = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>${escapeXml(message)}</Message></Error>`;
  response.writeHead(status, { 'content-type': 'application/xml' }).end(method === 'HEAD' ? undefined : body);
}

const escapeXml = (text: string): string => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

/** Answers ListObjects and ListObjectsV2. */
function listing(objects: ReadonlyMap<string, StoredObject>, query: URLSearchParams): string {
  const prefix = query.get('prefix') ?? '';
  const delimiter = query.get('delimiter') ?? '';
  const after = query.get('continuation-token') ?? query.get('marker') ?? query.get('start-after') ?? '';
  const most = Math.min(Number(query.get('max-keys') ?? KEYS_PER_LISTING), KEYS_PER_LISTING);
  const entries: string[] = [];
  let last = after;
  let isTruncated = false;
  for (const key of [...objects.keys()].sort()) {
    const cut = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
    const name = cut < 0 ? key : key.slice(0, cut + delimiter.length);
    if (!key.startsWith(prefix) || name <= last) continue;
    if (entries.length === most) {
      isTruncated = true;
      break;
    }
    last = name;
    const object = objects.get(key);
    if (cut >= 0) entries.push(`<CommonPrefixes><Prefix>${escapeXml(name)}</Prefix></CommonPrefixes>`);
    else if (object !== undefined) {
      const modified = new Date(object.headers['last-modified'] ?? 0).toISOString();
      entries.push(
        `<Contents><Key>${escapeXml(key)}</Key><LastModified>${modified}</LastModified><ETag>${escapeXml(object.headers['etag'] ?? '')}</ETag>` +
          `<Size>${object.bytes.length}</Size><StorageClass>STANDARD</StorageClass></Contents>`,
      );
    }
  }
  const next = isTruncated
    ? `<NextMarker>${escapeXml(last)}</NextMarker><NextContinuationToken>${escapeXml(last)}</NextContinuationToken>`
    : '';
  return (
    `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>${BUCKET}</Name>` +
    `<Prefix>${escapeXml(prefix)}</Prefix><MaxKeys>${most}</MaxKeys><IsTruncated>${isTruncated}</IsTruncated>${next}${entries.join('')}</ListBucketResult>`
  );
}
