/**
 * Reads blocks and pages of an archive, with the host's functions (ArchiveFiles). The records of a block or transaction take at most three
 * rounds of concurrent reads: the ids (ids.ts), the directory of a segment (segmentDirectory.ts), and pages of the segment.
 */
import { exceeds, READER_LIMITS } from '../limits.ts';
import { ArchiveError, isArchiveError } from './archiveError.ts';
import { isFileName } from './fileName.ts';
import { overlapping } from './overlap.ts';
import { PartCache } from './partCache.ts';
import { MOST_INFLATED, mostInflated, parseRoot, type Root } from './root.ts';
import { type PlacedBlock, parseDirectory, type Segment } from './segmentDirectory.ts';
import { sizeOf } from './tails.ts';

export interface ArchiveFiles {
  /**
   * Reads `length` bytes of a file from `offset` on. `size` is the size of the complete file, with its tail (tails.ts): if `length` equals
   * it, the host needs no range request. Resolves to undefined when the file is missing or too short. Rejects for any other failure.
   */
  read(file: string, offset: number, length: number, size: number): Promise<Uint8Array | undefined>;
  /**
   * Inflates one gzip member, and decodes its content as the host decodes pages (pages/fileAccess.ts). Rejects for bytes that are not gzip,
   * for a wrong checksum, and for content of more than `most` bytes.
   */
  inflate(member: Uint8Array, most: number): Promise<string>;
  /** Two pages are read together if the gap between them has at most this many bytes. Default: as in READER_LIMITS. */
  readonly nearBytes?: number | undefined;
}

/** Name and size of the root's file, as in the manifest. */
export interface RootName {
  readonly root: string;
  readonly bytes: number;
}

/** A page of a segment: the text of a complete response, and its gzip member. */
export interface StoredPage {
  readonly text: string;
  readonly gzip: Uint8Array;
}

/** Position of a page in its segment, in bytes. */
export interface PagePlace {
  readonly offset: number;
  readonly length: number;
}

/** Bytes that a page in memory needs in addition to its content, approximately. */
const BYTES_PER_PAGE = 400;

export class Archive {
  /** Pending reads of directories, by file. Concurrent look-ups that need the same directory share one read. */
  readonly #directories = new Map<string, Promise<unknown>>();
  /** Number of pages that were requested from this Archive, which serves a single answer. */
  #pages = 0;

  private constructor(
    readonly root: Root,
    private readonly files: ArchiveFiles,
    private readonly cache: PartCache,
  ) {}

  /** Opens an archive. All archives of a mirror may share `cache`. Rejects with an ArchiveError for an unreadable root. */
  static async open({ root: name, bytes }: RootName, files: ArchiveFiles, cache = new PartCache()): Promise<Archive> {
    const root = await cache.root(name, async () => parseRoot(await inflate(await readWhole(name, bytes, files), files)));
    return new Archive(root, files, cache);
  }

  /**
   * Returns a block; undefined when the archive does not have it. If the block is in several segments, reads only the directory of the
   * segment with page `page`, which the caller will read.
   */
  async block(height: number, page = 0): Promise<ArchivedBlock | undefined> {
    const segments = this.root.segments.filter(({ first, last }) => first <= height && height <= last);
    const opened = segmentOf(page, segments);
    const block = opened && (await this.directory(opened)).get(height);
    return block && new ArchivedBlock(this, segments, block);
  }

  /** Returns the blocks of a segment by height. */
  directory(segment: Segment): Promise<Map<number, PlacedBlock>> {
    return this.tail(segment, (text) => parseDirectory(text, segment));
  }

