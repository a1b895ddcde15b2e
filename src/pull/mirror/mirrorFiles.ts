/**
 * Reads the files of another mirror's archive. Fetches each file completely, instead of a part for each block, and
 * keeps the last few files. Blocks are pulled in ascending order, so each file is fetched once: all of history takes
 * thousands of requests instead of millions.
 */
import { openFile } from '../../contract/archiveFile.ts';
import { archiveNameOf } from '../../pages/filePaths.ts';
import { BadBlockError } from '../blockIdentity.ts';
import type { Client } from '../httpClient.ts';

/** Maximum number of files to keep, enough for the blocks that are pulled in parallel. */
const MOST_FILES = 4;

export class WholeFiles {
  /** File contents by path, least recently used first. */
  readonly #files = new Map<string, Promise<Uint8Array | undefined>>();

  constructor(
    private readonly base: string,
    private readonly client: Client,
  ) {}

  /**
   * Returns a complete file, undefined if the mirror does not have it. Rejects if the file does not match its name,
   * which is a hash of its content.
   */
  read(path: string): Promise<Uint8Array | undefined> {
    const file = this.#files.get(path) ?? this.#fetch(path);
    this.#files.delete(path);
    this.#files.set(path, file);
    file.catch(() => this.#files.delete(path));
    for (const [oldest] of this.#files) {
      if (this.#files.size <= MOST_FILES) break;
      this.#files.delete(oldest);
    }
    return file;
  }

  async #fetch(path: string): Promise<Uint8Array | undefined> {
    const { status, body } = await this.client.getBytes(`${this.base}/${path}`);
    if (status === 404) return undefined;
    if (body === undefined) throw new BadBlockError(`needs ${path}, but the mirror answered with status ${status}`);
    if (openFile(archiveNameOf(path) ?? '', Buffer.from(body.buffer, body.byteOffset, body.length)) === undefined)
      throw new BadBlockError(`needs ${path}, which is damaged on the mirror`);
    return body;
  }
}
