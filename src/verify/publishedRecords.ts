/**
 * Reads the records of all blocks from their pages of the largest size, as the canonical records from which builds make files, and renders
 * them again. A page is right if it has the same bytes, so its form is only checked in detail to say what is wrong.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { envelope } from '../contract/answerSchemas.ts';
import { ACTIVITY_FIELDS } from '../contract/fields.ts';
import { type BlockDigest, misfitOf } from '../contract/schemas.ts';
import { type LineFile, writeLines } from '../disk/lineFile.ts';
import { readRegularFile } from '../disk/regularFile.ts';
import { portionsOf } from '../duckdb/blockRanges.ts';
import { isAboutFile } from '../duckdb/duckdbErrors.ts';
import { readFiles, readLines } from '../duckdb/readFilesSql.ts';
import { int, type Store } from '../duckdb/store.ts';
import type { TableWith } from '../duckdb/table.ts';
import { renderBatches } from '../engine/render/renderBatches.ts';
import type { Batch, BatchBlock } from '../engine/render/servedOrder.ts';
import { RECORDS, type Records, validity } from '../input/canonicalRecordSql.ts';
import { countCrossing } from '../limits.ts';
import { BETWEEN, ENVELOPE_TAIL, envelopeHead } from '../pages/envelope.ts';
import { blockStem, digestsPath, pagePath } from '../pages/filePaths.ts';
import { defaultLimit, maximumLimit, type Site } from '../pages/mirrorOptions.ts';
import { spellHex } from '../pages/parseIds.ts';
import type { Window } from '../pages/parseQuery.ts';
import { yieldNow } from '../yieldNow.ts';
import type { ArchiveVerification, BlockPart } from './checkArchive.ts';
import { damageOf } from './findings.ts';
import type { Verification } from './verification.ts';

const LOCATION = 'block_hash VARCHAR, block_height BIGINT, tx_id VARCHAR, tx_index BIGINT, vout BIGINT, output VARCHAR, "timestamp" BIGINT';
const RECORD = `rune STRUCT(id VARCHAR, number BIGINT, name VARCHAR, spaced_name VARCHAR), address VARCHAR, receiver_address VARCHAR,
  amount VARCHAR, operation VARCHAR, location STRUCT(${LOCATION})`;

/** SQL expression of each column of RECORDS that is no column of the record or its location. Hex has no prefix. */
const CELLS: Readonly<Record<string, string>> = {
  source: '0::INTEGER',
  rune_id: 'rune.id',
  rune_number: 'rune.number',
  rune_name: 'rune.name',
  rune_spaced_name: 'rune.spaced_name',
  block_hash: 'right(block_hash, 64)',
  tx_id: 'right(tx_id, 64)',
  event_index: 'NULL::BIGINT',
};
const COLUMNS = Object.keys(RECORDS).map((name) => `"${name}"`);

/** SQL condition for records whose values follow the rules of input. Their block hashes are compared with those of the blocks. */
const IS_VALID = validity(
  ACTIVITY_FIELDS.filter(({ column }) => column !== 'block_hash').map((field) => ({
    field,
    shape: field.kind === 'integer' ? 'integer' : 'canonical',
  })),
);

/** A block in the files of digests. `parts` is what the archive has of it; undefined if it has no pages. */
interface FoundBlock {
  readonly listed: BlockDigest;
  readonly parts: readonly BlockPart[] | undefined;
}

export class PublishedRecords {
  readonly #files: string[] = [];
  /** Number of blocks that were read. */
  #done = 0;

  /** `heights` has the blocks of `check`. `archive` is undefined if the output has no pages in an archive. */
  constructor(
    private readonly check: Verification,
    private readonly heights: TableWith<'block_height' | 'block_hash' | 'records'>,
    private readonly archive: ArchiveVerification | undefined,
  ) {}

