/** Watches the manifest of a build for the local server. */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { attempt } from '../../attempt.ts';
import { InputError, messageOf } from '../../errors.ts';
import { FormatError } from '../../format/formatVersion.ts';
import { MANIFEST_PATH } from '../../pages/filePaths.ts';
import { type BuiltSite, siteOf } from '../../pages/mirrorOptions.ts';
import { plainCall } from '../../program.ts';

/** The manifest of the build in a folder. `now()` returns the same object until the manifest's file changes. */
export class WatchedBuild {
  readonly #path: string;
  #known: { readonly stamp: string; readonly site: BuiltSite };

  /** Throws an InputError if the folder has no build. */
  constructor(dir: string) {
    this.#path = join(dir, MANIFEST_PATH);
    try {
      this.#known = { stamp: this.#stampNow(), site: readSite(this.#path) };
    } catch (error) {
      throw error instanceof FormatError ? new InputError(`${this.#path} cannot be read: ${error.message}`) : error;
    }
  }

  /** The manifest as last read. */
  get last(): BuiltSite {
    return this.#known.site;
  }

  /**
   * Returns the current manifest. Reads the file only if it has changed: to check this takes microseconds. Throws an InputError if the file
   * is missing, and a FormatError for another format version.
   */
  now(): BuiltSite {
    const stamp = this.#stampNow();
    if (stamp !== this.#known.stamp) this.#known = { stamp, site: readSite(this.#path) };
    return this.#known.site;
  }

  #stampNow(): string {
    const stats = statSync(this.#path, { throwIfNoEntry: false });
    // Reading a pipe would block until another process writes to it.
    if (stats !== undefined && !stats.isFile())
      throw new InputError(`${this.#path} is not a file`, [`Remove it and run ${plainCall('build')} again.`]);
    return `${stats?.dev}:${stats?.ino}:${stats?.size}:${stats?.mtimeMs}`;
  }
}

function readSite(path: string): BuiltSite {
  const text = attempt(() => readFileSync(path, 'utf8'));
  if (text === undefined)
    throw new InputError(`build not found: ${path} is missing`, [`Run ${plainCall('build')} first, or name the folder with --dir.`]);
  try {
    return siteOf(JSON.parse(text));
  } catch (error) {
    if (error instanceof FormatError) throw error;
    throw new InputError(`${path} cannot be read as a manifest: ${messageOf(error)}`, [`Run ${plainCall('build')} again.`]);
  }
}
