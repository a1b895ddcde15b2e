/**
 * Tests records without an address, from raw blocks to answers. Every format omits the missing field, and everything
 * else stays the same.
 */
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Dialect } from '../../../src/pages/mirrorOptions.ts';
import type { LedgerRow } from '../../../src/runes/ledgerRows.ts';
import { temporaryFolder, testBuild, writeFiles } from '../../support/build.ts';
import { exportOf, rowsWithoutAddress } from '../../support/nodeRows.ts';
import { check } from '../../support/outputs.ts';
import { testPull } from '../../support/pull.ts';
import { ndjson } from '../../support/records.ts';
import { type LocalHost, startServer } from '../../support/server.ts';

const rows = rowsWithoutAddress();
const input = join(temporaryFolder(), 'input');
beforeAll(() => writeFiles(input, exportOf(rows)));

const ALICE = rows.ledger.find(({ address }) => address !== null)?.address;
const BOB = rows.ledger.find(({ receiver_address: receiver }) => receiver !== null)?.receiver_address;

/** Returns the addresses, output and amount of a record. Omits missing values. */
const told = ({ operation, address, receiver_address, location, amount }: ReturnType<typeof recordOf>) =>
  Object.fromEntries(
    Object.entries({ operation, address, receiver_address, vout: location.vout, amount }).filter(([, value]) => value !== undefined),
  );

/** Returns the record that a dialect must have for a row, with keys in the right order. */
function recordOf(row: LedgerRow, dialect: Dialect) {
  const rune = rows.runes.find(({ id }) => id === row.rune_id);
  if (rune === undefined) throw new Error(`no rune ${row.rune_id}`);
  const [prefix, suffix] = dialect === 'contract' ? ['0x', ''] : ['', `:${row.output}`];
  const units = row.amount?.toString().padStart(rune.divisibility + 1, '0');
  const decimals = rune.divisibility === 0 ? '' : `.${units?.slice(-rune.divisibility)}`;
  const parties = {
    ...(row.address === null ? {} : { address: row.address }),
    ...(row.receiver_address === null ? {} : { receiver_address: row.receiver_address }),
    ...(units === undefined ? {} : { amount: `${units.slice(0, units.length - rune.divisibility)}${decimals}` }),
  };
  const output = row.output === null ? {} : { vout: row.output, output: `${prefix}${row.tx_id}${suffix}` };
  const [time, place] = [
    { timestamp: row.timestamp },
    { block_hash: prefix + row.block_hash, block_height: row.block_height, tx_id: prefix + row.tx_id, tx_index: row.tx_index },
  ];
  const named = { rune: { id: rune.id, number: rune.number, name: rune.name, spaced_name: rune.spaced_name } };
  const { operation } = row;
  return dialect === 'contract'
    ? { ...named, ...parties, operation, location: { ...place, ...output, ...time } }
    : { ...named, operation, location: { ...place, ...time, ...output }, ...parties };
}

/** Returns the records of a block in served order (src/engine/render/servedOrder.ts). */
const served = (height: number, dialect: Dialect, isWanted: (row: LedgerRow) => boolean = () => true) =>
  rows.ledger
    .filter((row) => row.block_height === height && isWanted(row))
    .sort((a, b) => b.tx_index - a.tx_index || b.event_index - a.event_index)
    .map((row) => recordOf(row, dialect));

async function withServer<T>(out: string, work: (host: LocalHost) => Promise<T>): Promise<T> {
  const host = await startServer(out);
  try {
    return await work(host);
  } finally {
    await host.close();
  }
}

it('the test data has rows of every kind', () => {
  expect([1, 2, 3].map((height) => served(height, 'hiro').map(told))).toEqual([
    [
      { operation: 'burn', vout: 0, amount: '0.07' },
      { operation: 'receive', vout: 2, amount: '0.50' },
      { operation: 'receive', address: ALICE, vout: 1, amount: '1.00' },
      { operation: 'etching' },
    ],
    [
      { operation: 'send', address: ALICE, receiver_address: BOB, vout: 1, amount: '0.24' },
      { operation: 'receive', address: BOB, vout: 1, amount: '0.24' },
      { operation: 'burn', address: ALICE, vout: 3, amount: '0.01' },
      { operation: 'burn', address: ALICE, vout: 0, amount: '0.15' },
      { operation: 'send', address: ALICE, vout: 2, amount: '0.40' },
      { operation: 'receive', vout: 2, amount: '0.40' },
      { operation: 'send', address: ALICE, receiver_address: BOB, vout: 1, amount: '0.20' },
      { operation: 'send', receiver_address: BOB, vout: 1, amount: '0.50' },
      { operation: 'receive', address: BOB, vout: 1, amount: '0.70' },
      { operation: 'etching' },
    ],
    [
      { operation: 'burn', amount: '7' },
      { operation: 'mint', amount: '7' },
      { operation: 'burn', amount: '0.40' },
      { operation: 'burn', address: BOB, amount: '0.94' },
      { operation: 'receive', vout: 1, amount: '7' },
      { operation: 'mint', amount: '7' },
    ],
  ]);
});

describe.each([
  { layout: 'files', dialect: 'hiro' },
  { layout: 'archive', dialect: 'contract' },
] as const)('in $layout, $dialect', ({ layout, dialect }) => {
  it('records without an address omit the fields, verify, and rebuild the same mirror', async () => {
    const work = temporaryFolder();
    const out = join(work, 'out');
    const { manifest } = await testBuild(out, { inputs: [input], layout, dialect, parquet: true });
    expect(manifest).toMatchObject({ records: rows.ledger.length, blocks: 3 });
    await check(out);
    await withServer(out, async (host) => {
      const get = async (target: string) => (await host.send('GET', `/runes/v1/${target}`)).body;
      for (const height of [1, 2, 3]) {
        const records = served(height, dialect);
        const body = { limit: 60, offset: 0, total: records.length, results: records };
        expect(await get(`blocks/${height}/activity?limit=60`)).toBe(JSON.stringify(body));
        writeFiles(work, { [`records/${height}.ndjson`]: ndjson(records) });
      }
      const burns = served(3, dialect, ({ operation }) => operation === 'burn');
      expect(JSON.parse(await get('blocks/3/activity?operation_type=burn'))).toMatchObject({ total: 3, results: burns });
      const cenotaph = served(3, dialect, ({ tx_index: index }) => index === 2);
      const [{ location }] = cenotaph as [ReturnType<typeof recordOf>];
      expect(JSON.parse(await get(`transactions/${location.tx_id}/activity`))).toMatchObject({ total: 4, results: cenotaph });
      expect(JSON.parse(await get('stats.json'))).toMatchObject({
        records: rows.ledger.length,
        operations: { etching: 2, mint: 2, burn: 6, send: 4, receive: 6 },
      });
      await testPull(`http://127.0.0.1:${host.port}`, join(work, 'pulled'));
    });
    cpSync(join(out, 'rows'), join(work, 'parquet'), { recursive: true });
    for (const form of ['records', 'parquet', 'pulled']) {
      const again = await testBuild(join(work, `from-${form}`), { inputs: [join(work, form)], dryRun: true });
      expect([form, again.manifest.digest]).toEqual([form, manifest.digest]);
    }
  });
});
