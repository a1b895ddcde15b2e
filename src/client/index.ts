/**
 * The page map for browsers and other programs: answers of the API, exactly as its servers give them, from the files of a mirror on any host, also one
 * without code. `client.js` of every build is this module.
 *
 * The types stand here alone and by themselves, so that `client.d.ts` is one file without imports.
 */
import { errorBody, notFound, RETRY_LATER } from '../http/errors.ts';
import { MirrorReader } from '../pages/reader.ts';
import { MissingFileError } from '../pages/respond.ts';
import { isBuiltFile } from '../pages/siteFiles.ts';
import { filesAt, type MirrorFiles, type ReadFile, UnreadableError } from './files.ts';

/** What a record says that happened to a rune. */
export type Operation = 'etching' | 'mint' | 'burn' | 'send' | 'receive';

/** One thing that happened to a rune. Hashes begin with `0x` in dialect `contract`, and not in `hiro`. */
export interface Activity {
  readonly rune: { readonly id: string; readonly number: number; readonly name: string; readonly spaced_name: string };
  readonly address?: string;
  readonly receiver_address?: string;
  /** A decimal number of whole runes, with as many decimals as the rune has. Too large for `Number`. */
  readonly amount?: string;
  readonly operation: Operation;
  readonly location: {
    readonly block_hash: string;
    readonly block_height: number;
    readonly tx_id: string;
    readonly tx_index: number;
    readonly vout?: number;
    /** The output as hex; in dialect `hiro` with its index, `txid:vout`. */
    readonly output?: string;
    /** Seconds since 1970. */
    readonly timestamp: number;
  };
}

/** A window of a list: `results` are the records from number `offset` on, at most `limit`, of `total`. */
export interface ActivityPage {
  readonly limit: number;
  readonly offset: number;
  /** 0 for an id that the mirror does not have. */
  readonly total: number;
  readonly results: readonly Activity[];
}

/** What a mirror holds: `runes/v1/manifest.json`. */
export interface MirrorManifest {
  readonly generator: 'rune-activity-mirror';
  readonly version: string;
  readonly layout: 'files' | 'packed';
  readonly dialect: 'contract' | 'hiro';
  /** Ascending; the first is the default limit, the last the largest. */
  readonly page_sizes: readonly number[];
  /** Whether blocks can be asked for by operation. */
  readonly operation_pages: boolean;
  readonly compress?: readonly ('br' | 'gz')[];
  /** The public address of the mirror, with a slash at its end, when its build was told. */
  readonly site_url?: string;
  /** Whether all records lie in `activity/` as Parquet files too. */
  readonly parquet?: true;
  readonly transaction_prefix?: number;
  /** Runs of consecutive heights with activity, both ends included. */
  readonly heights: readonly (readonly [first: number, last: number])[];
  readonly blocks: number;
  readonly transactions: number;
  readonly records: number;
  /** Ledger rows of the input that are in no answer, because their rune is not in its runes table. `runes` names up to 20 of their runes. */
  readonly left_out?: { readonly rows: number; readonly runes: readonly string[]; readonly more_runes: number };
  readonly files: number;
  readonly bytes: number;
  /** 64 hex digits: two mirrors with the same digest hold the same data. */
  readonly digest: string;
}

/** A window of a mirror's list. Exactly one of `transaction` and `block` is given. */
export interface MirrorQuery {
  /** 64 hex digits, with or without `0x`. */
  readonly transaction?: string | undefined;
  /** A height, or a hash as 64 hex digits, with or without `0x`. */
  readonly block?: string | number | undefined;
  /** In records; 0 unless given. */
  readonly offset?: number | undefined;
  /** 1 to the mirror's largest page size; its smallest page size unless given. */
  readonly limit?: number | undefined;
  /** Of a block, only these records. A transaction's list has all of them, whatever this says. */
  readonly operation?: Operation | undefined;
  /** Ends the waiting; the promise then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface ActivityQuery extends MirrorQuery {
  /** The address before `/runes/v1`, with or without a slash at its end; in a browser it may be relative to the page. */
  readonly base: string | URL;
}

export interface MirrorOptions {
  /** Another way to fetch, such as one that sends a key. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /**
   * How long the manifest and the index of layout `packed` may be used from memory, in milliseconds: 10,000 unless given. A block or transaction that is
   * new to a mirror of layout `packed` may be unknown for so long.
   */
  readonly freshMs?: number | undefined;
}

/** Why there is no answer. */
export class MirrorError extends Error {
  override readonly name = 'MirrorError';
  /** 400 when the request is wrong (`message` is the API's own); 503 when the mirror cannot be read, now or at all (`cause` may tell more). */
  readonly statusCode: number;
  /** The status in words: `Bad Request`, `Service Unavailable`. */
  readonly error: string;
  constructor(statusCode: number, error: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.statusCode = statusCode;
    this.error = error;
  }
}

const FRESH_MS = 10_000;
const mirrors = new Map<string, Mirror>();

/**
 * A window of a transaction's or a block's activity. Rejects with a MirrorError, with a TypeError for a query that names no list or no address, and with
 * the signal's reason. Queries of one base share a Mirror, and so what is in its memory.
 */
