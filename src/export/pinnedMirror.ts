/** Opens a mirror in a folder or at a URL, and answers requests from its files as the client module does. */
import { closeSync, existsSync, fstatSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, fetch as fetchOver } from 'undici';
import type { Flags } from '../cli/flags.ts';
import type { Log } from '../cli/log.ts';
import { isPlainHttp } from '../contract/plainUrl.ts';
import { openRegularFile } from '../disk/regularFile.ts';
import { BuildError, CliError, InputError, isAbsence, messageOf, UsageError } from '../errors.ts';
import { MOST_FILE } from '../format/root.ts';
import { answerFromLists } from '../lists/answers.ts';
import { MANIFEST_PATH } from '../pages/filePaths.ts';
import { MirrorReader } from '../pages/mirrorReader.ts';
import { Client, isPassing, refuseRedirect } from '../pull/httpClient.ts';
import { PassingError } from '../pull/httpConnections.ts';
import { DEFAULTS } from '../pull/pullRequest.ts';
import { rangeHeaders } from '../serve/archiveParts.ts';
import { allEntries } from '../serve/client/allEntries.ts';
import type { MirrorManifest, Page, WindowQuery } from '../serve/client/client.d.ts';
import { filesAt, type MirrorFiles, type ReadFile } from '../serve/client/clientFiles.ts';

/**
 * Entries per window (offset and limit) of a list. With the API's maximum of 60, an export would take 10 times as many
 * reads and 6 times as long.
 */
const WINDOW = 1000;
/** Concurrent connections to a host. */
const CONNECTIONS = 16;
/** Thrown if the mirror lacks data that the export needs, such as a list. */
export class AbsentError extends InputError {}

/**
 * A mirror that answers from the first manifest that was read. So a new build does not disturb the export, as long as
 * the host keeps the files of that manifest. All methods reject with CliErrors.
 */
export class OpenedMirror {
  readonly #files: MirrorFiles;
  readonly #reader: MirrorReader<ReadFile>;

  /** `url` is undefined for a folder. */
  private constructor(
    readonly url: string | undefined,
    fetch: typeof globalThis.fetch,
    private readonly agent?: Agent | undefined,
  ) {
    // `fetch` has its own limits of time, and its retries take longer than the client's limit.
    this.#files = filesAt(new URL(`${url ?? 'http://folder.invalid'}/`.replace(/\/+$/, '/')), fetch, undefined, Number.POSITIVE_INFINITY);
    this.#reader = new MirrorReader({ ...this.#files, open: (path) => this.#open(path) }, answerFromLists, Number.POSITIVE_INFINITY);
  }

  /**
   * Opens the mirror of `--mirror` or `--dir`. Throws a UsageError for an invalid URL, and an InputError for a folder
   * without a mirror.
   */
  static of(flags: Flags, log: Log): OpenedMirror {
    const url = flags.one('mirror');
    const dir = flags.one('dir') ?? 'dist';
    if (url === undefined) {
      if (!existsSync(join(dir, MANIFEST_PATH)))
        throw new InputError(`${dir} is not the output folder of a build: ${MANIFEST_PATH} is missing`, [
          'Name a folder with --dir, or the URL of a mirror with --mirror.',
        ]);
      return new OpenedMirror(undefined, fetchIn(dir));
    }
    if (flags.has('dir')) throw new UsageError('--dir and --mirror cannot be used together; give one of them');
    // The message does not show the URL, which may contain a password.
    if (!URL.canParse(url) || !isPlainHttp(new URL(url)))
      throw new UsageError('--mirror must be an http(s) URL without user, password, query and fragment');
    const agent = new Agent({ connections: CONNECTIONS, headersTimeout: DEFAULTS.timeoutMs, bodyTimeout: DEFAULTS.timeoutMs });
    return new OpenedMirror(url, fetchPersistently(agent, log), agent);
  }

  async close(): Promise<void> {
    await this.agent?.destroy();
  }

