/**
 * Reads the files of another mirror's archive. Blocks are pulled in ascending order, so each file is fetched whole, once,
 * and kept until its blocks are read. That takes thousands of requests for all of history instead of millions.
 */
import { createHash } from 'node:crypto';
import { BadBlockError } from './block.ts';
import type { Client } from './client.ts';

/** Files that are kept: those of the blocks that are pulled at the same time. */
const MOST_FILES = 4;

export class WholeFiles {
  readonly #base: string;
  readonly #client: Client;
  /** By path, least recently used first. */
  readonly #files = new Map<string, Promise<Uint8Array | undefined>>();

  constructor(base: string, client: Client) {
    this.#base = base;
    this.#client = client;
  }

  /** Returns a whole file; undefined when the mirror does not have it. Rejects when its content is not what its name says. */
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
    const { status, body } = await this.#client.getBytes(`${this.#base}/${path}`);
    if (status === 404) return undefined;
    if (body === undefined) throw new BadBlockError(`needs ${path}, but the mirror answered with status ${status}`);
    const name = createHash('sha256').update(body).digest('hex').slice(0, 32);
    if (!path.endsWith(`/${name}.bin`)) throw new BadBlockError(`needs ${path}, which is damaged on the mirror`);
    return body;
  }
}
