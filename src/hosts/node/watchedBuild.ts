/** The manifest of a build in a folder, as the local server needs it. */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { InputError, messageOf } from '../../errors.ts';
import { type BuiltSite, siteOf } from '../../pages/lists.ts';
import { FINISHED, MANIFEST_PATH, MARKER_PATH } from '../../pages/paths.ts';

/** What the manifest of the build in a folder says. The same object means the same build. */
export class WatchedBuild {
  readonly #dir: string;
  readonly #path: string;
  #stamp = '';
  #site: BuiltSite;

  /** Throws an InputError when there is no build in the folder. */
  constructor(dir: string) {
    this.#dir = dir;
    this.#path = join(dir, MANIFEST_PATH);
    this.#stamp = this.#stampNow();
    this.#site = readSite(this.#path);
  }

  /** As it was when it was last looked at. */
  get last(): BuiltSite {
    return this.#site;
  }

  /** As it is: the file is read when it has changed, and whether it has costs microseconds to find out. Throws an InputError when it is gone. */
  now(): BuiltSite {
    const stamp = this.#stampNow();
    if (stamp !== this.#stamp) {
      this.#site = readSite(this.#path);
      this.#stamp = stamp;
    }
    return this.#site;
  }

  /** Whether a build is writing to the folder, or was killed there. A copy of an output may have no marker. */
  isUnfinished(): boolean {
    const marker = join(this.#dir, MARKER_PATH);
    return statSync(marker, { throwIfNoEntry: false })?.isFile() === true && readFileSync(marker, 'utf8') !== FINISHED;
  }

  #stampNow(): string {
    const stats = statSync(this.#path, { throwIfNoEntry: false });
    // Reading a pipe would wait for a writer.
    if (stats !== undefined && !stats.isFile()) {
      throw new InputError(`${this.#path} is not a file`, ['Remove it and run npm run build again.']);
    }
    return `${stats?.dev}:${stats?.ino}:${stats?.size}:${stats?.mtimeMs}`;
  }
}

function readSite(path: string): BuiltSite {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    throw new InputError(`there is no build: ${path} is missing`, ['Run npm run build first, or name the folder with --dir.']);
  }
  try {
    return siteOf(JSON.parse(text));
  } catch (error) {
    throw new InputError(`${path} is not the manifest of a build: ${messageOf(error)}`, ['Run npm run build again.']);
  }
}
