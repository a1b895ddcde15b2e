/**
 * The index of layout `packed`, put together from those of the parts. Each part's entries are read in ascending order of the tx ids, a file at a time,
 * so that at any moment no more is in memory than one file of each part and the file that is made.
 */
import { readFileSync } from 'node:fs';
import type { Progress } from '../cli/progress.ts';
import { codeOf, InputError } from '../errors.ts';
import { ENTRY_PIECES, entryHead, IndexFormatError, prefixDigitsFor, prefixes, readShard, renderShard } from '../pages/packed.ts';
import { editionName, shardPath } from '../pages/paths.ts';
import type { DiskSink } from '../write/sinks.ts';
import { faultDetails, type Part, type PlacedBlock, refuseDamaged } from './parts.ts';

/** The entries of one part's index. */
class ShardReader {
  readonly part: Part;
  readonly #head: string;
  readonly #editions: ReadonlySet<string>;
  #prefix = '';
  #entries: readonly string[] = [];
  #next = 0;
  count = 0;

  constructor(part: Part) {
    this.part = part;
    this.#head = entryHead(part.site.dialect);
    this.#editions = new Set(part.blocks.map(({ height, digest }) => editionName(height, digest, part.site.dialect)));
  }

  /** The entries of ids that begin with this prefix, which is at least as long as the part's own, and behind all asked for before. */
  take(prefix: string): readonly string[] {
    const own = prefix.slice(0, this.part.site.prefixDigits);
    if (own !== this.#prefix) {
      this.end();
      this.#load(own);
    }
    const from = this.#next;
    const begin = this.#head + prefix;
    while (this.#entries[this.#next]?.startsWith(begin) === true) this.#next += 1;
    this.count += this.#next - from;
    return this.#entries.slice(from, this.#next);
  }

  /** Refuses a part in which entries are left: they are not in order, or belong into other files. */
  end(): void {
    if (this.#next < this.#entries.length) refuseDamaged(this.part.dir, `${shardPath(this.#prefix)} is not in order`);
  }

  #load(prefix: string): void {
    const path = shardPath(prefix);
    this.#entries = this.#read(path);
    const at = this.#head.length + 64 + ENTRY_PIECES[0].length;
    const stray = this.#entries.find((entry) => !this.#editions.has(entry.slice(at, entry.indexOf('"', at))));
    if (stray !== undefined) refuseDamaged(this.part.dir, `${path} has an entry of no block that the part holds (${stray.slice(0, 100)})`);
    this.#prefix = prefix;
    this.#next = 0;
  }

  #read(path: string): string[] {
    try {
      return readShard(readFileSync(`${this.part.dir}/${path}`, 'latin1'));
    } catch (error) {
      if (error instanceof IndexFormatError) return refuseDamaged(this.part.dir, `${path} is no index`);
      if (!['ENOENT', 'EISDIR', 'ENOTDIR'].includes(codeOf(error) ?? '')) throw error;
      return refuseDamaged(this.part.dir, `${path} is missing`);
    }
  }
}

/** Hex digits of the prefixes that the parts together have. */
export const digitsOf = (parts: readonly Part[]): number =>
  prefixDigitsFor(parts.reduce((sum, part) => sum + part.manifest.transactions, 0));

/** Every prefix, ascending, with its entries of all parts, ascending. Throws an InputError when a part has not as many as it says. */
function* mergeEntries(parts: readonly Part[], progress: Progress): Generator<[prefix: string, entries: readonly string[]]> {
  const readers = parts.map((part) => new ShardReader(part));
  const digits = digitsOf(parts);
  for (const prefix of prefixes(digits)) {
    progress.show(Number.parseInt(prefix, 16), 16 ** digits, 'files of the index');
    const runs = readers.map((reader) => reader.take(prefix)).filter((run) => run.length > 0);
    // The ids stand at the same place in each entry. Sorting takes runs that are in order as they are, and merges them.
    yield [prefix, runs.length > 1 ? runs.flat().sort() : (runs[0] ?? [])];
  }
  progress.end();
  for (const reader of readers) {
    const { part, count } = reader;
    reader.end();
    if (count !== part.manifest.transactions)
      refuseDamaged(part.dir, `its index has ${count} transactions, and its manifest says ${part.manifest.transactions}`);
  }
}

/** Reads the index of all parts. Throws an InputError when a transaction is in two of them. */
export function checkShards(parts: readonly Part[], placed: readonly PlacedBlock[], progress: Progress): void {
  const partOf = new Map(placed.map(({ block, part }) => [block.height, part.dir]));
  const idLength = entryHead(parts[0]?.site.dialect ?? 'contract').length + 64;
  const faults: string[] = [];
  const place = (entry: string): string => {
    const height = Number(/\["([0-9]+)-/.exec(entry)?.[1]);
    return `block ${height} of ${partOf.get(height) ?? 'no part'}`;
  };
  for (const [, entries] of mergeEntries(parts, progress)) {
    for (let i = 1; i < entries.length; i += 1) {
      const [before = '', entry = ''] = [entries[i - 1], entries[i]];
      const id = entry.slice(0, idLength);
      if (before.startsWith(id)) faults.push(`${id.slice(-64)}: ${place(before)} and ${place(entry)}`);
    }
  }
  if (faults.length > 0) throw twiceError(faults);
}

/** The error for transactions that two parts have. */
export const twiceError = (faults: readonly string[]): InputError =>
  new InputError(
    'a transaction is in two parts',
    faultDetails(faults, 'Build the parts of the same chain: a transaction is in one block.'),
  );

/** Writes the index of all parts. */
export function writeShards(parts: readonly Part[], sink: DiskSink, progress: Progress): void {
  for (const [prefix, entries] of mergeEntries(parts, progress)) {
    sink.file(shardPath(prefix), Buffer.from(renderShard(entries), 'latin1'));
  }
}
