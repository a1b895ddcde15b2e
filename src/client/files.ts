/**
 * The files of a mirror over plain HTTP, from any host. Nothing but a whole file of a mirror passes: hosts answer what is missing, moved or cut in many
 * ways, and none of them may become an empty list.
 */
import { MANIFEST_PATH } from '../pages/paths.ts';
import { type Files, MissingFileError, type OpenFile } from '../pages/respond.ts';

/** A file could not be had: the host cannot be reached, refuses, or is no mirror. Its cause is the error below, where there is one. */
export class UnreadableError extends Error {}

/**
 * Hosts that cannot be told what to say let browsers keep files for a while, each for its own: so they are asked again each time, and answer with a 304
 * without a body when nothing changed.
 */
const ASK_AGAIN: RequestInit & { readonly cache: string } = { cache: 'no-cache' };

/** A file that was read. */
export interface ReadFile extends OpenFile {
  readonly content: string;
}

export interface MirrorFiles extends Files<ReadFile> {
  /** Any JSON of the mirror by its path, as it is. */
  file(path: string): Promise<string | undefined>;
}

/** `base` ends with a slash. */
export function filesAt(base: URL, fetch: typeof globalThis.fetch, signal?: AbortSignal): MirrorFiles {
  const read = async (path: string): Promise<string | undefined> => {
    const { href } = new URL(path, base);
    try {
      const response = await fetch(href, signal === undefined ? ASK_AGAIN : { ...ASK_AGAIN, signal });
      if (response.status === 404) {
        await response.body?.cancel();
        return undefined;
      }
      const text = await response.text();
      if (response.ok) return text;
      if (response.status === 403 && isAbsence(response, text)) return undefined;
      throw new UnreadableError(`${href} was answered with status ${response.status}`);
    } catch (error) {
      if (error instanceof UnreadableError || signal?.aborted) throw error;
      const why = error instanceof Error ? error.message : String(error);
      throw new UnreadableError(
        `${href} cannot be read (${why}): there is no connection, or its host does not let this page read it (CORS)`,
        {
          cause: error,
        },
      );
    }
  };
  const checked = async (path: string, fits: (value: unknown) => boolean): Promise<string | undefined> => {
    const text = await read(path);
    if (text === undefined || fits(parse(text))) return text;
    throw new MissingFileError(path, text.trimStart().startsWith('<') ? 'was answered with a web page' : 'is cut, or no file of a mirror');
  };
  const manifest = async (): Promise<string> => {
    const text = await read(MANIFEST_PATH);
    const isManifest = text !== undefined && (parse(text) as { generator?: unknown } | undefined)?.generator === 'rune-activity-mirror';
    if (isManifest) return text;
    throw new UnreadableError(
      `there is no mirror at ${base.href}: ${MANIFEST_PATH} is ${text === undefined ? 'missing' : 'of something else'}. The base is the address before /runes/v1`,
    );
  };
  return {
    open: async (path) => {
      const content = await (path === MANIFEST_PATH ? manifest() : checked(path, isWhole));
      return content === undefined ? undefined : { content, text: async () => content };
    },
    file: (path) => checked(path, (value) => value !== undefined),
  };
}

/**
 * Whether a 403 says that there is no such object: S3 and its like answer so where a bucket may be read and not listed. Any other 403 is a refusal of
 * what may well be there.
 */
const isAbsence = (response: Response, body: string): boolean =>
  /^application\/xml\b/.test(response.headers.get('content-type') ?? '') && /<Error>\s*<Code>AccessDenied<\/Code>/.test(body);

function parse(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Whether this is one of the forms that files of the API have; a page has as many records as its numbers say. */
function isWhole(value: unknown): boolean {
  const file = Object(value) as Readonly<Record<string, unknown>>;
  const { limit, offset, total, results } = file;
  if (!Array.isArray(results)) return 'transactions' in file || 'edition' in file || 'server_version' in file;
  return results.length === Math.max(Math.min(Number(limit), Number(total) - Number(offset)), 0);
}
