/**
 * Keeps parts of an archive's files in memory: parsed directories, blocks of tables, small files. These files never
 * change, so nothing has to be forgotten but for room.
 */

/** Well below the 128 MB of a worker. */
const MOST_BYTES = 16 * 1024 * 1024;

export class PartCache {
  readonly #mostBytes: number;
  /** Least recently used first. */
  readonly #parts = new Map<string, { readonly value: unknown; readonly bytes: number }>();
  #bytes = 0;

  constructor(mostBytes = MOST_BYTES) {
    this.#mostBytes = mostBytes;
  }

  /**
   * Returns the part with this name from memory, or else from `load`, which also returns its approximate size in
   * bytes. A name must always be used with the same type. Requests do not share a `load`: in some hosts, a request
   * cannot wait for another's.
   */
  async get<Part>(name: string, load: () => Promise<{ readonly value: Part; readonly bytes: number }>): Promise<Part> {
    const known = this.#parts.get(name);
    if (known !== undefined) {
      this.#parts.delete(name);
      this.#parts.set(name, known);
      return known.value as Part;
    }
    const part = await load();
    this.#drop(name);
    if (part.bytes <= this.#mostBytes / 4) this.#keep(name, part);
    return part.value;
  }

  /** Forgets a part that turned out to be damaged. */
  forget(name: string): void {
    this.#drop(name);
  }

  #keep(name: string, part: { readonly value: unknown; readonly bytes: number }): void {
    this.#parts.set(name, part);
    this.#bytes += part.bytes;
    for (const [oldest] of this.#parts) {
      if (this.#bytes <= this.#mostBytes) return;
      this.#drop(oldest);
    }
  }

  #drop(name: string): void {
    this.#bytes -= this.#parts.get(name)?.bytes ?? 0;
    this.#parts.delete(name);
  }
}
