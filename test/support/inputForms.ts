/** Converts the recorded data to every input format. Builds of all formats must produce the same tree, byte for byte. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Store } from '../../src/duckdb/store.ts';
import { DIALECTS, type Dialect } from '../../src/pages/mirrorOptions.ts';
import { CONFORMANCE_INPUTS, filesBelow, RecordingLog, temporaryFolder, testBuild, treeOfRecords, writeFiles } from './build.ts';
import { type Activity, ndjson } from './records.ts';

const folder = temporaryFolder();
const INPUTS = [join(folder, 'ledger.csv'), CONFORMANCE_INPUTS[1] ?? ''];

/** Expected tree of a build of the recorded data, by dialect. A tree maps each path to the hash of the file's bytes. */
export const reference = new Map<Dialect, Record<string, string>>();

/** Store with the recorded data in the tables `ledger`, `runes` and `flat`. */
export let store: Store;

/** A response body. */
export interface Envelope {
  offset: number;
  total: number;
  results: Activity[];
}

/** Response bodies read from a build, and their records in served order (src/engine/render/servedOrder.ts). */
interface Saved {
  readonly responses: readonly string[];
  readonly records: readonly Activity[];
}
const known = new Map<Dialect, Saved>();

/**
 * Returns the pages of every block as saved responses, in the largest page size. Reads the pages only once, because most formats are made
 * from them.
 */
function saved(dialect: Dialect): Saved {
  const all = known.get(dialect) ?? readSaved(dialect);
  known.set(dialect, all);
  return all;
}

function readSaved(dialect: Dialect): Saved {
  const blocks = join(folder, dialect, 'runes/v1/blocks');
  const pages: { text: string; envelope: Envelope }[] = [];
  for (const path of filesBelow(blocks)) {
    const isShort = /^\d+\.json$/.test(path);
    if (!isShort && !/^\d+\/60\/\d+\.json$/.test(path)) continue;
    const text = readFileSync(join(blocks, path), 'utf8');
    const envelope = JSON.parse(text) as Envelope;
    if (!isShort || envelope.total <= 20) pages.push({ text, envelope });
  }
  const height = (envelope: Envelope) => envelope.results[0]?.location.block_height ?? 0;
  pages.sort((a, b) => height(a.envelope) - height(b.envelope) || a.envelope.offset - b.envelope.offset);
  return { responses: pages.map((p) => p.text), records: pages.flatMap((p) => p.envelope.results) };
}

/** Loads the wanted recorded blocks before the tests of the calling file. */
function useRecorded(isWanted: (height: number) => boolean): void {
  beforeAll(async () => {
    // Another test file in this process may have loaded other blocks.
    known.clear();
    const rows = readFileSync(CONFORMANCE_INPUTS[0] ?? '', 'utf8').split('\n');
    writeFileSync(INPUTS[0] ?? '', rows.filter((row, i) => i === 0 || isWanted(Number(row.split(',')[2]))).join('\n'));
    for (const dialect of DIALECTS) {
      await testBuild(join(folder, dialect), { inputs: INPUTS, dialect });
      reference.set(dialect, treeOfRecords(join(folder, dialect)));
    }
    store = await Store.open({ memoryLimit: '1GB', threads: 2, scratch: join(folder, 'scratch') });
    const [ledger, runes] = INPUTS;
    await store.run(`CREATE TABLE ledger AS FROM read_csv('${ledger}', all_varchar = true)`);
    await store.run(`CREATE TABLE runes AS FROM read_csv('${runes}', all_varchar = true)`);
    const digits = "lpad(amount, greatest(length(amount), divisibility::INTEGER + 1)::INTEGER, '0')";
    await store.run(`CREATE TABLE flat AS
      SELECT rune_id, number::INTEGER AS rune_number, name AS rune_name, spaced_name AS rune_spaced_name, address, receiver_address,
        CASE divisibility WHEN '0' THEN amount
          ELSE regexp_replace(${digits}, '(.{' || divisibility || '})$', '.\\1') END AS amount,
        operation, l.block_hash, l.block_height::BIGINT AS block_height, l.tx_id, l.tx_index::USMALLINT AS tx_index,
        output::BIGINT AS vout, CASE WHEN output IS NOT NULL THEN l.tx_id END AS output, l.timestamp::BIGINT AS timestamp,
        event_index::INTEGER AS event_index
      FROM ledger l JOIN runes r ON r.id = l.rune_id`);
  });
  afterAll(() => store.close());
}

type Files = Record<string, string | Uint8Array> | ((into: string) => Promise<void>);

const copy =
  (sql: string, name: string, options = '') =>
  (into: string) =>
    store.run(`COPY (${sql}) TO '${join(into, name)}' ${options}`);