  /** Yields all blocks, one part after another. Adds a finding for each block that cannot be rendered, and omits it. */
  async *render(): AsyncGenerator<FoundBlock & { readonly batch: Batch; readonly block: BatchBlock }> {
    const { blocks, limits, progress, site, store } = this.check;
    const portions = portionsOf(blocks, limits.linesPerLoad);
    if (portions.length > 1) countCrossing('linesPerLoad');
    const spare: Batch['bytes'][] = [];
    // While a portion is rendered, the next one is loaded, and the pages of the one after it are read.
    const loader = portions.length > 1 ? await this.check.openBeside() : store;
    let reading = this.#readPages(portions[0] ?? []);
    let loading = this.#load(reading, loader);
    const readNext = (i: number) => handled(reading.then(() => this.#readPages(portions[i] ?? [])));
    try {
      reading = readNext(1);
      for (let i = 2; i <= portions.length + 1; i += 1) {
        const { found, file } = await loading;
        loading = handled(this.#load(reading, loader));
        reading = readNext(i);
        const records = await this.#checked(found, file);
        if (records === undefined) continue;
        const rest = found.values();
        const readable = found.map(({ listed }) => listed);
        for await (const batch of renderBatches(store, site, readable, limits, records, spare)) {
          for (const block of batch.blocks) {
            const { value } = rest.next();
            if (value !== undefined) yield { ...value, batch, block };
          }
          spare.push(batch.bytes);
        }
      }
    } finally {
      await Promise.allSettled([loading, reading]);
      if (loader !== store) loader.close();
    }
    progress.end();
  }

  /** Writes the records of blocks as lines. Returns the blocks that can be read. Adds a finding for each of the others. */
  async #readPages(blocks: readonly BlockDigest[]) {
    const { limits, progress, scratch, store } = this.check;
    const found: FoundBlock[] = [];
    const lines = await writeLines(join(scratch, `${store.nameOf('records')}.ndjson`), async (to) => {
      for (const listed of blocks) {
        progress.show(this.#done, this.check.blocks.length, 'blocks');
        this.#done += 1;
        await yieldNow();
        const read = this.#pagesOf(listed);
        if (read === undefined) continue;
        let line = 0;
        for (const { bytes, ...window } of read.pages)
          for (const part of partsOf(bytes, envelopeHead(window, listed.records).length, limits.lineBytes)) {
            to.addBytes(`{"height":${listed.height},"line":${line},"results":[`, part, ']}');
            line += 1;
          }
        found.push({ listed, parts: read.parts });
      }
    });
    return { found, lines };
  }

  /** Returns a view of all records that were rendered. */
  async records(): Promise<Records> {
    const { store } = this.check;
    if (this.#files.length === 0) return store.table('records', RECORDS);
    return store.view('records', RECORDS, `SELECT ${COLUMNS} FROM ${readFiles('parquet', this.#files)}`);
  }

  /** Reads the pages that have all records of a block. Adds a finding and returns undefined if one of them is damaged. */
  #pagesOf(block: BlockDigest) {
    const { root, manifest, findings, site } = this.check;
    if (block.records > manifest.records) {
      findings.add(`${digestsPath(block.height)} lists ${block.records} records for block ${block.height}, more than the whole build has`);
      return undefined;
    }
    let place = `block ${block.height}`;
    try {
      const archived = this.archive?.read(block);
      const pages = largestPages(block, site).map((window, i) => {
        const page = site.layout === 'files' ? undefined : archived?.pages[i];
        if (site.layout === 'archive' && page === undefined) throw new Error('a page is missing in the archive');
        place = page?.path ?? pagePath(blockStem(String(block.height)), window, site);
        const bytes = page?.bytes ?? readRegularFile(join(root, place));
        const why = misfitOfPage(bytes, window, block);
        if (why !== undefined) throw new Error(why);
        return { ...window, path: place, bytes };
      });
      return { pages, parts: archived?.parts };
    } catch (error) {
      findings.add(damageOf(error) ?? `${place}: ${misfitOf(error)}`);
      return undefined;
    }
  }

  /** Loads the records of pages into a Parquet file, by `loader`. Returns no file if there are none, or after findings. */
  async #load(reading: Promise<{ readonly found: readonly FoundBlock[]; readonly lines: LineFile }>, loader: Store) {
    const { found, lines } = await reading;
    if (found.length === 0) return { found, file: undefined };
    const { site, scratch } = this.check;
    const output = site.dialect === 'contract' ? 'substr(output, 3)' : `split_part(output, ':', 1)`;
    const cells = Object.keys(RECORDS).map((name) => `${name === 'output' ? output : (CELLS[name] ?? `"${name}"`)} AS "${name}"`);
    const pages = readLines(lines, `height: 'BIGINT', line: 'BIGINT', results: 'STRUCT(${RECORD})[]'`);
    // No line has a million records: a record takes more than a hundred bytes.
    const records = `SELECT height, -1000000 * line - generate_subscripts(results, 1) AS ord, unnest(results) AS record FROM ${pages}`;
    const flat = `SELECT * EXCLUDE (location), unnest(location) FROM (SELECT height, ord, unnest(record) FROM (${records}))`;
    const rows = `SELECT *, block_height IS DISTINCT FROM height OR NOT (${IS_VALID}) AS is_wrong FROM (SELECT height, ${cells.join(', ')} FROM (${flat}))`;
    try {
      const columns = { height: 'BIGINT', ...RECORDS, is_wrong: 'BOOLEAN' } as const;
      return { found, file: await loader.writeRows(rows, join(scratch, loader.nameOf('records')), undefined, columns) };
    } catch (error) {
      if (!isAboutFile(error)) throw error;
      if (found.filter(({ listed }) => this.#explain(listed)).length === 0) throw error;
      return { found, file: undefined };
    } finally {
      rmSync(lines.file);
    }
  }

  /** Returns the relation of loaded records, or adds findings and returns undefined if a value is wrong. */
  async #checked(found: readonly FoundBlock[], file: string | undefined): Promise<string | undefined> {
    if (file === undefined) return undefined;
    const loaded = readFiles('parquet', [file]);
    const wrong = await this.check.store.rows(
      `SELECT l.height AS height FROM ${loaded} AS l JOIN ${this.heights} AS h ON h.block_height = l.height
       GROUP BY l.height HAVING bool_or(is_wrong OR l.block_hash IS DISTINCT FROM h.block_hash) OR count(*) <> min(h.records)`,
      { height: int },
    );
    for (const { height } of wrong)
      for (const { listed } of found)
        if (listed.height === height && !this.#explain(listed))
          this.check.findings.add(`block ${height}: a record breaks the rules of the API`);
    if (wrong.length > 0) return undefined;
    this.#files.push(file);
    return loaded;
  }

  /** Adds a finding that says what is wrong with the values in the pages of a block. False if none is found. */
  #explain(block: BlockDigest): boolean {
    const { findings, site } = this.check;
    const schema = envelope(site.dialect);
    const hash = spellHex(block.hash, site.dialect);
    for (const { path, bytes, limit, offset } of this.#pagesOf(block)?.pages ?? []) {
      try {
        const { results } = schema.parse(JSON.parse(bytes.toString()));
        const records = Math.min(limit, block.records - offset);
        if (results.length !== records) throw new Error(`it has ${results.length} records, expected ${records}`);
        const i = results.findIndex(({ location: l }) => l.block_height !== block.height || l.block_hash !== hash);
        const other = results[i]?.location;
        if (other === undefined) continue;
        const place = `${other.block_height}, ${other.block_hash}`;
        findings.add(`block ${block.height}: record ${offset + i} belongs to block ${place}, but ${digestsPath(block.height)} has ${hash}`);
      } catch (error) {
        findings.add(`${path}: ${misfitOf(error)}`);
      }
      return true;
    }
    return false;
  }
}

/** Marks the rejection of a promise as handled that is awaited only later. */
function handled<Value>(promise: Promise<Value>): Promise<Value> {
  promise.catch(() => undefined);
  return promise;
}

/** Yields the records of a page, which begin at `begin`, in parts of at least `least` bytes. */
function* partsOf(bytes: Buffer, begin: number, least: number): Generator<Buffer> {
  const end = bytes.length - ENVELOPE_TAIL.length;
  for (let at = begin; at < end; ) {
    const next = end - at > least ? bytes.indexOf(BETWEEN, at + least) : -1;
    if (next >= 0) countCrossing('lineBytes');
    yield bytes.subarray(at, next < 0 ? end : next + 1);
    at = next < 0 ? end : next + 2;
  }
}

/** Describes the text around the records of a page that is another one than expected. No page is empty or has a line feed. */
function misfitOfPage(bytes: Buffer, window: Window, block: BlockDigest): string | undefined {
  const head = envelopeHead(window, block.records);
  const begin = bytes.toString('utf8', 0, head.length);
  if (begin !== head) return `it begins with ${JSON.stringify(begin)}, expected ${JSON.stringify(head)}`;
  const first = bytes.toString('latin1', head.length, head.length + 1);
  const end = bytes.toString('latin1', bytes.length - ENVELOPE_TAIL.length);
  return first === '{' && end === ENVELOPE_TAIL && !bytes.includes('\n') ? undefined : 'it is not a complete page of rune-activity-mirror';
}

/** Lists the block's pages of the largest size, which together have all of its records. A list of one page may have no others. */
function largestPages({ records }: BlockDigest, site: Site): Window[] {
  const limit = site.layout === 'files' && records <= defaultLimit(site) ? defaultLimit(site) : maximumLimit(site);
  return Array.from({ length: Math.max(Math.ceil(records / limit), 1) }, (_, i) => ({ limit, offset: i * limit }));
}
