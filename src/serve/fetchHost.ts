/** The handler (http/handler.ts) for hosts that use Request and Response, such as edge functions and workers. */
import { FormatError } from '../format/formatVersion.ts';
import { hexOf } from '../format/sha256.ts';
import { answerFromLists } from '../lists/answers.ts';
import type { WindowAnswer } from '../pages/envelope.ts';
import { type Files, MissingFileError, type OpenFile } from '../pages/fileAccess.ts';
import { MirrorReader } from '../pages/mirrorReader.ts';
import type { PageAnswer } from '../pages/respond.ts';
import { inflateText, partOf, rangeOf } from './archiveParts.ts';
import { type Asked, type Content, isUnread, type Origin, type Reply, replyTo, unavailable } from './http/handler.ts';
import { etagOfDigest } from './http/headers.ts';
import { isReadByRanges } from './http/ranges.ts';

/**
 * Reads a file of the build by its path (`runes/v1/...`): returns the file server's response, whatever its status. `range` is a Range
 * header, which the file server may ignore.
 */
export type FetchFile = (path: string, range?: string) => Promise<Response>;

type Stream = ReadableStream<Uint8Array> | null;

/** A mirror on top of a file server. Caches the manifest and parts of the archive, so create one per host instance. */
export class FetchMirror implements Origin<Text, Stream> {
  readonly compresses = false;
  readonly #reader: MirrorReader<Text>;

  /**
   * `freshMs` is the time in milliseconds for which a manifest from memory may be used. Give Infinity if the files never change during a
   * deployment. `now` is the clock.
   */
  constructor(
    private readonly fetchFile: FetchFile,
    freshMs: number,
    now = Date.now,
  ) {
    this.#reader = new MirrorReader(filesBehind(fetchFile), answerFromLists, freshMs, false, now);
  }

  /**
   * Answers a request. Answers 503 if a required file stays missing, or if the files have another format version. Rejects if files cannot
   * be read at all, so that the host can use its own fallback.
   */
  async answer(request: Request): Promise<Response> {
    const { method, headers, url } = request;
    // `URL` resolves `..`, but keeps the percent-encoding.
    const { pathname, search } = new URL(url);
    const asked = { method, target: pathname + search, header: (name: string) => headers.get(name) ?? undefined };
    try {
      return responseOf(request, await replyTo(asked, this));
    } catch (error) {
      if (error instanceof MissingFileError) return responseOf(request, unavailable());
      if (error instanceof FormatError) return responseOf(request, unavailable(error.message));
      throw error;
    }
  }

  read({ target }: Asked) {
    return this.#reader.answer(target);
  }

  contentOf(found: PageAnswer<Text> | WindowAnswer): Text {
    return found.kind === 'page' ? found.page : new Text(found.body);
  }

  async file(path: string, range?: string): Promise<Content<Stream> | undefined> {
    const response = await fetched(this.fetchFile, path, range);
    if (response === undefined) return undefined;
    const etag = strongEtag(response);
    if (etag === undefined && !isReadByRanges(path)) return new Text(await response.text());
    const body = { stream: () => response.body, close: () => response.body?.cancel() };
    if (!isReadByRanges(path)) return { body, etag };
    const [length, place] = ['content-length', 'content-range'].map((name) => response.headers.get(name) ?? undefined);
    const part = response.status === 200 ? undefined : { isEmpty: response.status === 416, place };
    return { body, etag, size: length === undefined ? undefined : Number(length), part };
  }
}

export function responseOf({ method }: Request, { status, headers, body }: Reply<Stream>): Response {
  const pairs = Array.from({ length: headers.length / 2 }, (_, i): [string, string] => [headers[2 * i] ?? '', headers[2 * i + 1] ?? '']);
  const sent = method === 'HEAD' || body === undefined ? null : body;
  return new Response(sent !== null && isUnread(sent) ? sent.stream() : (sent as string | null), { status, headers: pairs });
}

/** Text of a file, or of an answer that is made of texts from files. */
class Text implements OpenFile, Content<Stream> {
  constructor(
    readonly body: string,
    private readonly known?: string,
  ) {}

  /** The file server's ETag. Without such an ETag, one that is made from the body. */
  get etag(): string | Promise<string> {
    return this.known ?? etagOf(this.body);
  }

  async text(): Promise<string> {
    return this.body;
  }
}

const etagOf = async (body: string): Promise<string> =>
  etagOfDigest(hexOf(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(body)))));

/** Returns the file server's ETag, made strong: it is weak if the answer was compressed, but the decoded bytes are the same. */
const strongEtag = (file: Response): string | undefined => file.headers.get('etag')?.replace(/^W\//, '');

const filesBehind = (fetchFile: FetchFile): Files<Text> => ({
  open: async (path) => {
    const response = await fetched(fetchFile, path);
    return response && new Text(await response.text(), strongEtag(response));
  },
  read: async (path, offset, length, size) =>
    partOf(path, await (length === size ? fetchFile(path) : fetchFile(path, rangeOf(offset, length))), offset, length),
  inflate: inflateText,
});

/** Reads a file: undefined for a 404. Rejects for any other failure, because then the file may exist. */
async function fetched(fetchFile: FetchFile, path: string, range?: string): Promise<Response | undefined> {
  const response = await fetchFile(path, range);
  if (response.ok || (range !== undefined && response.status === 416)) return response;
  await response.body?.cancel();
  if (response.status === 404) return undefined;
  throw new Error(`${path} was answered with status ${response.status}`);
}
