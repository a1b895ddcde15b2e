/** Reads an archive with functions of the web platform, which browsers, Node.js, Deno, Bun and workers share. */

export const rangeOf = (offset: number, length: number): string => `bytes=${offset}-${offset + length - 1}`;

/** Options of a request for a range, or for a complete file. Some hosts compress a range if they may, and Bun cannot decompress it. */
export const requestOf = (range: string | undefined): RequestInit =>
  range === undefined ? {} : { headers: { range, 'accept-encoding': 'identity' } };

/**
 * Returns `length` bytes of a file from `offset` on. `response` answers a request for these bytes, or for the complete file. If the host
 * sends the complete file, cuts the bytes out and does not read the rest. Undefined if the file is missing or shorter. Rejects for any
 * other status, with `path` in the message.
 */
export async function partOf(path: string, response: Response, offset: number, length: number): Promise<Uint8Array | undefined> {
  const { status, headers, body } = response;
  if (status === 200) return bytesOf(body, offset, length);
  // Browsers may hide this header from other origins.
  const place = headers.get('content-range')?.toLowerCase() ?? `bytes ${offset}-`;
  if (status === 206 && place.startsWith(`bytes ${offset}-`)) return bytesOf(body, 0, length);
  await body?.cancel();
  if (status === 404 || status === 416 || status === 206) return undefined;
  throw new Error(`${path} was answered with status ${status}`);
}

async function bytesOf(body: Response['body'], skip: number, length: number): Promise<Uint8Array | undefined> {
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

/** Yields the parts of a stream. Cancels it when the caller stops reading. Not all browsers can iterate over streams. */
async function* partsOf(stream: Response['body']): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = stream?.getReader();
  try {
    for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) yield part.value;
  } finally {
    await reader?.cancel().catch(() => undefined);
  }
}

/** Decodes the text of a stream. Stops reading and throws the error of `tooLong` after more than `most` bytes. */
export async function textOf(body: Response['body'], most: number, tooLong: () => Error, decoder = new TextDecoder()): Promise<string> {
  let [text, bytes] = ['', 0];
  for await (const part of partsOf(body)) {
    bytes += part.length;
    if (bytes > most) throw tooLong();
    text += decoder.decode(part, { stream: true });
  }
  return text + decoder.decode();
}

/** Inflates one gzip member to text. Rejects for invalid bytes, a wrong checksum, or more than `most` bytes. */
export async function inflateText(member: Uint8Array, most: number): Promise<string> {
  const stream = new DecompressionStream('gzip');
  const writer = stream.writable.getWriter();
  // Reading below throws the error of a failed write. Without these handlers, it would also be an unhandled rejection. The cast is safe:
  // TypeScript's DOM types exclude SharedArrayBuffer, and no host uses one.
  writer.write(member as Uint8Array<ArrayBuffer>).catch(() => undefined);
  writer.close().catch(() => undefined);
  const tooLong = () => new Error(`inflates to more than ${most} bytes`);
  // A member is no file of its own, so U+FEFF at its start belongs to its text.
  return textOf(stream.readable, most, tooLong, new TextDecoder('utf-8', { ignoreBOM: true }));
}
