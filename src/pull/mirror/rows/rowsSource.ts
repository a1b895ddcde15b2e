/**
 * Pulls the published rows of another mirror, file by file. The manifest has the hash of the list of files, and the
 * list has the hash of each file. A separate process reads the files (readerProcesses.ts). Their rows must conserve every
 * rune in every transaction, and their blocks must have the digests that the mirror lists.
 *
 * No text of a list becomes a path: paths are computed from checked heights and digests.
 */
import { createHash } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { attempt } from '../../../attempt.ts';
import { type RowFile, type RowsIndex, rowsIndex } from '../../../contract/rowsSchemas.ts';
import type { BlockDigest, Manifest } from '../../../contract/schemas.ts';
import type { BlocksFile, LastRead, Sources } from '../../../contract/sources.ts';
import { InputError } from '../../../errors.ts';
import { rowFilePath, rowRunesPath, rowsIndexPath } from '../../../pages/filePaths.ts';
import { HEIGHTS_PER_FILE } from '../../../rows/rowsForm.ts';
import { BadBlockError, type BlockIdentity } from '../../blockIdentity.ts';
import { allBy, type Extent, type Fetched, HIGHEST, MOST_BLOCKS } from '../../blockSource.ts';
import type { Heights } from '../../heightRange.ts';
import type { Client } from '../../httpClient.ts';
import { ledgerFile, RUNES_FILE } from '../../pulledFiles.ts';
import { putInPlace, putRunes, workFile } from '../../writePulled.ts';
import { findManifest, readListing } from '../mirrorSource.ts';
import { type RowsLimits, RowsReader } from './readerProcesses.ts';
import { mostBytes, type RowsReply } from './readStrangersRows.ts';

/**
 * Maximum size of the list of files, in bytes. A file takes some 240 bytes in the list, so the list of a testnet with
 * 100,000 files has 24 MB.
 */
const INDEX_BYTES = 64 * 1024 * 1024;

type Read = Exclude<RowsReply, { fault: string }>;

/** Maximum number of rows of a file, and of runes. No block has that many records; mainnet has 270,000 runes in 2026. */
const [MOST_RECORDS, MOST_RUNES] = [2 ** 24 - 1, 10_000_000];

export class RowsSource {
  readonly name: string;
  readonly #reader: RowsReader;
  #index: RowsIndex | undefined;
  #blocks: ReadonlyMap<number, BlockDigest> = new Map();
  /** Checked copy of the mirror's file of runes, and the SHA-256 of the mirror's file. */
  #runes: { readonly sha256: string; readonly path: string } | undefined;

  /** `memory` is the memory of the pull and of all its reader processes, in bytes. */
  constructor(
    private readonly base: string,
    private manifest: Manifest,
    private readonly client: Client,
    private readonly folder: string,
    private readonly limits: RowsLimits,
    memory: number,
  ) {
    this.name = `${base} (a mirror of this program)`;
    this.#reader = new RowsReader(limits, memory);
  }

  get origin(): Sources {
    return [...(this.manifest.sources ?? []), ...allBy('server')];
  }
  /** Ranges of heights that the mirror has read, with or without records. */
  get heightsRead(): Heights[] {
    const { sources = [], lists, heights } = this.manifest;
    const [first, last] = [heights[0]?.[0], heights.at(-1)?.[1]];
    // A manifest without `sources` does not say which blocks were read. But counts of mints and burns need all blocks,
    // so a mirror with counts has read its complete range.
    if (sources.length === 0 && lists?.etchings?.counts === true && first !== undefined && last !== undefined) return [{ first, last }];
    return sources.flatMap(({ blocks }) => blocks.map(([first, last]) => ({ first, last })));
  }
  get tip(): LastRead | undefined {
    return this.manifest.tip;
  }
  get facts(): Pick<BlocksFile, 'network' | 'ends'> {
    const { network, ends } = this.#index ?? {};
    return { ...(network === undefined ? {} : { network }), ...(ends === undefined ? {} : { ends }) };
  }

