/** The files of a build in a folder. Every answer is from a single build, also while another build replaces it. */
import type { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { PartCache } from '../../format/partCache.ts';
import { exceeds, type ServerLimits } from '../../limits.ts';
import { answerFromLists } from '../../lists/answers.ts';
import type { WindowAnswer } from '../../pages/envelope.ts';
import { type Files, MissingFileError } from '../../pages/fileAccess.ts';
import { isPagePath, MANIFEST_PATH } from '../../pages/filePaths.ts';
import type { BuiltSite } from '../../pages/mirrorOptions.ts';
import { type Answer, type PageAnswer, readFacts, respond } from '../../pages/respond.ts';
import type { Asked, Content, Origin } from '../http/handler.ts';
import { isReadByRanges } from '../http/ranges.ts';
import { type BuiltFile, BuiltFiles, BYTES_PER_ENTRY, Bytes, ForeignFileError } from './builtFiles.ts';
import { WatchedBuild } from './watchedBuild.ts';

/** Maximum number of attempts per request while a build replaces files. The first attempt may use an outdated manifest. */
const ATTEMPTS = 4;

/** An answer is stored as text, as bytes and compressed. */
const COPIES = 3;

/** The client of a request has disconnected. format/archiveReader.ts recognises aborted reads by `name`. */
export class ClientLeftError extends Error {
  override readonly name = 'AbortError';
}

export interface LocalRequest extends Asked {
  /**
   * True if the client has disconnected. A client that closed only its sending side may still read, but looks like a disconnected one until
   * the server sends something. So a long answer ends for it, too.
   */
  hasLeft(isLong: boolean): boolean;
}

/**
 * Returns the files for one answer. After `freeParts` parts of files, pauses before each further one, so that the server answers other
 * requests in between. Reads reject with a ClientLeftError after the client has disconnected.
 */
function fairFiles(files: BuiltFiles, request: LocalRequest, limits: ServerLimits): Files<BuiltFile> {
  let parts = 0;
  const turn = async () => {
    parts += 1;
    const isLong = exceeds(limits, 'freeParts', parts);
    if (isLong) await setImmediate();
    if (request.hasLeft(isLong)) throw new ClientLeftError('the client has left');
  };
  return {
    open: (path) => files.open(path),
    read: (path, offset, length) => turn().then(() => files.read(path, offset, length)),
    inflate: (member, most) => turn().then(() => files.inflate(member, most)),
  };
}

const contentOfFile = (file: BuiltFile): Content<Readable> | Promise<Content<Readable>> => file.bytes ?? file.open(false);

export class DiskOrigin implements Origin<BuiltFile, Readable, LocalRequest> {
  readonly #site: WatchedBuild;
  readonly #files: BuiltFiles;
  readonly #cache: PartCache;
  /** Cached answers from an archive, by build, with which they change. Making an answer takes longer than sending it. */
  readonly #answers = new WeakMap<BuiltSite, PartCache>();
  /** Bytes of answers. Saves encoding and compressing a cached answer again. */
  readonly #bytes = new WeakMap<WindowAnswer, Bytes>();

  /** Throws an InputError if the folder has no build. `now` is the clock. */
  constructor(
    dir: string,
    readonly compresses: boolean,
    private readonly limits: ServerLimits,
    now: () => number,
  ) {
    this.#site = new WatchedBuild(dir);
    this.#files = new BuiltFiles(dir, limits, now);
    this.#cache = new PartCache(limits.partBytes, new PartCache(limits.pageBytes));
  }

  /**
   * Answers from a single build: each attempt uses the last known manifest, and checks afterwards whether it is still current. A build
   * writes its manifest before it removes files of the last build. So if a file is missing and the manifest is unchanged, the current build
   * does not have the file. Rejects with a MissingFileError if all attempts fail.
   */
  async read(request: LocalRequest): Promise<Answer<BuiltFile>> {
    let failure: unknown;
    for (let i = 0; i < ATTEMPTS; i += 1) {
      const used = this.#site.last;
      try {
        const found = await this.#answerFrom(used, request);
        if (this.#site.now() === used) return found;
      } catch (error) {
        if (error instanceof ClientLeftError) throw error;
        // Tries again if the used manifest is outdated, or a file is missing, which a build may have just removed.
        if (this.#site.now() === used && !(error instanceof MissingFileError)) throw error;
        // Opens files again: an open file of an archive may be damaged, while a repair has put a good file at its path.
        this.#files.close();
        failure = error;
      }
    }
    // Not created in the loop, because creating an error with its stack takes longer than reading a file.
    throw failure ?? new MissingFileError(MANIFEST_PATH, 'changed during every attempt');
  }

  #answerFrom(site: BuiltSite, request: LocalRequest): Promise<Answer<BuiltFile>> {
    const { target } = request;
    const files = fairFiles(this.#files, request, this.limits);
    if (site.archive === undefined) return respond(target, site, files, answerFromLists, this.#cache);
    const known = this.#answers.get(site) ?? new PartCache(this.limits.answerBytes);
    this.#answers.set(site, known);
    return known.get(target, async () => {
      const value = await respond(target, site, files, answerFromLists, this.#cache);
      const bytes = value.kind === 'window' ? value.body.length * COPIES + target.length * 2 + BYTES_PER_ENTRY : Number.POSITIVE_INFINITY;
      // With infinity, the answer is not cached: a long one would displace many others, and `BuiltFiles` caches pages.
      return { value, bytes: bytes <= this.limits.answerBytes / 4 ? bytes : Number.POSITIVE_INFINITY };
    });
  }

  contentOf(found: PageAnswer<BuiltFile> | WindowAnswer): Content<Readable> | Promise<Content<Readable>> {
    if (found.kind === 'page') return contentOfFile(found.page);
    // The body has one character per byte, as the texts of files.
    const bytes = this.#bytes.get(found) ?? new Bytes(Buffer.from(found.body, 'latin1'), found.gzip);
    this.#bytes.set(found, bytes);
    return bytes;
  }

  async file(path: string, range?: string): Promise<Content<Readable> | undefined> {
    const file = await this.#files.open(path).catch((error: unknown) => {
      if (!(error instanceof ForeignFileError)) throw error;
    });
    if (file === undefined) return undefined;
    // Builds write pages directly to their paths, and rename all other files to theirs. An incomplete page can be recognised.
    if (isPagePath(path, this.#site.last)) await readFacts(file, path);
    return isReadByRanges(path) ? file.open(true, range) : contentOfFile(file);
  }

  close(): void {
    this.#files.close();
  }
}
