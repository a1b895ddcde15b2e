/**
 * The client module, `client.js` of every build: runs the page map (pages/respond.ts) on the files of any host, even one without code, and
 * returns exactly the answers of an API server. `client.d.ts` documents the exports.
 */
import { messageOf } from '../../errors.ts';
import { MissingFileError, type OpenFile } from '../../pages/fileAccess.ts';
import { isApiFile } from '../../pages/fileKinds.ts';
import { MirrorReader } from '../../pages/mirrorReader.ts';
import type { AnswerFromLists } from '../../pages/optionalEndpoints.ts';
import { type ErrorStatus, errorBody, notFound, REASONS, RETRY_LATER, refusalBody } from '../http/errorBodies.ts';
import type {
  ActivityPage,
  ActivityQuery,
  BalancePage,
  Cancellable,
  Change,
  ChangesQuery,
  ClassifiedOutput,
  Etching,
  EtchingPage,
  Holder,
  HolderPage,
  MirrorManifest,
  MirrorOptions,
  MirrorQuery,
  OutputAnswer,
  OutputClass,
  OutputPage,
  OutputToClassify,
  Page,
  PendingAnswer,
  PendingQuery,
  RuneActivityPage,
  RuneActivityQuery,
  RuneName,
  WindowQuery,
} from './client.d.ts';
import { filesAt, type MirrorFiles, UnreadableError, unlessAborted } from './clientFiles.ts';
import { later } from './later.ts';
import type { Proofs } from './proofs.ts';

export type * from './client.d.ts';

export class MirrorError extends Error {
  override readonly name = 'MirrorError';
  readonly statusCode: number;
  readonly error: string;
  constructor(statusCode: number, error: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.statusCode = statusCode;
    this.error = error;
  }
}

/** Thrown for an argument that the caller has to correct. Unlike other errors in the middle of an answer, it does not become a MirrorError. */
class ArgumentError extends TypeError {}

const failed = (status: ErrorStatus, message: string, cause?: unknown): MirrorError =>
  new MirrorError(status, REASONS[status], message, { cause });

const fromLists: AnswerFromLists = async (request, dialect, archive, readTransaction) =>
  (await later.lists()).answerFromLists(request, dialect, archive, readTransaction);

/** Returns a function that wraps files, so that each read is checked against the operator's signature. The first loads proofs.js. */
function proverOf(options: MirrorOptions): (files: MirrorFiles) => MirrorFiles {
  let proofs: Proofs | undefined;
  return (files) => {
    let proven: MirrorFiles | undefined;
    const load = async () => {
      const bundle = await later.proofs();
      try {
        proofs ??= new bundle.Proofs(options);
      } catch (error) {
        throw new ArgumentError(`keys: ${messageOf(error)}`, { cause: error });
      }
      proven ??= proofs.over(files);
      return proven;
    };
    return {
      open: async (path) => (await load()).open(path),
      file: async (path, sha256) => (await load()).file(path, sha256),
      read: async (path, offset, length, size) => (await load()).read(path, offset, length, size),
      inflate: files.inflate,
    };
  };
}

const FRESH_MS = 10_000;
const mirrors = new Map<string, Mirror>();

export async function activity({ base, ...query }: ActivityQuery): Promise<ActivityPage> {
  const { href } = folderOf(base);
  const mirror = mirrors.get(href) ?? new Mirror(href);
  mirrors.set(href, mirror);
  return mirror.activity(query);
}

const MOST_OUTPUTS = 1000;

export async function classify(
  mirrors: readonly Mirror[],
  outputs: readonly OutputToClassify[],
  options: Cancellable = {},
): Promise<ClassifiedOutput[]> {
  if (mirrors.length === 0) throw new TypeError('classify needs at least one mirror');
  const answers = await Promise.all(mirrors.map((mirror) => mirror.classify(outputs, options)));
  return outputs.map(({ outpoint }, i): ClassifiedOutput => {
    const all = answers.flatMap((one) => one[i] ?? []);
    const [first] = all;
    const doubtful = all.find(({ kind }) => kind === 'unknown');
    if (doubtful !== undefined) return doubtful;
    if (first !== undefined && all.every((one) => JSON.stringify(one) === JSON.stringify(first))) return first;
    return { outpoint, kind: 'unknown', reason: `the mirrors do not agree: ${all.map(({ kind }) => kind).join(', ')}` };
  });
}

