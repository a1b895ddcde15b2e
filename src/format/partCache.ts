/**
 * Keeps parts of an archive in memory: the root, parsed directories, blocks of tables, small files. Files of an archive
 * never change, so a part is forgotten only to make room, or because it is damaged.
 */
import { exceeds, READER_LIMITS } from '../limits.ts';

export class PartCache {
  readonly #mostBytes: number;
  /** The least recently used part comes first. */
  readonly #parts = new Map<string, { readonly value: unknown; readonly bytes: number }>();
  #bytes = 0;
  #root: { readonly name: string; readonly value: unknown } | undefined;

  /** Keeps inflated pages and documents. Only hosts with much memory have it. */
  readonly pages: PartCache | undefined;

  /** `mostBytes` limits all parts except the root. A single part may be larger, or each answer would parse it again. */
  constructor(mostBytes = READER_LIMITS.cachedBytes, pages?: PartCache) {
    this.#mostBytes = mostBytes;
    this.pages = pages;
  }

  /** Returns the root with this name from memory, or else from `load`. Keeps only the last root, whatever its size. */
  async root<Root>(name: string, load: () => Promise<Root>): Promise<Root> {
    if (this.#root?.name === name) return this.#root.value as Root;
    const value = await load();
    this.#root = { name, value };
    return value;
  }

  /**
   * Returns the part with this name from memory, or else from `load`. `load` also returns the approximate size in
   * bytes, or infinity if the part must not be kept. A name must always be used with the same type. Requests do not
   * share a `load`, because in some hosts a request cannot wait for another request.
   */
  async get<Part>(name: string, load: () => Promise<{ readonly value: Part; readonly bytes: number }>): Promise<Part> {
    if (this.has(name)) return this.known(name) as Part;
    const part = await load();
    if (Number.isFinite(part.bytes)) this.keep(name, part);
    return part.value;
  }

  /** Returns the part with this name; undefined if it is not in memory. */
  known(name: string): unknown {
    const part = this.#parts.get(name);
    if (part === undefined) return undefined;
    this.#parts.delete(name);
    this.#parts.set(name, part);
    return part.value;
  }

  /** Keeps a part. `bytes` is its approximate size. */
  keep(name: string, part: { readonly value: unknown; readonly bytes: number }): void {
    this.forget(name);
    this.#parts.set(name, part);
    this.#bytes += part.bytes;
    for (const [oldest] of this.#parts) {
      if (oldest === name || !exceeds({ cachedBytes: this.#mostBytes }, 'cachedBytes', this.#bytes)) return;
      this.forget(oldest);
    }
  }

  has(name: string): boolean {
    return this.#parts.has(name);
  }

  /** Removes a part from memory. */
  forget(name: string): void {
    this.#bytes -= this.#parts.get(name)?.bytes ?? 0;
    this.#parts.delete(name);
  }
}
