/**
 * Pulls blocks from another mirror of this program. The mirror's digests tell which blocks to fetch, and verify the
 * fetched blocks. The pull itself finds pages in the mirror's files (pages/mirrorReader.ts), so the mirror's host need
 * not run code.
 */
import { gunzipSync } from 'node:zlib';
import { AtOnce } from '../../atOnce.ts';
import { openFile } from '../../contract/archiveFile.ts';
import { type BlockDigest, type Manifest, manifest, misfitOf } from '../../contract/schemas.ts';
import type { LastRead, Sources } from '../../contract/sources.ts';
import { CliError, InputError } from '../../errors.ts';
import { formatFault } from '../../format/formatVersion.ts';
import { PartCache } from '../../format/partCache.ts';
import { MOST_FILE, MOST_OBJECT } from '../../format/root.ts';
import { answerFromLists } from '../../lists/answers.ts';
import { digestOfBlocks, readDigests } from '../../output/digests.ts';
import { type Files, MissingFileError, type OpenFile } from '../../pages/fileAccess.ts';
import { archiveNameOf, DIGESTS_PER_FILE, digestsPath, MANIFEST_PATH } from '../../pages/filePaths.ts';
import { maximumLimit, siteOf } from '../../pages/mirrorOptions.ts';
import { MirrorReader } from '../../pages/mirrorReader.ts';
import { BadBlockError, type BlockIdentity } from '../blockIdentity.ts';
import { allBy, type Extent, HIGHEST, MOST_BLOCKS, type Source } from '../blockSource.ts';
import type { Heights } from '../heightRange.ts';
import type { Client } from '../httpClient.ts';
import { PassingError } from '../httpConnections.ts';
import { type Fetched, writeBlock } from '../writePulled.ts';
import { bytesOf, type Page, parsePage, readBlock } from './blockPages.ts';
import { type EtchingList, type EtchingPage, parseEtchingPage } from './pullEtchings.ts';

/**
 * Maximum size of a manifest, in bytes. A range of heights takes some 18 bytes, so the manifest of a testnet with a gap
 * after each block has 9 MB.
 */
const MANIFEST_BYTES = 16 * 1024 * 1024;

/**
 * Maximum number of ranges of heights that a source may list as read. A source with more is refused, because the time
 * to join two lists of ranges grows with the product of their lengths.
 */
const MOST_RUNS = 10_000;

/** Maximum size of a digest file, in bytes. A larger file is refused. Each of its 1,000 lines has some 190 bytes. */
const DIGESTS_BYTES = 1024 * 1024;

/**
 * Fetches the mirror's manifest. Returns undefined if the host has none. Throws an InputError if the manifest has
 * another format version, or impossible values, such as a height that no chain of blocks reaches.
 */
export async function findManifest(base: string, client: Client): Promise<Manifest | undefined> {
  // Text that does not begin with `{` comes from another program. Invalid JSON after `{` may be a body that was cut
  // off: JSON.parse() throws, so the client retries the request.
  const parse = (text: string): unknown => (text.startsWith('{') ? JSON.parse(text) : undefined);
  const { body } = await client.get(`${base}/${MANIFEST_PATH}`, parse, MANIFEST_BYTES);
  const { generator, format } = Object(body) as Readonly<Record<string, unknown>>;
  const fault = generator === 'rune-activity-mirror' ? formatFault(format) : undefined;
  if (fault !== undefined) throw new InputError(`${base} cannot be read: ${fault}`);
  const found = manifest.safeParse(body);
  if (!found.success) return undefined;
  const wrong = impossible(found.data);
  if (wrong === undefined) return found.data;
  throw new InputError(`the manifest of ${base} ${wrong}`, [
    'No mirror of this program has such a manifest. Check --from, or tell the operator of the mirror.',
  ]);
}

/**
 * Describes the first impossible value in a manifest, such as an invalid range of heights. Returns undefined if there
 * is none. Must be called before the values are used, because they decide how much a pull reads.
 */
export function impossible({ heights, blocks, tip, sources = [] }: Manifest): string | undefined {
  const read = sources.flatMap((source) => source.blocks);
  const wrong = wrongRun(heights) ?? sources.map((source) => wrongRun(source.blocks)).find((run) => run !== undefined);
  if (wrong !== undefined)
    return `has the range of heights ${wrong.join('..')}, which is not ascending, not above the range before it, or ends above ${HIGHEST}`;
  if ((tip?.height ?? 0) > HIGHEST) return `has the last block ${tip?.height}, above the highest possible height ${HIGHEST}`;
  if (blocks > MOST_BLOCKS) return `lists ${blocks} blocks, more than ${MOST_BLOCKS}`;
  return read.length > MOST_RUNS ? `has ${read.length} ranges of blocks that were read, more than ${MOST_RUNS}` : undefined;
}