export async function activity({ base, ...query }: ActivityQuery): Promise<ActivityPage> {
  const { href } = folderOf(base);
  const mirror = mirrors.get(href) ?? new Mirror(href);
  mirrors.set(href, mirror);
  return mirror.activity(query);
}

/**
 * A mirror, by the address before `/runes/v1`. Only its files are fetched, so its host needs no code; it must let this origin read them (CORS). What is
 * read is asked for again each time (`cache: 'no-cache'`), but for the manifest and the index while they are fresh.
 *
 * In layout `packed` all that goes into an answer is of one build. In layout `files` a window that is no page is cut out of two; while the host is
 * replacing its files, or has a cache that mixes builds, pages of two builds cannot always be told apart: a correction that changes neither the
 * number of records nor the block is seen in one and not in the other.
 */
export class Mirror {
  readonly #filesFor: (signal?: AbortSignal) => MirrorFiles;
  readonly #reader: MirrorReader<ReadFile>;

  /** Throws a TypeError when `base` is no address. */
  constructor(base: string | URL, { fetch = globalThis.fetch, freshMs = FRESH_MS }: MirrorOptions = {}) {
    const folder = folderOf(base);
    this.#filesFor = (signal) => filesAt(folder, fetch, signal);
    this.#reader = new MirrorReader(this.#filesFor(), freshMs, true);
  }

  /** A window of a transaction's or a block's activity; see `activity`. */
  async activity(query: MirrorQuery): Promise<ActivityPage> {
    const { status, body, cause } = await this.#answer(targetOf(query), query.signal);
    if (status === 200) return JSON.parse(body) as ActivityPage;
    const { error, message } = JSON.parse(body) as { error: string; message: string };
    throw new MirrorError(status, error, cause === undefined ? message : `${message} (${cause.message})`, cause && { cause });
  }

  /**
   * The status and the body, to the byte, that a server of the API gives for GET of a request target, such as
   * `/runes/v1/blocks/840000/activity?limit=5` or `/runes/v1/manifest.json`. Where that is 400, 404 or 503 it is no error here. Rejects with a
   * MirrorError when the mirror cannot be read at all.
   */
  async get(target: string, signal?: AbortSignal): Promise<{ status: number; body: string }> {
    const { status, body } = await this.#answer(target, signal);
    return { status, body };
  }

  /** What the mirror holds. Rejects with a MirrorError. */
  async manifest(): Promise<MirrorManifest> {
    return JSON.parse(await this.#orMirrorError(this.#reader.manifest(), undefined)) as MirrorManifest;
  }

  async #answer(target: string, signal: AbortSignal | undefined): Promise<{ status: number; body: string; cause?: Error }> {
    try {
      return await this.#orMirrorError(this.#read(target, signal), signal);
    } catch (error) {
      if (error instanceof MissingFileError) return { ...errorBody(503, RETRY_LATER), cause: error };
      throw error;
    }
  }

  async #read(target: string, signal: AbortSignal | undefined): Promise<{ status: number; body: string }> {
    signal?.throwIfAborted();
    const files = this.#filesFor(signal);
    const answer = await this.#reader.answer(target, files);
    if (answer.kind === 'page') return { status: 200, body: answer.page.content };
    if (answer.kind === 'window') return { status: 200, body: answer.body };
    if (answer.kind === 'refusal') return errorBody(400, answer.message);
    const path = /^\/(runes\/[^?]*)/.exec(target)?.[1] ?? '';
    const body = isBuiltFile(path) ? await files.file(path) : undefined;
    return body === undefined ? notFound('GET', target) : { status: 200, body };
  }

  /** Waits no longer than `signal` allows, and turns errors of reading into those that are for others. */
  async #orMirrorError<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    try {
      return await (signal === undefined ? work : unlessAborted(work, signal));
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (error instanceof MissingFileError || !(error instanceof Error)) throw error;
      const { message, cause } = error instanceof UnreadableError ? error : { message: error.message, cause: error };
      throw new MirrorError(503, 'Service Unavailable', message, { cause });
    }
  }
}

/** The address that files are below. */
function folderOf(base: string | URL): URL {
  const page = (globalThis as { location?: { href: string } }).location?.href;
  const url = parseUrl(base, page);
  if (url === undefined) throw new TypeError(`${base} is no address of a mirror, such as https://example.org/mirror`);
  url.search = '';
  url.hash = '';
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}

/** As `URL.parse`, which is too new. */
function parseUrl(url: string | URL, base: string | undefined): URL | undefined {
  try {
    return new URL(url, base);
  } catch {
    return undefined;
  }
}

function targetOf({ transaction, block, offset, limit, operation }: MirrorQuery): string {
  if ((transaction === undefined) === (block === undefined)) throw new TypeError('a query names either a transaction or a block');
  const query = Object.entries({ offset, limit, operation_type: operation })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encode(String(value))}`);
  const list = block === undefined ? `transactions/${encode(String(transaction))}` : `blocks/${encode(String(block))}`;
  return `/runes/v1/${list}/activity${query.length === 0 ? '' : `?${query.join('&')}`}`;
}

/** As a part of a target. Halves of characters, which cannot be encoded, become what stands for such. */
const encode = (text: string): string => encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\ufffd'));

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
