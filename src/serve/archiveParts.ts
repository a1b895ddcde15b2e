/** Reads an archive with functions of the web platform, which browsers, Node.js, Deno, Bun and workers share. */

/** Returns the value of the Range header for these bytes. */
export const rangeOf = (offset: number, length: number): string => `bytes=${offset}-${offset + length - 1}`;

/** Returns the headers of a request for a range. Some hosts compress a range if the client accepts that, and Bun cannot decompress it. */
export const rangeHeaders = (range: string) => ({ range, 'accept-encoding': 'identity' });

/**
 * Returns the bytes `offset` to `offset + length - 1` of a file. `response` is the response to a request for this range, or for the
 * complete file. If the host ignores the range and sends the complete file, cuts the range out and does not read the rest. Undefined if the
 * file is missing or shorter. Rejects for any other status, with `path` in the message.
 */
export async function partOf(path: string, response: Response, offset: number, length: number): Promise<Uint8Array | undefined> {
  const { status } = response;
  if (status === 200) return bytesOf(response, offset, length);
  if (status === 206 && startsAt(response, offset)) return bytesOf(response, 0, length);
  await response.body?.cancel();
  if (status === 404 || status === 416 || status === 206) return undefined;
  throw new Error(`${path} was answered with status ${status}`);
}

/**
 * True if the response begins with the byte at `offset`, by its Content-Range header. Also true without this header, because browsers may
 * hide it from other origins.
 */
function startsAt(response: Response, offset: number): boolean {
  const range = response.headers.get('content-range');
  return range === null || range.toLowerCase().startsWith(`bytes ${offset}-`);
}

async function bytesOf({ body }: Response, skip: number, length: number): Promise<Uint8Array | undefined> {
  const bytes = new Uint8Array(length);
  let at = -skip;
  for await (const part of partsOf(body)) {
    const from = Math.max(-at, 0);
    const to = Math.min(part.length, length - at);
    if (to > from) bytes.set(part.subarray(from, to), at + from);
    at += part.length;
    if (at >= length) return bytes;
  }
  return undefined;
}

/** Yields the parts of a stream. Cancels the stream when the caller stops reading. Not all browsers can iterate over streams. */
async function* partsOf(stream: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = stream?.getReader();
  try {
    for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) yield part.value;
  } finally {
    await reader?.cancel().catch(() => undefined);
  }
}

/** Returns the text of a response. Calls `count` with the size of each part, and stops reading if `count` throws. */
export async function textOf(
  { body }: Pick<Response, 'body'>,
  count: (bytes: number) => void,
  decoder = new TextDecoder(),
): Promise<string> {
  let text = '';
  for await (const part of partsOf(body)) {
    count(part.length);
    text += decoder.decode(part, { stream: true });
  }
  return text + decoder.decode();
}

/** Inflates one gzip member to text. Rejects for invalid bytes, a wrong checksum, or more than `most` bytes. */
export async function inflateText(member: Uint8Array, most: number): Promise<string> {
  const stream = new DecompressionStream('gzip');
  const writer = stream.writable.getWriter();
  // Reading below throws the error of a failed write. Without these handlers, the same error would also be reported as an unhandled
  // rejection. The cast is safe: TypeScript's DOM types exclude SharedArrayBuffer, and no host uses one.
  writer.write(member as Uint8Array<ArrayBuffer>).catch(() => undefined);
  writer.close().catch(() => undefined);
  let length = 0;
  const count = (bytes: number) => {
    length += bytes;
    if (length > most) throw new Error(`inflates to more than ${most} bytes`);
  };
  // A member is no file of its own, so U+FEFF at its start belongs to its text.
  return textOf({ body: stream.readable }, count, new TextDecoder('utf-8', { ignoreBOM: true }));
}
