/** Opens a mirror in a folder or at a URL with the client module. */
import { closeSync, existsSync, fstatSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { Flags } from '../cli/flags.ts';
import type { Log } from '../cli/log.ts';
import { isPlainHttp } from '../contract/plainUrl.ts';
import { openRegularFile } from '../disk/regularFile.ts';
import { InputError, isAbsence, messageOf, UsageError } from '../errors.ts';
import { MOST_FILE } from '../format/root.ts';
import { MANIFEST_PATH } from '../pages/filePaths.ts';
import { Client, isPassing, PassingError, refuseRedirect } from '../pull/httpClient.ts';
import { DEFAULTS } from '../pull/pullRequest.ts';
import { later } from '../serve/client/later.ts';
import * as lists from '../serve/client/lists.ts';
import { Mirror } from '../serve/client/mirrorClient.ts';

// scripts/run.cjs loads TypeScript with require(), so an import() of the client would not find the module.
later.lists = async () => lists;

/**
 * Opens the mirror of `--mirror` or `--dir`. It answers from the first manifest that is read, so a new build does not
 * disturb an export, as long as the host keeps the files of the old one. Throws a UsageError for an invalid URL, and an
 * InputError for a folder without a mirror.
 */
export function openMirror(flags: Flags, log: Log): Mirror {
  const url = flags.one('mirror');
  const dir = flags.one('dir') ?? 'dist';
  const options = { freshMs: Number.POSITIVE_INFINITY, timeoutMs: Number.POSITIVE_INFINITY };
  if (url === undefined) {
    if (!existsSync(join(dir, MANIFEST_PATH)))
      throw new InputError(`${dir} is not the output folder of a build: ${MANIFEST_PATH} is missing`, [
        'Name a folder with --dir, or the URL of a mirror with --mirror.',
      ]);
    return new Mirror('http://folder.invalid/', { ...options, fetch: fetchIn(dir) });
  }
  if (flags.has('dir')) throw new UsageError('--dir and --mirror cannot be used together; give one of them');
  // The message does not show the URL, which may contain a password.
  if (!URL.canParse(url) || !isPlainHttp(new URL(url)))
    throw new UsageError('--mirror must be an http(s) URL without user, password, query and fragment');
  return new Mirror(url, { ...options, fetch: fetchPersistently(log) });
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
function fetchPersistently(log: Log): typeof globalThis.fetch {
  const onRetry = (why: string) => log.notice(`${why}; trying again`);
  const client = new Client({ ...DEFAULTS, headers: {}, signal: new AbortController().signal, onRetry });
  return (input, init) =>
    client.persist(String(input), async () => {
      const signal = AbortSignal.timeout(DEFAULTS.timeoutMs);
      const failed = (error: unknown): never => {
        throw error instanceof InputError ? error : new PassingError(`failed: ${messageOf((error as Error).cause ?? error)}`);
      };
      const response = await fetch(input, { ...init, redirect: 'manual', signal }).catch(failed);
      if (isPassing(response.status)) throw new PassingError(`was answered with status ${response.status}`);
      refuseRedirect(String(input), response.status, response.headers.get('location'));
      return new Response(await bytesOf(String(input), response).catch(failed), {
        status: response.status,
        headers: ['content-type', 'content-range'].flatMap((name): [string, string][] => {
          const value = response.headers.get(name);
          return value === null ? [] : [[name, value]];
        }),
      });
    });
}

/** Reads a body. A host without range requests sends complete files, and no file of a mirror is larger than MOST_FILE. */
async function bytesOf(url: string, { body }: Response): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > MOST_FILE) throw new InputError(`${url} has more than ${MOST_FILE} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
