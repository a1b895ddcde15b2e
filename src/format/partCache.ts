/**
 * Caches parts of an archive in memory: the root, parsed directories, members with ids and names, small files. These never change, so the
 * cache drops a part only to make room, or because it is damaged. The local server removes other files itself when they may have changed.
 */
import { countCrossing, type LimitName, READER_LIMITS } from '../limits.ts';

export class PartCache {
  /** The least recently used part comes first. */
  readonly #parts = new Map<string, { readonly value: unknown; readonly bytes: number }>();
  #bytes = 0;
  #root: { readonly name: string; readonly value: unknown } | undefined;

  /**
   * `mostBytes` is the maximum total size of all parts except the root, and `limit` its name in limits.ts. A larger part displaces all
   * others but is kept itself, because otherwise each answer would parse it again.
   */
  constructor(
    private readonly mostBytes = READER_LIMITS.cachedBytes,
    /** Cache of inflated pages and documents. Undefined on hosts with little memory. */
    readonly pages?: PartCache,
    private readonly limit: LimitName = 'cachedBytes',
  ) {}

  /** Returns the root with this name from memory, or else from `load`. Keeps only the last root, regardless of its size. */
  async root<Root>(name: string, load: () => Promise<Root>): Promise<Root> {
    if (this.#root?.name === name) return this.#root.value as Root;
    const value = await load();
    this.#root = { name, value };
    return value;
  }

  /**
   * Returns a part from memory, or else from `load`, with its approximate size in bytes, or infinity if it must not be kept. All uses of a
   * name must have the same type. Concurrent requests each call `load`, because in some hosts a request cannot wait for another one.
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

  /** Keeps a part, and drops the least recently used parts if there is no room. */
  keep(name: string, part: { readonly value: unknown; readonly bytes: number }): void {
    this.forget(name);
    this.#parts.set(name, part);
    this.#bytes += part.bytes;
    for (const [oldest] of this.#parts) {
      if (oldest === name || this.#bytes <= this.mostBytes) return;
      countCrossing(this.limit);
      this.forget(oldest);
    }
  }

  has(name: string): boolean {
    return this.#parts.has(name);
  }

  forget(name: string): void {
    this.#bytes -= this.#parts.get(name)?.bytes ?? 0;
    this.#parts.delete(name);
  }
}
