/** Opens a mirror in a folder or at a URL with the client module. */
import { closeSync, existsSync, fstatSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { Flags } from '../cli/flags.ts';
import type { Log } from '../cli/log.ts';
import { plainUrl } from '../contract/plainUrl.ts';
import { openRegularFile } from '../disk/regularFile.ts';
import { InputError, isAbsence, UsageError } from '../errors.ts';
import { MOST_FILE } from '../format/root.ts';
import { MANIFEST_PATH } from '../pages/filePaths.ts';
import { Client } from '../pull/httpClient.ts';
import { later } from '../serve/client/later.ts';
import * as lists from '../serve/client/lists.ts';
import { Mirror } from '../serve/client/mirrorClient.ts';

// scripts/run.cjs loads TypeScript with require(), so an import() of the client would not find the module.
later.lists = async () => lists;

/**
 * Opens the mirror of `--mirror` or `--dir`, which answers from one manifest even during a build. Throws a UsageError for an invalid URL,
 * and an InputError for a folder without a mirror.
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
  if (plainUrl(url) === undefined) throw new UsageError('--mirror must be an http(s) URL without user, password, query and fragment');
  return new Mirror(url, { ...options, fetch: fetchPersistently(log) });
}

const fetchIn =
  (folder: string): typeof globalThis.fetch =>
  async (input, init) => {
    let file: number;
    try {
      file = openRegularFile(join(folder, new URL(String(input)).pathname));
    } catch (error) {
      if (!isAbsence(error)) throw error;
      return new Response(null, { status: 404 });
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
  const client = Client.reporting(log, 0);
  return (input, init) =>
    client.persist(String(input), async () => {
      // A host without range requests sends complete files, and no file of a mirror is larger than MOST_FILE.
      const reading = { limit: MOST_FILE, headers: Object.fromEntries(new Headers(init?.headers)) };
      const { status, headers, body } = await client.ask(String(input), reading);
      const known = ['content-type', 'content-range'].flatMap((name): [string, string][] => {
        const value = headers[name];
        return value === undefined ? [] : [[name, String(value)]];
      });
      return new Response(body.length === 0 ? null : body, { status, headers: known });
    });
}