const FORMS: Readonly<Record<string, () => Files>> = {
  'NDJSON in the contract dialect': () => ({ 'a.ndjson': ndjson(saved('contract').records) }),
  'NDJSON in the hiro dialect': () => ({ 'a.jsonl': ndjson(saved('hiro').records) }),
  'NDJSON with blank lines, Windows line ends and a name that says nothing': () => ({
    data: `\r\n${ndjson(saved('hiro').records).replaceAll('\n', '\r\n\r\n')}`,
  }),
  'a JSON array': () => ({ 'a.json': JSON.stringify(saved('contract').records) }),
  'a JSON array with a byte order mark': () => ({ 'a.json': `\ufeff${JSON.stringify(saved('contract').records)}` }),
  'a pretty-printed JSON array': () => ({ 'a.json': JSON.stringify(saved('hiro').records, null, 2) }),
  gzip: () => ({ 'a.ndjson.gz': gzipSync(ndjson(saved('contract').records)) }),
  zstd: () => async (into: string) => {
    writeFileSync(join(folder, 'plain.ndjson'), ndjson(saved('contract').records));
    await store.run(`COPY (FROM read_csv('${join(folder, 'plain.ndjson')}', columns = {'line': 'VARCHAR'}, delim = '\x07', quote = '', escape = '', header = false, auto_detect = false))
      TO '${join(into, 'a.ndjson.zst')}' (FORMAT csv, header false, delim '\x07', quote '', escape '', compression zstd)`);
  },
  'saved responses, one a file': () => Object.fromEntries(saved('hiro').responses.map((text, i) => [`${i}.json`, text])),
  'saved responses, pretty-printed': () =>
    Object.fromEntries(saved('contract').responses.map((text, i) => [`page-${i}.json`, JSON.stringify(JSON.parse(text), null, 1)])),
  'saved responses, one a line, in no order': () => ({ 'a.ndjson': [...saved('contract').responses].reverse().join('\n') }),
  'saved responses in an array': () => ({ 'a.json': `[${saved('hiro').responses.join(',')}]` }),
  'a ledger as Parquet, numbers as text': () => async (into: string) => {
    await copy('FROM ledger', 'ledger.parquet')(into);
    await copy('FROM runes', 'runes.parquet')(into);
  },
  'a ledger as Parquet with types of its own, in several files of whole blocks': () => async (into: string) => {
    const typed = `SELECT * REPLACE (block_height::DECIMAL(18, 0) AS block_height, tx_index::BIGINT AS tx_index, event_index::UINTEGER AS event_index,
      operation::ENUM('etching', 'mint', 'burn', 'send', 'receive') AS operation, timestamp::BIGINT AS timestamp) FROM ledger`;
    await copy(`${typed} WHERE block_height::INTEGER % 2 = 0`, 'ledger-even.parquet')(into);
    await copy(`${typed} WHERE block_height::INTEGER % 2 = 1`, 'ledger-odd.parquet')(into);
    await copy('SELECT * REPLACE (number::INTEGER AS number, divisibility::SMALLINT AS divisibility) FROM runes', 'r.parquet')(into);
  },
  'a ledger as CSV, gzipped, with its runes in two files': () => ({
    'export.csv.gz': gzipSync(readFileSync(INPUTS[0] ?? '')),
    ...Object.fromEntries(
      [0, 1].map((part) => {
        const [header, ...rows] = readFileSync(INPUTS[1] ?? '', 'utf8')
          .trimEnd()
          .split('\n');
        return [`runes-${part}.csv`, `${[header, ...rows.filter((_, i) => i % 2 === part || i < 5)].join('\n')}\n`];
      }),
    ),
  }),
  'a flat Parquet table': () => copy('FROM flat', 'a.parquet'),
  'a flat Parquet table in served order without event_index': () =>
    copy('SELECT * EXCLUDE (event_index) FROM flat ORDER BY block_height, tx_index DESC, flat.event_index DESC', 'a.parquet'),
  'a flat CSV table': () => copy('FROM flat', 'a.csv', '(header)'),
  'several forms together, blocks held twice': () => async (into: string) => {
    await copy('FROM flat WHERE block_height < 840025', 'flat.parquet')(into);
    writeFiles(into, { 'rest.ndjson': ndjson(saved('hiro').records.filter((r) => r.location.block_height >= 840_020)) });
  },
};

/**
 * Tests that every format of the wanted blocks builds the same tree. `dialectsOf` returns the dialects in which to test the format with
 * this index.
 */
export function describeForms(isWanted: (height: number) => boolean, dialectsOf: (form: number) => readonly Dialect[]): void {
  useRecorded(isWanted);

  describe('the recorded data', () => {
    for (const [form, [name, make]] of Object.entries(FORMS).entries()) {
      it(`as ${name}`, async () => {
        const work = temporaryFolder();
        const input = join(work, 'input');
        const files = make();
        writeFiles(input, typeof files === 'function' ? { '.keep': '' } : files);
        if (typeof files === 'function') await files(input);
        for (const dialect of dialectsOf(form)) {
          const out = join(work, dialect);
          const log = new RecordingLog();
          await testBuild(out, { inputs: [input], dialect, log });
          expect(treeOfRecords(out)).toEqual(reference.get(dialect));
          const notices = name.includes('held twice')
            ? ['4 block(s) are in several files with the same records; one copy of each is used']
            : [];
          // A real block may have records of only one operation, which looks like a filtered list and causes a notice.
          const filtered = name.startsWith('saved responses') ? [expect.stringContaining('have records of one operation only')] : [];
          expect(log.notices).toEqual([...notices, ...filtered]);
        }
      });
    }

    it('in any order of files and with any number of threads', async () => {
      const work = temporaryFolder();
      const { records } = saved('contract');
      const parts = [0, 1, 2].map((part) => ndjson(records.filter((r) => r.location.block_height % 3 === part)));
      for (const [i, order] of [
        [0, 1, 2],
        [2, 0, 1],
        [1, 2, 0],
      ].entries()) {
        writeFiles(join(work, String(i)), Object.fromEntries(order.map((part, place) => [`${place}.ndjson`, parts[part] ?? ''])));
        await testBuild(join(work, `out-${i}`), { inputs: [join(work, String(i))], threads: [1, 2, 5][i] ?? 1 });
        expect(treeOfRecords(join(work, `out-${i}`))).toEqual(reference.get('contract'));
      }
    });
  });
}
