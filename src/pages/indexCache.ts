/**
 * Caches index texts in memory, so that most requests of layout `packed` read only pages. Limited in size and age.
 */

/** Enough for some hundred index files, and well below the 128 MB of a worker. */
const MOST_CHARACTERS = 16 * 1024 * 1024;

export class IndexCache {
  readonly #freshMs: number;
  /** Least recently used first. */
  readonly #texts = new Map<string, { readonly text: string; readonly until: number }>();
  #characters = 0;

  /** `freshMs` is how long a text may be answered from memory, in milliseconds. */
  constructor(freshMs: number) {
    this.#freshMs = freshMs;
  }

  /** Returns the text at this path from memory, or else from `load`. Missing files are not cached. */
  async get(path: string, load: (path: string) => Promise<string | undefined>): Promise<string | undefined> {
    const known = this.#texts.get(path);
    this.#drop(path);
    if (known !== undefined && known.until > Date.now()) {
      this.#keep(path, known);
      return known.text;
    }
    const text = await load(path);
    this.#drop(path);
    if (text !== undefined) this.#keep(path, { text, until: Date.now() + this.#freshMs });
    return text;
  }

  /** Removes the text at this path. */
  forget(path: string): void {
    this.#drop(path);
  }

  #keep(path: string, entry: { readonly text: string; readonly until: number }): void {
    this.#texts.set(path, entry);
    this.#characters += entry.text.length;
    for (const [oldest] of this.#texts) {
      if (this.#characters <= MOST_CHARACTERS) return;
      this.#drop(oldest);
    }
  }

  #drop(path: string): void {
    this.#characters -= this.#texts.get(path)?.text.length ?? 0;
    this.#texts.delete(path);
  }
}
