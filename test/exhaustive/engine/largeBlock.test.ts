/**
 * Tests a block that is much larger than a file of the archive, because one valid transaction can make millions of
 * records. The variable RECORDS sets the number: RECORDS=3000000 npm run test:exhaustive -- largeBlock
 */
import { join } from 'node:path';
import { env } from 'node:process';
import { beforeAll, describe, expect, it } from 'vitest';
import { Store } from '../../../src/duckdb/store.ts';
import { FetchMirror } from '../../../src/serve/fetchHost.ts';
import { fileServer, readArchive } from '../../support/archives.ts';
import { temporaryFolder, testBuild } from '../../support/build.ts';
import { check } from '../../support/outputs.ts';
import { randomFor } from '../../support/seed.ts';

const RECORDS = Number(env['RECORDS'] ?? 150_000);
const HEIGHT = 900_000;
/** Number of records of each transaction except the first, which has half of all records. */
const RECORDS_EACH = 1000;
const LARGE = RECORDS / 2;
const OBJECT_SIZE = Math.ceil((RECORDS / 150_000) * 64 * 1024);

const work = temporaryFolder();
const [out, input] = [join(work, 'out'), join(work, 'in')];
const txId = (tx: number) => `a${tx.toString(16).padStart(63, '0')}`;

interface Answer {
  readonly total: number;
  readonly results: readonly { readonly amount: string }[];
}

describe(`a block of ${RECORDS} records`, () => {
  let mirror: FetchMirror;
  const ask = async (target: string): Promise<Answer> => {
    const response = await mirror.answer(new Request(`http://127.0.0.1/runes/v1/${target}`));
    expect([target, response?.status]).toEqual([target, 200]);
    return (await response?.json()) as Answer;
  };
  /** The amount of a record is its position in the block, so the amounts identify the records of a window. */
  const places = ({ results }: Answer) => results.map(({ amount }) => Number(amount));
  const from = (first: number, count: number, step = 1) => Array.from({ length: Math.max(count, 0) }, (_, i) => first + i * step);

  beforeAll(async () => {
    const store = await Store.open({ memoryLimit: '1GB', threads: 1, scratch: join(work, 'scratch') });
    await store.run(`COPY (
      SELECT i::VARCHAR AS amount, '840000:1' AS rune_id, 1 AS rune_number, 'LARGE' AS rune_name, 'LARGE' AS rune_spaced_name,
        'bc1q' || lpad((i % 700)::VARCHAR, 38, 'q') AS address, NULL::VARCHAR AS receiver_address,
        CASE WHEN i % 1000 = 7 THEN 'burn' ELSE 'receive' END AS operation, '${'b'.padStart(64, '0')}' AS block_hash,
        ${HEIGHT} AS block_height, 'a' || lpad(to_hex(tx), 63, '0') AS tx_id, ${RECORDS} - tx AS tx_index, (i % 40)::INTEGER AS vout,
        NULL::VARCHAR AS "output", 1750000000 AS "timestamp", ${RECORDS} - i AS event_index
      FROM (SELECT i, CASE WHEN i < ${LARGE} THEN 0 ELSE 1 + (i - ${LARGE}) // ${RECORDS_EACH} END AS tx FROM range(${RECORDS}) r(i)))
      TO '${input}.parquet' (FORMAT parquet)`);
    store.close();
    await testBuild(out, { inputs: [`${input}.parquet`], layout: 'archive', objectSize: OBJECT_SIZE });
    mirror = new FetchMirror(fileServer(out).fetchFile, Number.POSITIVE_INFINITY);
  }, 600_000);

  it('is in many files with one part each, and passes verification', async () => {
    const { root } = readArchive(out);
    expect(root.segments.length).toBeGreaterThan(8);
    expect(root.segments.every(({ first, last, part }) => first === HEIGHT && last === HEIGHT && part !== undefined)).toBe(true);
    await check(out);
  }, 600_000);

  it('gives right answers to windows of the block at every border between its files, and elsewhere', async () => {
    const random = randomFor('windows of a large block');
    const borders = readArchive(out).root.segments.map(({ part }) => (part?.page ?? 0) * 60);
    const offsets = [
      ...borders.flatMap((border) => [border - 1, border]),
      RECORDS - 1,
      RECORDS,
      RECORDS + 7,
      ...from(0, 40).map(() => random() * RECORDS),
    ];
    for (const offset of offsets.map(Math.floor).filter((at) => at >= 0)) {
      const answer = await ask(`blocks/${HEIGHT}/activity?limit=60&offset=${offset}`);
      expect([answer.total, places(answer)]).toEqual([RECORDS, from(offset, Math.min(60, RECORDS - offset))]);
    }
  });

  it('gives right answers to windows of an operation that few records of each file have', async () => {
    const total = RECORDS / 1000;
    for (const offset of [0, 1, Math.floor(total / 2), total - 3, total]) {
      const answer = await ask(`blocks/${HEIGHT}/activity?operation_type=burn&limit=60&offset=${offset}`);
      expect([answer.total, places(answer)]).toEqual([total, from(7 + offset * 1000, Math.min(60, total - offset), 1000)]);
    }
  });

  it('gives right answers to windows of its transactions, the largest of which is in many files', async () => {
    for (const offset of [0, 59, Math.floor(LARGE / 3), LARGE - 1, LARGE]) {
      const answer = await ask(`transactions/${txId(0)}/activity?limit=60&offset=${offset}`);
      expect([answer.total, places(answer)]).toEqual([LARGE, from(offset, Math.min(60, LARGE - offset))]);
    }
    for (const tx of [1, 2, Math.floor(LARGE / RECORDS_EACH / 2), LARGE / RECORDS_EACH]) {
      const answer = await ask(`transactions/${txId(tx)}/activity?limit=50&offset=${RECORDS_EACH - 30}`);
      expect([answer.total, places(answer)]).toEqual([RECORDS_EACH, from(LARGE + tx * RECORDS_EACH - 30, 30)]);
    }
    expect(await ask(`transactions/${txId(LARGE / RECORDS_EACH + 1)}/activity`)).toMatchObject({ total: 0, results: [] });
  });

  it('does not change when a block is added', async () => {
    const store = await Store.open({ memoryLimit: '1GB', threads: 1, scratch: join(work, 'scratch') });
    await store.run(`COPY (SELECT * REPLACE (${HEIGHT + 1} AS block_height, lpad('c', 64, '0') AS block_hash, 'f' || substr(tx_id, 2) AS tx_id)
      FROM read_parquet('${input}.parquet') WHERE event_index <= 100) TO '${join(work, 'next.parquet')}' (FORMAT parquet)`);
    store.close();
    const before = readArchive(out).root.segments.map(({ file }) => file);
    const options = {
      inputs: [`${input}.parquet`, join(work, 'next.parquet')],
      layout: 'archive',
      objectSize: OBJECT_SIZE,
    } as const;
    expect(await testBuild(out, options)).toMatchObject({ wasFull: false });
    expect(readArchive(out).root.segments.map(({ file }) => file)).toEqual([...before, expect.any(String)]);
    await check(out);
  }, 600_000);
});