export class Mirror {
  readonly #filesFor: (signal?: AbortSignal) => MirrorFiles;
  readonly #reader: MirrorReader<OpenFile>;

  constructor(base: string | URL, options: MirrorOptions = {}) {
    const { fetch = globalThis.fetch, freshMs = FRESH_MS, timeoutMs } = options;
    const folder = folderOf(base);
    checkOptions(options);
    const prove = options.keys === undefined ? undefined : proverOf(options);
    // Calls share reads only if the same signal aborts them (clientFiles.ts).
    const shared = new WeakMap<AbortSignal, MirrorFiles>();
    this.#filesFor = (signal) => {
      const files = (signal && shared.get(signal)) ?? filesAt(folder, fetch, signal, timeoutMs);
      if (signal !== undefined) shared.set(signal, files);
      return prove?.(files) ?? files;
    };
    this.#reader = new MirrorReader(this.#filesFor(), fromLists, freshMs, true);
  }

  async activity(query: MirrorQuery): Promise<ActivityPage> {
    return this.#fetch(targetOf(query), query.signal);
  }

  async etchings(window?: WindowQuery): Promise<EtchingPage> {
    return this.#list('etchings', window);
  }

  async etching(rune: string | number, signal?: AbortSignal): Promise<Etching | undefined> {
    return this.#find(`etchings/${encode(rune, 'rune')}`, signal);
  }

  async balances(address: string, window?: WindowQuery): Promise<BalancePage> {
    return this.#list(`addresses/${encode(address, 'address')}/balances`, window);
  }

  async holders(rune: string | number, window?: WindowQuery): Promise<HolderPage> {
    return this.#list(`etchings/${encode(rune, 'rune')}/holders`, window);
  }

  async holder(rune: string | number, address: string, signal?: AbortSignal): Promise<Holder | undefined> {
    return this.#find(`etchings/${encode(rune, 'rune')}/holders/${encode(address, 'address')}`, signal);
  }

  async output(output: string, { height, signal }: Cancellable & { readonly height?: number | undefined } = {}): Promise<OutputAnswer> {
    // Electrum servers give unconfirmed outputs the height 0 or -1, and a mirror knows nothing about these outputs.
    if (height !== undefined && !(Number.isSafeInteger(height) && height > 0))
      throw failed(400, `${height} is not the height of an output's block`);
    const answer = await this.#fetch<OutputAnswer>(`/runes/v1/outputs/${encode(output, 'output')}`, signal);
    if (height === undefined || height <= answer.block_height) return answer;
    throw failed(503, `the mirror has blocks up to ${answer.block_height}, so it does not know an output of block ${height}`);
  }

  async classify(outputs: readonly OutputToClassify[], { signal }: Cancellable = {}): Promise<ClassifiedOutput[]> {
    if (!Array.isArray(outputs)) throw new TypeError('outputs must be a list');
    if (outputs.length > MOST_OUTPUTS) throw new TypeError(`classify takes up to ${MOST_OUTPUTS} outputs, but got ${outputs.length}`);
    let classes: readonly OutputClass[] | string;
    try {
      signal?.throwIfAborted();
      const { classifyOutputs, groupedReads } = await later.lists();
      const classified = this.#reader.withLists('outputs', groupedReads(this.#filesFor(signal)), (archive, readTransaction) =>
        classifyOutputs(outputs, archive, readTransaction),
      );
      classes = await unlessAborted(classified, signal);
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      classes = messageOf(error);
    }
    const unknown = { kind: 'unknown', reason: typeof classes === 'string' ? classes : 'the mirror did not answer' } as const;
    return outputs.map(({ outpoint }, i) => ({ outpoint, ...((typeof classes === 'string' ? undefined : classes[i]) ?? unknown) }));
  }

  async *all<Entry>(
    list: (window: WindowQuery) => Promise<Page<Entry>>,
    { signal }: Cancellable = {},
  ): AsyncGenerator<Entry, void, undefined> {
    const { allEntries } = await this.#orMirrorError(later.lists(), signal);
    yield* allEntries(list, () => this.manifest(), failed, signal);
  }

  async outputs(address: string, window?: WindowQuery): Promise<OutputPage> {
    return this.#list(`addresses/${encode(address, 'address')}/outputs`, window);
  }

  async runeActivity(rune: string | number, { address, ...window }: RuneActivityQuery = {}): Promise<RuneActivityPage> {
    const only = address === undefined ? '' : `/${encode(address, 'address')}`;
    return this.#list(`etchings/${encode(rune, 'rune')}/activity${only}`, window);
  }

  async addressActivity(address: string, window?: WindowQuery): Promise<ActivityPage> {
    return this.#list(`addresses/${encode(address, 'address')}/activity`, window);
  }

  /** Fetches a window of the list at a path below `/runes/v1/`. */
  async #list<Answer>(path: string, { signal, ...window }: WindowQuery = {}): Promise<Answer> {
    return this.#fetch(`/runes/v1/${path}${queryOf({ ...window })}`, signal);
  }

  /** Fetches the object at such a path: undefined for a 404. */
  async #find<Answer>(path: string, signal: AbortSignal | undefined): Promise<Answer | undefined> {
    return this.#fetch<Answer>(`/runes/v1/${path}`, signal).catch((error: unknown) => {
      if (error instanceof MirrorError && error.statusCode === 404) return undefined;
      throw error;
    });
  }

  /** Returns the parsed body of a 200. Rejects with a MirrorError for any other answer. */
  async #fetch<Answer>(target: string, signal: AbortSignal | undefined): Promise<Answer> {
    const { status, body } = await this.#orMirrorError(this.#answer(target, signal), signal);
    if (status === 200) return parseExactly(body);
    const { error, message = error } = JSON.parse(body) as { error: string; message?: string };
    throw new MirrorError(status, error, message);
  }

  async pending(query: PendingQuery): Promise<PendingAnswer> {
    const { pendingRunes } = await this.#orMirrorError(later.pending(), query.signal);
    return pendingRunes(query, this);
  }

  async *changes(query: ChangesQuery = {}): AsyncGenerator<Change, void, undefined> {
    const { signal } = query;
    const { followChanges } = await this.#orMirrorError(later.lists(), signal);
    const files = this.#filesFor(signal);
    const manifest = async () => JSON.parse(await this.#reader.manifest(true)) as MirrorManifest;
    yield* this.#steps(followChanges(query, { manifest, file: files.file, failed }), signal);
  }

  async *runes({ signal }: Cancellable = {}): AsyncGenerator<RuneName, void, undefined> {
    signal?.throwIfAborted();
    const { openRuneNames } = await this.#orMirrorError(later.lists(), signal);
    const opening = this.#reader.withLists('etchings', this.#filesFor(signal), openRuneNames);
    const parts = async function* () {
      const opened = await opening;
      if (typeof opened === 'string') throw failed(501, opened);
      yield* opened();
    };
    for await (const part of this.#steps(parts(), signal)) yield* part;
  }

  /** Yields what `steps` yields. Its errors become MirrorErrors. */
  async *#steps<T>(steps: AsyncGenerator<T, void, undefined>, signal: AbortSignal | undefined): AsyncGenerator<T, void, undefined> {
    for (;;) {
      const { done, value } = await this.#orMirrorError(steps.next(), signal);
      if (done) return;
      yield value;
    }
  }

  async get(target: string, signal?: AbortSignal): Promise<{ status: number; body: string }> {
    const answer = this.#answer(target, signal).catch((error: unknown) => {
      if (error instanceof MissingFileError) return errorBody(503, RETRY_LATER);
      throw error;
    });
    return this.#orMirrorError(answer, signal);
  }

  async manifest(): Promise<MirrorManifest> {
    return JSON.parse(await this.#orMirrorError(this.#reader.manifest(), undefined)) as MirrorManifest;
  }

  async #answer(target: string, signal: AbortSignal | undefined): Promise<{ status: number; body: string }> {
    signal?.throwIfAborted();
    const files = this.#filesFor(signal);
    const answer = await this.#reader.answer(target, files);
    if (answer.kind === 'page') return { status: 200, body: await answer.page.text() };
    if (answer.kind === 'window') return { status: 200, body: answer.body };
    if (answer.kind === 'refusal') return refusalBody(answer);
    const path = /^\/(runes\/[^?]*)/.exec(target)?.[1] ?? '';
    const body = isApiFile(path) ? await files.file(path) : undefined;
    return body === undefined ? notFound('GET', target) : { status: 200, body };
  }

  /** Waits for `work`, unless `signal` aborts first. Converts errors of reading files to a MirrorError. */
  async #orMirrorError<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    try {
      return await unlessAborted(work, signal);
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (error instanceof MirrorError || error instanceof ArgumentError || !(error instanceof Error)) throw error;
      if (error instanceof MissingFileError)
        throw failed(503, `${RETRY_LATER}, and if this lasts, tell its operator (${error.message})`, error);
      throw failed(503, error.message, error instanceof UnreadableError ? error.cause : error);
    }
  }
}