  /**
   * Opens a file. In the text of the manifest, replaces the page sizes after the first by WINDOW, so that the reader
   * accepts windows of WINDOW entries. The lists of an archive are not stored in pages of the replaced sizes.
   */
  async #open(path: string): Promise<ReadFile | undefined> {
    const file = await this.#files.open(path);
    if (path !== MANIFEST_PATH || file === undefined) return file;
    const content = file.content.replace(/("page_sizes":\s*\[\s*[0-9]+)[0-9,\s]*\]/, `$1,${WINDOW}]`);
    return { content, text: async () => content };
  }

  manifest(): Promise<MirrorManifest> {
    return explained(async () => JSON.parse(await this.#reader.manifest()) as MirrorManifest);
  }

  /** Answers a request for a path below `/runes/v1/`. Returns undefined where a server would answer with status 404. */
  get<Answer>(path: string): Promise<Answer | undefined> {
    return explained(async () => {
      const answer = await this.#reader.answer(`/runes/v1/${path}`);
      if (answer.kind === 'page') return JSON.parse(answer.page.content) as Answer;
      if (answer.kind === 'window') return JSON.parse(answer.body) as Answer;
      if (answer.kind === 'other' || answer.status === 404) return undefined;
      throw answer.status === 400 ? new UsageError(answer.message) : new AbsentError(answer.message);
    });
  }

  /** Reads a file of the mirror that is not part of the API. Undefined if the mirror does not have it. */
  file(path: string): Promise<string | undefined> {
    return explained(() => this.#files.file(path));
  }

  /** Reads a window of the list at a path below `/runes/v1/`. */
  async window<Answer extends Page<unknown>>(path: string, { offset = 0, limit = 1 }: WindowQuery): Promise<Answer> {
    return (await this.get<Answer>(`${path}?offset=${offset}&limit=${limit}`)) ?? fail(`the mirror has no list ${path}`);
  }

  /** Yields all entries of the list at a path below `/runes/v1/`, window by window. */
  all<Entry>(path: string): AsyncGenerator<Entry, void, undefined> {
    const changed = (message: string) => new BuildError(message, ['Run the same command again.']);
    return allEntries(
      (window) => this.window<Page<Entry>>(path, window),
      () => this.manifest(),
      changed,
    );
  }
}

function fail(message: string): never {
  throw new BuildError(message);
}

/** Rejects with a CliError for any failure to read the mirror. */
async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CliError) throw error;
    if (error instanceof Error && error.cause instanceof CliError) throw error.cause;
    throw new BuildError(messageOf(error), ['Run the same command again, or verify the mirror.']);
  }
}

const fetchIn =
  (folder: string): typeof globalThis.fetch =>
  async (input, init) => {
    let file: number;
    try {
      file = openRegularFile(join(folder, new URL(String(input)).pathname));
    } catch (error) {
      if (isAbsence(error)) return new Response(null, { status: 404 });
      throw error;
    }
    try {
      const { size } = fstatSync(file);
      const [, from = '0', to = size - 1] = /^bytes=([0-9]+)-([0-9]+)$/.exec(new Headers(init?.headers).get('range') ?? '') ?? [];
      const bytes = Buffer.alloc(Math.max(Math.min(Number(to) + 1, size) - Number(from), 0));
      const length = readSync(file, bytes, 0, bytes.length, Number(from));
      return new Response(bytes.subarray(0, length), { status: bytes.length === size ? 200 : 206 });
    } finally {
      closeSync(file);
    }
  };

/** Returns a `fetch` that retries failed requests. Rejects with a BuildError after the last retry. */
function fetchPersistently(agent: Agent, log: Log): typeof globalThis.fetch {
  const onRetry = (why: string) => log.notice(`${why}; trying again`);
  const client = new Client({ ...DEFAULTS, headers: {}, signal: new AbortController().signal, onRetry });
  const request = async (url: string, range: string | null): Promise<Response> => {
    const asked = range === null ? {} : rangeHeaders(range);
    const response = await fetchOver(url, { dispatcher: agent, redirect: 'manual', headers: asked });
    if (isPassing(response.status)) throw new PassingError(`was answered with status ${response.status}`);
    refuseRedirect(url, response.status, response.headers.get('location'));
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of response.body ?? []) {
      size += chunk.length;
      // Hosts without range requests send complete files.
      if (size > MOST_FILE) throw new InputError(`${url} has more than ${MOST_FILE} bytes`);
      chunks.push(chunk);
    }
    const headers = ['content-type', 'content-range'].flatMap((name) => {
      const value = response.headers.get(name);
      return value === null ? [] : [[name, value] as [string, string]];
    });
    return new Response(Buffer.concat(chunks), { status: response.status, headers });
  };
  return (input, init) =>
    client.persist(String(input), async () => {
      try {
        return await request(String(input), new Headers(init?.headers).get('range'));
      } catch (error) {
        // Failures of the network are TypeErrors, whose cause has the reason.
        if (error instanceof TypeError) throw new PassingError(`failed: ${messageOf(error.cause ?? error)}`);
        throw error;
      }
    });
}