/** Returns the first range that is invalid or not above the range before it. */
const wrongRun = (runs: readonly (readonly [number, number])[]): readonly [number, number] | undefined =>
  runs.find(([first, last], i) => first > last || last > HIGHEST || first <= (runs[i - 1]?.[1] ?? -1));

/** Manifest of a mirror, and the blocks in its digest files, heights ascending. */
export interface Listing {
  readonly manifest: Manifest;
  readonly blocks: readonly BlockDigest[];
}

/**
 * Reads the manifest and all digests. Retries if they do not match, because a build may just be replacing the files.
 */
export async function readListing(base: string, client: Client): Promise<Listing> {
  return client.persist(base, async () => {
    const found = await findManifest(base, client);
    if (found === undefined) throw new BadBlockError('no longer has a manifest');
    const blocks: BlockDigest[] = [];
    for (const path of digestsPaths(found)) {
      const { status, body } = await client.get(`${base}/${path}`, (text) => readDigests(text, path), DIGESTS_BYTES);
      if (body === undefined) throw new BadBlockError(`answers ${path} with status ${status}`);
      for (const block of body) blocks.push(block);
      // The check after the loop refuses too many blocks. Stops here, so that wrong files cannot fill the memory.
      if (blocks.length > found.blocks) break;
    }
    if (blocks.length !== found.blocks || digestOfBlocks(blocks) !== found.digest)
      throw new BadBlockError('has block digests that do not match the digest in its manifest');
    return { manifest: found, blocks };
  });
}

/**
 * Returns a reader of a mirror's archive. The reader fetches complete files, checks each file against the hash in its
 * name, and keeps the last few files. Blocks are pulled in ascending order, so each file is fetched once: all of
 * history takes thousands of requests instead of millions.
 */
export function filesOfArchive(base: string, client: Client): Pick<Files<OpenFile>, 'read' | 'inflate'> {
  // Keeps promises, so that blocks of the same file that are pulled in parallel fetch this file once.
  const files = new PartCache(KEPT_BYTES);
  const fetches = new AtOnce(FETCHES);
  const fetchFile = (path: string, size: number) => {
    const file = fetches.run(() => fetchWhole(path, size, base, client));
    files.keep(path, { value: file, bytes: size });
    file.catch(() => files.forget(path));
    return file;
  };
  return {
    read: async (path, offset, length, size) => {
      const file = await ((files.known(path) as ReturnType<typeof fetchFile> | undefined) ?? fetchFile(path, size));
      const part = file?.subarray(offset, offset + length);
      // Copies a small part, because a view would keep the complete file in memory.
      return part?.length !== length ? undefined : part.length < (file?.length ?? 0) / 2 ? new Uint8Array(part) : part;
    },
    inflate: async (member, most) => gunzipSync(member, { maxOutputLength: most }).toString(),
  };
}