  /** Reads and parses the directory at the end of a file. */
  tail<Value>({ file, bytes, directory }: Pick<Segment, 'file' | 'bytes' | 'directory'>, parse: (text: string) => Value): Promise<Value> {
    const known = this.#directories.get(file);
    if (known !== undefined) return known as Promise<Value>;
    const reading = this.cache.get(`${file} directory`, () =>
      this.forgetIfDamaged(file, async () => {
        // Reads a small file completely, because the caller will also read other parts of it. A wrong root may give any sizes.
        const isSmall = directory >= 0 && directory <= bytes && !exceeds(READER_LIMITS, 'smallFile', bytes);
        const text = await inflate(await this.part(file, bytes, bytes - directory, directory, isSmall), this.files);
        return { value: parse(text), bytes: text.length * 4 };
      }),
    );
    this.#directories.set(file, reading);
    return reading.finally(() => this.#directories.delete(file));
  }

  /** Reads a part of a file of `bytes` bytes. Reads and caches the complete file if `inWhole` is true, or if all files are small. */
  async part(file: string, bytes: number, offset: number, length: number, inWhole = this.cache.has(file)): Promise<Uint8Array> {
    if (!inWhole && exceeds(READER_LIMITS, 'readWhole', this.root.objectSize))
      return length === bytes ? readWhole(file, bytes, this.files) : read(file, offset, length, sizeOf(bytes), this.files);
    const whole = await this.cache.get(file, async () => ({ value: await readWhole(file, bytes, this.files), bytes }));
    return whole.subarray(offset, offset + length);
  }

  /** Reads pages of a segment, or takes them from the cache if the host caches pages. `places` must ascend. */
  async pagesAt(file: Pick<Segment, 'file' | 'bytes'>, places: readonly PagePlace[]): Promise<StoredPage[]> {
    this.#pages += places.length;
    // A long answer does not use the cache, because its pages would displace the pages of many other answers.
    const kept = exceeds(READER_LIMITS, 'keptPages', this.#pages) ? undefined : this.cache.pages;
    if (kept === undefined) return this.#readPages(file, places);
    const name = ({ offset }: PagePlace) => `${file.file} ${offset}`;
    const known = places.map((place) => kept.known(name(place)) as StoredPage | undefined);
    const missing = places.filter((_, i) => known[i] === undefined);
    const read = await this.#readPages(file, missing);
    for (const [i, place] of missing.entries()) {
      const { text = '', gzip = new Uint8Array() } = read[i] ?? {};
      // Copies the member, because a view would keep other pages in memory.
      kept.keep(name(place), { value: { text, gzip: new Uint8Array(gzip) }, bytes: text.length + gzip.length + BYTES_PER_PAGE });
    }
    return known.flatMap((page) => page ?? read.splice(0, 1));
  }

  /** Reads a member in which ids or names are looked up, and caches it, because many answers read the same members. */
  lookUp(file: Pick<Segment, 'file' | 'bytes'>, place: PagePlace): Promise<string> {
    return this.cache.get(`${file.file} ${place.offset}`, async () => {
      const [page] = await this.#readPages(file, [place]);
      return { value: page?.text ?? '', bytes: page?.text.length ?? 0 };
    });
  }

  /** Reads pages from the file. Reads pages together if the gap between them is small. */
  async #readPages({ file, bytes: size }: Pick<Segment, 'file' | 'bytes'>, places: readonly PagePlace[]): Promise<StoredPage[]> {
    const { nearBytes = READER_LIMITS.nearBytes } = this.files;
    const reads: { begin: number; end: number; places: PagePlace[] }[] = [];
    for (const place of places) {
      const last = reads.at(-1);
      if (last !== undefined && !exceeds({ nearBytes }, 'nearBytes', place.offset - last.end)) {
        last.end = place.offset + place.length;
        last.places.push(place);
      } else reads.push({ begin: place.offset, end: place.offset + place.length, places: [place] });
    }
    const pages = await Promise.all(
      reads.map(({ begin, end, places: wanted }) =>
        this.forgetIfDamaged(file, async () => {
          const bytes = await this.part(file, size, begin, end - begin);
          return Promise.all(
            wanted.map(async ({ offset, length }) => {
              const gzip = bytes.subarray(offset - begin, offset - begin + length);
              return { text: await this.page(gzip), gzip };
            }),
          );
        }),
      ),
    );
    return pages.flat();
  }

  /** Inflates a page. Rejects with an ArchiveError when the page is damaged. */
  page(gzip: Uint8Array): Promise<string> {
    return inflate(gzip, this.files);
  }

  /** Runs `read`. After an ArchiveError, removes the file from the cache, so that the next attempt reads it again. */
  async forgetIfDamaged<Result>(file: string, read: () => Promise<Result>): Promise<Result> {
    try {
      return await read();
    } catch (error) {
      if (isArchiveError(error)) this.cache.forget(file);
      throw error;
    }
  }
}

export class ArchivedBlock {
  readonly height: number;
  /** 64 hex digits, no prefix. */
  readonly hash: string;
  readonly records: number;

