/**
 * Reads a mirror's files one by one and answers from them by the page map, with the manifest and the index in memory. It needs nothing of a platform,
 * so it is the same in edge functions, workers and the client.
 */

import { IndexCache } from './indexCache.ts';
import { type BuiltSite, siteOf } from './lists.ts';
import { MANIFEST_PATH } from './paths.ts';
import { type Answer, type Files, MissingFileError, type OpenFile, respond } from './respond.ts';

/** A manifest as it was read. */
interface Known {
  readonly text: string;
  readonly site: BuiltSite;
}

export class MirrorReader<File extends OpenFile> {
  readonly #files: Files<File>;
  readonly #freshMs: number;
  readonly #confirmsAbsence: boolean;
  readonly #index: IndexCache;
  /** Requests that come at once share one reading of the manifest. */
  #manifest: { readonly known: Promise<Known>; readonly until: number } | undefined;

  /**
   * `freshMs` is how long the manifest and the index may be answered from memory: for ever where a deployment's files never change. With
   * `confirmsAbsence`, an id that has no file is unknown only when the manifest, read once more, is still the same: a build of another dialect or
   * layout has the same ids under other paths. That costs a request for each unknown id.
   */
  constructor(files: Files<File>, freshMs: number, confirmsAbsence = false) {
    this.#files = files;
    this.#freshMs = freshMs;
    this.#confirmsAbsence = confirmsAbsence;
    this.#index = new IndexCache(freshMs);
  }

  /**
   * Answers a request; `target` is its path and query. While files are being replaced, one that has to be there may be missing: then the manifest and
   * the index are read anew. Rejects with a MissingFileError when that does not help, and with the error of `files` when they cannot be read.
   * `files` may be this request's own, which can be aborted: pages and the index are read by them, and not the manifest, which others may be waiting for.
   */
  async answer(target: string, files = this.#files): Promise<Answer<File>> {
    const used = new Set<string>();
    try {
      return await this.#answerOnce(target, used, files);
    } catch (error) {
      if (!(error instanceof MissingFileError)) throw error;
    }
    // Only what misled this request: a page that stays missing is no reason to read the index anew for all others.
    this.#manifest = undefined;
    for (const path of used) this.#index.forget(path);
    return this.#answerOnce(target, used, files);
  }

  /** The manifest's text, from memory while it is fresh. Rejects when it cannot be had or is of another program. */
  async manifest(): Promise<string> {
    return (await this.#current()).text;
  }

  /** Adds the files of the index that it looked into to `used`. */
  async #answerOnce(target: string, used: Set<string>, files: Files<File>): Promise<Answer<File>> {
    const known = await this.#current();
    let [found, missing] = [0, 0];
    const count = <T>(file: T | undefined): T | undefined => {
      if (file === undefined) missing += 1;
      else found += 1;
      return file;
    };
    const counted: Files<File> = { open: async (path) => count(await files.open(path)) };
    const readIndex = async (path: string) => {
      used.add(path);
      return count(await this.#index.get(path, async () => (await files.open(path))?.text()));
    };
    const answer = await respond(target, known.site, counted, readIndex);
    if (this.#confirmsAbsence && missing > 0 && found === 0 && (await this.#anew()).text !== known.text) {
      throw new MissingFileError(MANIFEST_PATH, 'was replaced while files were read');
    }
    return answer;
  }

  #current(): Promise<Known> {
    if (this.#manifest !== undefined && this.#manifest.until > Date.now()) return this.#manifest.known;
    return this.#anew();
  }

  #anew(): Promise<Known> {
    const known = this.#read();
    this.#manifest = { known, until: Date.now() + this.#freshMs };
    known.catch(() => {
      if (this.#manifest?.known === known) this.#manifest = undefined;
    });
    return known;
  }

  async #read(): Promise<Known> {
    const file = await this.#files.open(MANIFEST_PATH);
    if (file === undefined) throw new Error(`${MANIFEST_PATH} is missing`);
    const text = await file.text();
    return { text, site: siteOf(JSON.parse(text)) };
  }
}