export class MirrorSource implements Source {
  readonly name: string;
  get origin(): Sources {
    return [...(this.#manifest.sources ?? []), ...allBy('server')];
  }
  get heightsRead(): Heights[] {
    const { sources = [], lists, heights } = this.#manifest;
    const [first, last] = [heights[0]?.[0], heights.at(-1)?.[1]];
    // A manifest without `sources` does not say which blocks were read. But counts of mints and burns need all blocks,
    // so a mirror with counts has read its complete range.
    if (sources.length === 0 && lists?.etchings?.counts === true && first !== undefined && last !== undefined) return [{ first, last }];
    return sources.flatMap(({ blocks }) => blocks.map(([first, last]) => ({ first, last })));
  }
  get tip(): LastRead | undefined {
    return this.#manifest.tip;
  }
  /** Manifest that the last look() has read. */
  protected get manifest(): Manifest {
    return this.#manifest;
  }
  readonly perFile: number = 1;
  readonly knowsDigests: boolean = true;
  #mirror: MirrorReader<OpenFile>;
  #manifest: Manifest;
  #blocks: ReadonlyMap<number, BlockDigest> = new Map();

  constructor(
    protected readonly base: string,
    found: Manifest,
    protected readonly client: Client,
    protected readonly folder: string,
  ) {
    this.name = `${base} (a mirror of this program)`;
    this.#manifest = found;
    this.#mirror = this.#fresh();
  }

  async look(): Promise<Extent> {
    const { manifest: found, blocks: listed } = await readListing(this.base, this.client);
    const [first, last] = [found.heights[0]?.[0], found.tip?.height];
    if (first === undefined || last === undefined) throw new InputError(`${this.base} has no blocks`, ['Give another mirror with --from.']);
    if (found.digest !== this.#manifest.digest) this.#mirror = this.#fresh();
    const blocks = new Map(listed.map((block) => [block.height, block]));
    this.#manifest = found;
    this.#blocks = blocks;
    return { first, begin: first, last, has: (height) => blocks.has(height) };
  }

  async identities(heights: readonly number[]): Promise<Map<number, BlockIdentity>> {
    return new Map(heights.map((height) => [height, this.#blocks.get(height) ?? { hash: '', records: 0 }]));
  }

  get etchings(): EtchingList | undefined {
    return {
      limit: maximumLimit(siteOf(this.#manifest)),
      isCounted: true,
      read: async (limit, offset): Promise<EtchingPage | undefined> =>
        this.#manifest.lists?.etchings === undefined
          ? undefined
          : this.#window(`/runes/v1/etchings?limit=${limit}&offset=${offset}`, parseEtchingPage),
      persist: (what, step) => this.client.persist(what, step),
    };
  }

  async fetch({ first: height }: Heights): Promise<Fetched> {
    const expected = this.#blocks.get(height);
    if (expected === undefined) throw new Error(`the mirror does not list block ${height}`);
    const limit = maximumLimit(siteOf(this.#manifest));
    const check = (digest: string) => {
      if (digest === expected.digest) return;
      this.#mirror = this.#fresh();
      throw new BadBlockError(`has the digest ${digest}, but the mirror lists ${expected.digest}`);
    };
    return this.client.persist(`block ${height}`, () =>
      writeBlock(this.folder, height, (add) => readBlock(height, limit, (size, offset) => this.#page(height, size, offset), add), check),
    );
  }

  /** Creates a reader of the mirror's pages, with an empty cache. */
  #fresh(): MirrorReader<OpenFile> {
    const files: Files<OpenFile> = {
      ...filesOfArchive(this.base, this.client),
      open: async (path) => {
        const most = Math.max(bytesOf(maximumLimit(siteOf(this.#manifest))), MANIFEST_BYTES);
        const { status, body } = await this.client.get(`${this.base}/${path}`, (text) => text, most);
        if (body !== undefined && status === 200) return { text: () => Promise.resolve(body) };
        if (status === 404) return undefined;
        throw new BadBlockError(`needs ${path}, but the mirror answered with status ${status}`);
      },
    };
    return new MirrorReader(files, answerFromLists, Number.POSITIVE_INFINITY);
  }

  #page(height: number, limit: number, offset: number): Promise<Page> {
    return this.#window(`/runes/v1/blocks/${height}/activity?limit=${limit}&offset=${offset}`, parsePage);
  }

  async #window<T>(path: string, parse: (text: string) => T): Promise<T> {
    try {
      const answer = await this.#mirror.answer(path);
      if (answer.kind === 'page') return parse(await answer.page.text());
      if (answer.kind === 'window') return parse(answer.body);
      throw new BadBlockError('is not part of the mirror');
    } catch (error) {
      if (error instanceof CliError || error instanceof PassingError) throw error;
      // A file is damaged, or its upload has not finished. The retry must read the files again, not the cached copies.
      this.#mirror = this.#fresh();
      if (error instanceof MissingFileError)
        throw new BadBlockError("cannot be read from the mirror's files, which are incomplete or being replaced");
      throw new BadBlockError(
        `cannot be read from the mirror's files: ${error instanceof SyntaxError ? 'not valid JSON' : misfitOf(error)}`,
      );
    }
  }
}

/** Returns the paths of a mirror's digest files, heights ascending. */
export function digestsPaths({ heights }: Manifest): Set<string> {
  const paths = new Set<string>();
  for (const [first, last] of heights)
    for (let height = first - (first % DIGESTS_PER_FILE); height <= last; height += DIGESTS_PER_FILE) paths.add(digestsPath(height));
  return paths;
}

/** Returns the base URL of a mirror's files, without a trailing slash. `url` may end with `/runes/v1`. */
export const baseOf = (url: URL): string => url.href.replace(/\/+$/, '').replace(/\/runes(?:\/v1)?$/, '');

/** Maximum size of archive files to keep in memory, in bytes. Blocks that are pulled in parallel need few files. */
const KEPT_BYTES = MOST_OBJECT;

/** Maximum number of archive files that are fetched at the same time. A reader may ask for a file of each level. */
const FETCHES = 2;

/**
 * Returns a complete file of `size` bytes, undefined if the mirror does not have it. Rejects if the file is larger, or
 * does not match its name, which is a hash of its content.
 */
async function fetchWhole(path: string, size: number, base: string, client: Client): Promise<Uint8Array | undefined> {
  const { status, body } = await client.getBytes(`${base}/${path}`, Math.min(size, MOST_FILE));
  if (status === 404) return undefined;
  if (body === undefined) throw new BadBlockError(`needs ${path}, but the mirror answered with status ${status}`);
  if (openFile(archiveNameOf(path) ?? '', Buffer.from(body.buffer, body.byteOffset, body.length)) === undefined)
    throw new BadBlockError(`needs ${path}, which is damaged on the mirror`);
  return body;
}