  constructor(
    private readonly archive: Archive,
    private readonly segments: readonly Segment[],
    private readonly block: PlacedBlock,
  ) {
    ({ height: this.height, hash: this.hash, records: this.records } = block);
  }

  total(operation: string): number {
    return sum(this.segments.map((segment) => this.#countIn(segment, operation)));
  }

  /** Returns the number of records of this operation that the block has in this segment. */
  #countIn({ part }: Segment, operation: string): number {
    return this.segments.length === 1 ? sum(this.block.operations[operation] ?? []) : (part?.operations[operation] ?? 0);
  }

  /** Reads the pages with these indexes, which must ascend. Rejects with an ArchiveError if a page is unreadable. */
  async pages(numbers: readonly number[]): Promise<StoredPage[]> {
    const pages = await Promise.all(
      this.segments.map(async (segment) => {
        const here = numbers.filter((number) => segmentOf(number, this.segments) === segment);
        return here.length === 0 ? [] : this.archive.pagesAt(segment, placesOf(await this.#placed(segment), here));
      }),
    );
    return pages.flat();
  }

  /**
   * Returns the indexes of the pages that have the records `from` to `to - 1` of an operation. `before` is the number of the operation's
   * records in all pages before the first of these.
   */
  async pagesWith(operation: string, from: number, to: number): Promise<{ readonly numbers: readonly number[]; readonly before: number }> {
    // If a block has several segments, the root has its records in each. So only directories of segments with wanted records are read.
    const segments = overlapping(this.segments, (segment) => this.#countIn(segment, operation), from, to);
    const pages = await Promise.all(
      segments.map(async ({ item, before }) => {
        const { operations, page = 0 } = await this.#placed(item);
        const here = overlapping(operations[operation] ?? [], (count) => count, from - before, to - before);
        return here.map((one) => ({ number: page + one.index, before: before + one.before }));
      }),
    );
    const found = pages.flat();
    return { numbers: found.map(({ number }) => number), before: found[0]?.before ?? 0 };
  }

  async #placed(segment: Segment): Promise<PlacedBlock> {
    const block = (await this.archive.directory(segment)).get(this.height);
    if (block?.hash !== this.hash) throw new ArchiveError(`${segment.file} does not have block ${this.height}`);
    return block;
  }
}

function placesOf({ height, page = 0, offsets, pages }: PlacedBlock, numbers: readonly number[]): PagePlace[] {
  return numbers.map((number) => {
    const [offset, length] = [offsets[number - page], pages[number - page]];
    if (offset === undefined || length === undefined) throw new ArchiveError(`block ${height} has no page ${number}`);
    return { offset, length };
  });
}

/** Returns the segment that has this page of a block; the last segment for a page past the end. */
const segmentOf = (page: number, segments: readonly Segment[]): Segment | undefined =>
  segments.find((_, i) => page < (segments[i + 1]?.part?.page ?? Number.POSITIVE_INFINITY));

/** Reads a part of a file. Checks the arguments, which come from a root or directory that may be damaged. */
async function read(file: string, offset: number, length: number, size: number, files: ArchiveFiles): Promise<Uint8Array> {
  if (!isFileName(file) || !(offset >= 0 && length >= 0 && length <= MOST_INFLATED && Number.isSafeInteger(offset + length)))
    throw new ArchiveError('the root or a directory of the archive is damaged');
  const bytes = await files.read(file, offset, length, size);
  if (bytes?.length !== length) throw new ArchiveError(`the archive's file ${file} is missing or too short`);
  return bytes;
}

/** Reads the content of a file. Requests the complete file, including its digests, because a part would need a range request. */
async function readWhole(file: string, bytes: number, files: ArchiveFiles): Promise<Uint8Array> {
  const size = sizeOf(bytes);
  return (await read(file, 0, size, size, files)).subarray(0, bytes);
}

/** Inflates a member. Rejects with an ArchiveError for any failure, but rethrows an AbortError of the host. */
async function inflate(member: Uint8Array, files: ArchiveFiles): Promise<string> {
  try {
    return await files.inflate(member, mostInflated(member));
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') throw error;
    throw new ArchiveError(`a file of the archive is damaged (${error instanceof Error ? error.message : String(error)})`);
  }
}

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
