/**
 * Answers requests from the files of a mirror. Keeps the manifest and parts of the archive in memory. Uses no platform API, so that edge
 * functions, workers and the client share this code.
 */
import type { Archive } from '../format/archiveReader.ts';
import { PartCache } from '../format/partCache.ts';
import { type Files, MissingFileError, type OpenFile } from './fileAccess.ts';
import { MANIFEST_PATH } from './filePaths.ts';
import { type BuiltSite, siteOf } from './mirrorOptions.ts';
import { type AnswerFromLists, absentPart, type FurtherPart, type ReadTransaction } from './optionalEndpoints.ts';
import { type Answer, fromLists, respond } from './respond.ts';

interface Known {
  readonly text: string;
  readonly site: BuiltSite;
}

export class MirrorReader<File extends OpenFile> {
  readonly #cache = new PartCache();
  #manifest: { readonly known: Promise<Known>; readonly until: number } | undefined;

  /**
   * `freshMs` is the time in milliseconds for which the manifest is used from memory. Give Infinity if the files of a deployment never
   * change. With `confirmsAbsence`, the reader requests the manifest again before it reports an id as unknown in layout `files`. A new
   * build in another dialect or layout may have this id at another path. `now` is the clock.
   */
  constructor(
    private readonly files: Files<File>,
    private readonly lists: AnswerFromLists,
    private readonly freshMs: number,
    private readonly confirmsAbsence = false,
    private readonly now = Date.now,
  ) {}

  /**
   * Answers a request. `target` is its path and query. If a required file is missing, the host may be replacing files, so the reader
   * requests the manifest again and retries once. Rejects with a MissingFileError if the retry fails too, and with the error of `files` if
   * files cannot be read. The manifest is always read with the `files` of the constructor, because concurrent requests share one read of
   * it: a request that aborts its own `files` must not abort this read.
   */
  answer(target: string, files = this.files): Promise<Answer<File>> {
    return this.#twice(files, (site, counted) => respond(target, site, counted, this.lists, this.#cache));
  }

  /**
   * Runs `work` on the archive that has the lists of `part`, an optional part of the API. Resolves to a message if the mirror lacks this
   * part. Retries and rejects like `answer`.
   */
  withLists<Result>(
    part: FurtherPart,
    files: Files<File>,
    work: (archive: Archive, readTransaction: ReadTransaction) => Promise<Result>,
  ): Promise<Result | string> {
    return this.#twice(files, async (site, counted) => {
      if (site.lists[part] === undefined || site.listRoot === undefined) return absentPart(part, site);
      return fromLists(site.listRoot, site, counted, this.#cache, work);
    });
  }

  async #twice<Result>(files: Files<File>, work: (site: BuiltSite, files: Files<File>) => Promise<Result>): Promise<Result> {
    try {
      return await this.#once(files, work);
    } catch (error) {
      if (!(error instanceof MissingFileError)) throw error;
    }
    this.#manifest = undefined;
    return this.#once(files, work);
  }

  /**
   * Returns the text of the manifest, from memory while it is fresh. With `anew`, always reads the file. Rejects if the manifest cannot be
   * read or belongs to another program.
   */
  async manifest(anew = false): Promise<string> {
    return (await this.#known(anew)).text;
  }

  async #once<Result>(files: Files<File>, work: (site: BuiltSite, files: Files<File>) => Promise<Result>): Promise<Result> {
    const known = await this.#known();
    let [found, missing] = [0, 0];
    const counted: Files<File> = {
      ...files,
      open: async (path) => {
        const file = await files.open(path);
        if (file === undefined) missing += 1;
        else found += 1;
        return file;
      },
    };
    const answer = await work(known.site, counted);
    if (this.confirmsAbsence && missing > 0 && found === 0 && (await this.#known(true)).text !== known.text)
      throw new MissingFileError(MANIFEST_PATH, 'was replaced while files were read');
    return answer;
  }

  #known(anew = false): Promise<Known> {
    if (!anew && this.#manifest !== undefined && this.#manifest.until > this.now()) return this.#manifest.known;
    const known = this.#read();
    this.#manifest = { known, until: this.now() + this.freshMs };
    known.catch(() => {
      if (this.#manifest?.known === known) this.#manifest = undefined;
    });
    return known;
  }

  async #read(): Promise<Known> {
    const file = await this.files.open(MANIFEST_PATH);
    if (file === undefined) throw new Error(`${MANIFEST_PATH} is missing`);
    const text = await file.text();
    return { text, site: siteOf(JSON.parse(text)) };
  }
}
