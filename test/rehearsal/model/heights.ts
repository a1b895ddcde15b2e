/**
 * Number of words of an entry: four words of the key, and one word that is the height plus two. A last word of 0 marks a free entry, and 1
 * a removed entry.
 */
const WORDS = 5;

/**
 * A map from outpoint keys to heights. An entry takes 20 bytes. In a `Map` with string keys it would take a hundred, and a `Map` has at
 * most 16 million entries. The stored part of the key is the index and 96 bits of the transaction id, which suffice to distinguish the
 * outputs of an invented chain.
 */
export class Heights {
  #table = new Uint32Array(WORDS * 1024);
  /** Number of entries that are not free, including removed ones. */
  #used = 0;
  size = 0;

  get(key: string): number | undefined {
    const mark = this.#table[this.#find(key) + 4] ?? 0;
    return mark < 2 ? undefined : mark - 2;
  }

  set(key: string, height: number): void {
    if (2 * WORDS * this.#used >= this.#table.length) this.#rebuild();
    const at = this.#find(key);
    if (this.#table[at + 4] === 0) {
      this.#table.set(wordsOf(key), at);
      this.#used++;
      this.size++;
    }
    this.#table[at + 4] = height + 2;
  }

  delete(key: string): void {
    const at = this.#find(key);
    if (this.#table[at + 4] === 0) return;
    this.#table[at + 4] = 1;
    this.size--;
  }

  /** Returns all entries as a text. Maps with equal entries return the same text. */
  text(): string {
    const entries: string[] = [];
    for (let at = 0; at < this.#table.length; at += WORDS) {
      if ((this.#table[at + 4] ?? 0) > 1) entries.push(this.#table.slice(at, at + WORDS).join(' '));
    }
    return entries.sort().join('\n');
  }

  /** Returns the position of a key's entry, or of a free entry if the map does not have the key. */
  #find(key: string): number {
    const words = wordsOf(key);
    const entries = this.#table.length / WORDS;
    let entry = (words[0] ^ Math.imul(words[3], 0x9e3779b1)) >>> 0;
    for (;;) {
      const at = (entry % entries) * WORDS;
      const mark = this.#table[at + 4];
      if (mark === 0) return at;
      if (mark !== 1 && words.every((word, i) => this.#table[at + i] === word)) return at;
      entry++;
    }
  }

  /** Moves the entries to a table of twice the size, and drops removed entries. */
  #rebuild(): void {
    const old = this.#table;
    this.#table = new Uint32Array(WORDS * Math.max(1024, 4 * this.size));
    this.#used = this.size;
    for (let at = 0; at < old.length; at += WORDS) {
      if ((old[at + 4] ?? 0) < 2) continue;
      const entries = this.#table.length / WORDS;
      let entry = ((old[at] ?? 0) ^ Math.imul(old[at + 3] ?? 0, 0x9e3779b1)) >>> 0;
      while (this.#table[(entry % entries) * WORDS + 4] !== 0) entry++;
      this.#table.set(old.subarray(at, at + WORDS), (entry % entries) * WORDS);
    }
  }
}

/** Returns the words of a key: three from different parts of the id, and the index. */
function wordsOf(key: string): [number, number, number, number] {
  return [wordAt(key, 0), wordAt(key, 12), wordAt(key, 24), wordAt(key, 32)];
}

function wordAt(key: string, at: number): number {
  return (key.charCodeAt(at) | (key.charCodeAt(at + 1) << 8) | (key.charCodeAt(at + 2) << 16) | (key.charCodeAt(at + 3) << 24)) >>> 0;
}