/** Throws a TypeError that names the first malformed option. Malformed keys are found when proofs.js is loaded. */
function checkOptions({ keys, remember, ...options }: MirrorOptions): void {
  for (const name of ['freshMs', 'timeoutMs', 'maxAge'] as const) {
    const value = options[name];
    if (value !== undefined && !(typeof value === 'number' && value >= 0))
      throw new TypeError(`${name} must be a number of milliseconds, not ${value}`);
  }
  if (keys !== undefined && !(Array.isArray(keys) && keys.every((key) => typeof key === 'string')))
    throw new TypeError('keys must be a list of public keys, each a text');
  if (remember !== undefined && !(typeof remember?.get === 'function' && typeof remember.set === 'function'))
    throw new TypeError('remember must have the functions get and set');
}

/** Returns the URL of the mirror's files, with a trailing slash. */
function folderOf(base: string | URL): URL {
  const page = (globalThis as { location?: { href: string } }).location?.href;
  let url: URL;
  try {
    url = new URL(base, page);
  } catch {
    throw new TypeError(`${base} is not a valid base URL, such as https://example.org/mirror`);
  }
  url.search = '';
  url.hash = '';
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}

function targetOf({ transaction, block, offset, limit, operation }: MirrorQuery): string {
  if ((transaction === undefined) === (block === undefined)) throw new TypeError('a query must name either a transaction or a block');
  const list = block === undefined ? `transactions/${encode(transaction, 'transaction')}` : `blocks/${encode(block, 'block')}`;
  return `/runes/v1/${list}/activity${queryOf({ offset, limit, operation_type: operation })}`;
}

function queryOf(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const query = Object.entries(parameters)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encode(value, name)}`);
  return query.length === 0 ? '' : `?${query.join('&')}`;
}

/**
 * Parses an answer. Integers above 2^53, such as heights of mint terms, become strings, because JSON.parse would round them. The pattern
 * cannot match inside a JSON string, because quotes are escaped there.
 */
const parseExactly = (body: string) =>
  JSON.parse(
    body.replace(/(\w":)(\d{16,})/g, (all, key: string, digits: string) => (Number.isSafeInteger(+digits) ? all : `${key}"${digits}"`)),
  );

/**
 * Percent-encodes an argument as a part of a target. Replaces lone surrogates, for which `encodeURIComponent` throws, by U+FFFD. Throws a
 * TypeError that names the argument if it is neither a text nor a number.
 */
function encode(value: unknown, name: string): string {
  if (typeof value !== 'string' && typeof value !== 'number') throw new TypeError(`${name} must be a text or a number, not ${value}`);
  return encodeURIComponent(String(value).replace(/\p{Surrogate}/gu, '\ufffd'));
}