  async look(): Promise<Extent> {
    return this.client.persist(this.base, async () => {
      const { manifest: found, blocks: listed } = await readListing(this.base, this.client);
      const [lowest, last] = [found.heights[0]?.[0], found.tip?.height];
      if (lowest === undefined || last === undefined)
        throw new InputError(`${this.base} has no blocks`, ['Give another mirror with --from.']);
      const blocks = new Map(listed.map((block) => [block.height, block]));
      this.manifest = found;
      this.#blocks = blocks;
      // Files of rows also cover blocks without records, so the range may begin below the first block with records. The
      // lowest block of the range gets a file even without rows, so that the pulled range begins at this block.
      const first = Math.min(lowest, this.heightsRead[0]?.first ?? lowest);
      this.#index = await this.#readIndex({ first, last });
      const heights = new Set(this.#index.files.map((file) => file.first));
      return { first, last, has: (height) => height === first || blocks.has(height) || heights.has(height) };
    });
  }

  /** Fetches the runes before the rows, so that a build at any moment of the pull finds the runes of all rows. */
  async prepare(isBehind: boolean): Promise<void> {
    const path = await this.client.persist('the runes', () => this.#ownRunes());
    // Keeps the pulled runes if pulled rows are above the mirror's tip, because the mirror may lack their runes.
    const own = join(this.folder, RUNES_FILE);
    if (path === own || (isBehind && existsSync(own))) return;
    await putRunes(this.folder, path);
    this.#runes = { sha256: this.#list.runes.sha256, path: own };
  }

  async fetch(unit: Heights): Promise<Fetched> {
    let attempts = 0;
    return this.client.persist(`the rows of blocks ${unit.first}..${unit.last}`, async () => {
      // A build of the mirror may have replaced its files, so a retry reads the new list first.
      if (attempts > 0 && (await findManifest(this.base, this.client))?.rows?.sha256 !== this.#indexSha256) await this.look();
      attempts += 1;
      return this.#fetch(unit);
    });
  }

  identities(heights: readonly number[]): Map<number, BlockIdentity> {
    return new Map(heights.map((height) => [height, this.#blocks.get(height) ?? { hash: '', records: 0 }]));
  }

  close(): void {
    this.#reader.close();
  }

  get #indexSha256(): string | undefined {
    return this.manifest.rows?.sha256;
  }

  get #list(): RowsIndex {
    if (this.#index === undefined) throw new Error('the list of rows was not read');
    return this.#index;
  }

  async #readIndex(range: Heights): Promise<RowsIndex> {
    const sha256 = this.#indexSha256;
    if (sha256 === undefined) throw new BadBlockError('no longer publishes rows');
    const path = rowsIndexPath(sha256);
    const { status, body } = await this.client.getBytes(`${this.base}/${path}`, INDEX_BYTES);
    if (body === undefined) throw new BadBlockError(`answers ${path} with status ${status}`);
    if (createHash('sha256').update(body).digest('hex') !== sha256)
      throw new BadBlockError(`has ${path} with other content than its manifest says`);
    const found = rowsIndex.safeParse(jsonOf(body));
    const why = found.success ? impossible(found.data, range, this.tip, this.limits) : 'is not a list of rows';
    if (!found.success || why !== undefined)
      throw new InputError(`${this.base}/${path} ${why}`, [
        'No mirror of this program has such a list. Check that --from is a mirror to be trusted.',
      ]);
    return found.data;
  }

  async #fetch(unit: Heights): Promise<Fetched> {
    const { files, spent } = this.#list;
    const fetched: string[] = [];
    const to = workFile(this.folder, '.parquet');
    try {
      const wanted = files.filter((file) => file.first <= unit.last && unit.first <= file.last);
      for (const file of wanted) {
        const path = workFile(this.folder, '.fetched');
        fetched.push(path);
        await this.#save(rowFilePath(file.first, file.last, file.sha256), file, path);
      }
      const parts = wanted.map(({ first, last, rows }, i) => ({ path: fetched[i] ?? '', first, last, rows }));
      const read = await this.#reader.read({ parts, runes: await this.#ownRunes(), hasSpent: spent, ...unit, to });
      await this.#compareBlocks(unit, read);
      const path = ledgerFile(unit.first, unit.last);
      await putInPlace(this.folder, to, path);
      const bytes = wanted.reduce((sum, file) => sum + file.bytes, 0);
      return { path, records: read.rows, bytes };
    } finally {
      for (const path of [...fetched, to]) rmSync(path, { force: true });
    }
  }

  /** Fetches the runes of the current list, unless they were fetched before. Returns the path of the checked file. */
  async #ownRunes(): Promise<string> {
    const { runes } = this.#list;
    const known = this.#runes;
    if (known?.sha256 === runes.sha256 && existsSync(known.path)) return known.path;
    const [fetched, to] = [workFile(this.folder, '.fetched'), workFile(this.folder, '.parquet')];
    try {
      await this.#save(rowRunesPath(runes.sha256), runes, fetched);
      const part = { path: fetched, rows: runes.rows, first: 0, last: 0 };
      await this.#reader.read({ parts: [part], hasSpent: false, first: 0, last: 0, to });
    } finally {
      rmSync(fetched, { force: true });
    }
    this.#runes = { sha256: runes.sha256, path: to };
    return to;
  }

  /**
   * Saves a file of the mirror. Rejects with a BadBlockError if the file is missing or does not have the hash in the
   * list.
   */
  async #save(path: string, { bytes, sha256 }: Pick<RowFile, 'bytes' | 'sha256'>, to: string): Promise<void> {
    const { status, digest } = await this.client.save(`${this.base}/${path}`, to, bytes);
    if (status !== 200) throw new BadBlockError(`need ${path}, but the mirror answered with status ${status}`);
    if (digest !== sha256) throw new BadBlockError(`need ${path}, which is damaged on the mirror`);
  }

  /**
   * Rejects with a BadBlockError for the first block whose hash, count or digest differs from the mirror's list of
   * blocks.
   */
  async #compareBlocks({ first, last }: Heights, { blocks }: Read): Promise<void> {
    const found = new Map(blocks.map((block) => [block.height, block]));
    const heights = Array.from({ length: last - first + 1 }, (_, i) => first + i);
    for (const height of heights) {
      const [ours, theirs] = [found.get(height), this.#blocks.get(height)];
      const [hash, records, digest] = [ours?.hash ?? '', ours?.records ?? 0, ours?.digest];
      if ((theirs?.hash ?? '') !== hash || (theirs?.records ?? 0) !== records || theirs?.digest !== digest)
        throw new BadBlockError(
          `differ from the mirror's pages, first in block ${height}: ${records} records with digest ${digest ?? '-'}, but the mirror lists ${theirs?.records ?? 0} with ${theirs?.digest ?? '-'}`,
        );
    }
  }
}

const jsonOf = (body: Uint8Array): unknown => attempt(() => JSON.parse(new TextDecoder().decode(body)));

/**
 * Maximum number of heights above the last file of rows, and of all heights without a file. A pull writes a file for each
 * hundred of them. On no network were 100,000 blocks in a row without runes since its first rune, and the sample has a gap
 * of 1.2 million heights.
 */
const [MOST_ABOVE, MOST_WITHOUT] = [100_000, 2_000_000];

/**
 * Describes the first impossible value in a list, such as too many rows. Returns undefined if there is none. `range` and
 * `tip` are those of the manifest.
 */
function impossible(
  { files, runes, tip: ownTip }: RowsIndex,
  range: Heights,
  tip: LastRead | undefined,
  limits: RowsLimits,
): string | undefined {
  if (ownTip?.height !== tip?.height || ownTip?.hash !== tip?.hash)
    return `ends at block ${ownTip?.height} (${ownTip?.hash}), but the manifest at block ${tip?.height} (${tip?.hash})`;
  if (files.length > MOST_BLOCKS) return `has ${files.length} files, more than ${MOST_BLOCKS}`;
  if (runes.rows > MOST_RUNES || runes.bytes > mostBytes(runes.rows, 1, limits))
    return `has a file of runes with ${runes.rows} rows and ${runes.bytes} bytes, which is too large`;
  let [before, without] = [-1, range.last - range.first + 1];
  for (const { first, last, rows, bytes } of files) {
    const what = `has a file of blocks ${first}..${last}`;
    if (first <= before || last < first || last - first >= HEIGHTS_PER_FILE || last > Math.min(range.last, HIGHEST))
      return `${what}, which is not a range of at most ${HEIGHTS_PER_FILE} blocks above ${before} and up to ${range.last}`;
    if (rows > MOST_RECORDS) return `${what} with ${rows} rows, more than ${MOST_RECORDS}`;
    if (bytes > mostBytes(rows, last - first + 1, limits)) return `${what} with ${bytes} bytes, too many for ${rows} rows`;
    [before, without] = [last, without - (last - first + 1)];
  }
  const above = range.last - Math.max(before, range.first);
  if (above > MOST_ABOVE) return `ends ${above} blocks above its last file, more than ${MOST_ABOVE}`;
  return without > MOST_WITHOUT ? `has no file for ${without} of its blocks, more than ${MOST_WITHOUT}` : undefined;
}
