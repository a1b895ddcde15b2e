/**
 * Tests the checks of rows, and digests that SQL computes from ledger rows. The digests equal digests of parsed records, whether or not the
 * SQL sorts the rows again.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { blockDigest } from '../../src/contract/blockDigest.ts';
import { Store } from '../../src/duckdb/store.ts';
import { columns } from '../../src/duckdb/table.ts';
import { LIMITS } from '../../src/limits.ts';
import { blocksOfRows, runesOfRows } from '../../src/rows/blocksOfRows.ts';
import { firstUnbalanced } from '../../src/rows/firstUnbalanced.ts';
import { copyTable, NODE_LEDGER, RUNES } from '../../src/rows/rowsForm.ts';
import { rowsOf, temporaryFolder } from '../support/build.ts';

const folder = temporaryFolder();
const [BLOCKS, ROWS] = [3, 9000];
let store: Store;
beforeAll(async () => {
  store = await Store.open({ memoryLimit: '1GB', threads: 1, scratch: join(folder, 'scratch') });
});
afterAll(() => store.close());

/** Writes ledger rows of this many runes. Some cells have characters that JSON escapes. Returns the paths of the rows and the runes. */
async function write(runes: number): Promise<readonly [rows: string, runes: string]> {
  const paths = [join(folder, `rows-${runes}.parquet`), join(folder, `runes-${runes}.parquet`)] as const;
  const values: Readonly<Record<string, string>> = {
    rune_id: `'1:' || i % ${runes}`,
    block_hash: `sha256('block ' || i % ${BLOCKS})`,
    block_height: `i % ${BLOCKS}`,
    tx_index: 'i // 7',
    event_index: 'i',
    tx_id: `sha256('tx ' || i // 7)`,
    output: 'CASE WHEN i % 3 > 0 THEN i % 5 END',
    address: `CASE WHEN i % 500 = 0 THEN 'a"\\' || chr(1) WHEN i % 4 > 0 THEN sha256('address ' || i) END`,
    receiver_address: `CASE WHEN i % 700 = 0 THEN chr(10) WHEN i % 4 = 1 THEN sha256('receiver ' || i) END`,
    amount: `CASE WHEN i % 11 > 0 THEN (i * i)::VARCHAR END`,
    operation: `CASE WHEN i % 2 = 0 THEN 'send' ELSE 'receive' END`,
    timestamp: '1700000000 + i',
    spent: 'NULL',
    id: `'1:' || i`,
    number: 'i',
    name: `CASE WHEN i % 3 = 0 THEN 'A"' || chr(31) ELSE 'A' END || i`,
    spaced_name: `'A•\\' || i`,
    divisibility: 'i % 39',
  };
  const cells = (form: typeof RUNES): string =>
    form.fields
      .map(({ column, kind }) => {
        const type = kind === 'integer' ? 'BIGINT' : kind === 'flag' ? 'BOOLEAN' : 'VARCHAR';
        return `(${values[column === 'block_height' && form === RUNES ? 'none' : column] ?? 'NULL'})::${type} AS "${column}"`;
      })
      .join(', ');
  await store.run(copyTable(`SELECT ${cells(NODE_LEDGER)} FROM range(${ROWS}) r(i)`, NODE_LEDGER.order, paths[0]));
  await store.run(copyTable(`SELECT ${cells(RUNES)} FROM range(${runes}) r(i)`, RUNES.order, paths[1]));
  return paths;
}

/** Computes the expected blocks in JavaScript, from parsed and sorted rows. */
async function expectedBlocks(rows: string, runes: string): Promise<unknown[]> {
  type Row = Readonly<Record<string, string | number | null>>;
  const found = (await rowsOf(
    `SELECT l.*, r.number, r.name, r.spaced_name, r.divisibility FROM '${rows}' l JOIN '${runes}' r ON r.id = rune_id`,
    store,
  )) as readonly Row[];
  const shifted = (units: string, decimals: number): string => {
    const digits = units.padStart(decimals + 1, '0');
    return decimals === 0 ? units : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
  };
  const blocks = Array.from({ length: BLOCKS }, (_, height) =>
    found.filter((row) => Number(row['block_height']) === height).sort((a, b) => Number(b['event_index']) - Number(a['event_index'])),
  );
  return blocks.map((block, height) => {
    const records = block.map((row) => {
      const hasOutput = row['output'] !== null;
      const location = {
        block_hash: `0x${row['block_hash']}`,
        block_height: height,
        tx_id: `0x${row['tx_id']}`,
        tx_index: Number(row['tx_index']),
        ...(hasOutput ? { vout: Number(row['output']), output: `0x${row['tx_id']}` } : {}),
        timestamp: Number(row['timestamp']),
      };
      return JSON.stringify({
        rune: { id: row['rune_id'], number: Number(row['number']), name: row['name'], spaced_name: row['spaced_name'] },
        address: row['address'] ?? undefined,
        receiver_address: row['receiver_address'] ?? undefined,
        amount: row['amount'] === null ? undefined : shifted(String(row['amount']), Number(row['divisibility'])),
        operation: row['operation'],
        location,
      });
    });
    return { height, hash: block[0]?.['block_hash'], records: block.length, digest: blockDigest(records.join()) };
  });
}

it('equal those of the parsed records, in any order of the rows', async () => {
  const [rows, runes] = await write(50);
  const expected = await expectedBlocks(rows, runes);
  const table = await runesOfRows([rows], [runes], store);
  expect(await blocksOfRows([rows], table, () => true, LIMITS, store)).toEqual(expected);
  const [first, ...others] = await blocksOfRows([rows], table, () => true, LIMITS, store);
  const isExpected = ({ height }: { readonly height: number }) => height !== first!.height;
  expect(await blocksOfRows([rows], table, isExpected, LIMITS, store)).toEqual([{ ...first, digest: undefined }, ...others]);
  const mixed = join(folder, 'mixed.parquet');
  await store.run(`COPY (FROM '${rows}' ORDER BY hash(event_index)) TO '${mixed}' (FORMAT parquet)`);
  expect(await blocksOfRows([mixed], table, () => true, LIMITS, store)).toEqual(expected);
});

it.each([
  ['send 9, receive 9', true],
  ['send 9, receive 8', false],
  ['send 9, receive 10', false],
  ['send 9, receive 4, receive 5', true],
  ['mint 7, receive 7', true],
  ['mint 7, receive 6', false],
  ['mint 7', false],
  ['mint 7, burn 7', true],
  ['mint 7, burn 8', true],
  ['mint 7, receive 5, burn 2', true],
  ['mint 7, receive 5, burn 1', false],
  // Burns of an address are units that it sent, so they excuse no lost ones.
  ['mint 7, receive 5, burn 2 a', false],
  ['send 60 a, mint 40, receive 70 b, burn 30, burn 10 a', true],
  ['etching, receive 100', true],
  ['etching, receive 99', false],
])('the rows "%s" of a transaction conserve a rune: %s', async (rows, isRight) => {
  const cells = rows.split(', ').map((row) => row.split(' '));
  const values = cells.map(
    ([operation, amount, address], i) =>
      `(5, 1, ${i}, '1:1', '${operation}', ${amount ? `'${amount}'` : 'NULL'}, ${address ? `'${address}'` : 'NULL'}::VARCHAR)`,
  );
  const path = join(folder, `${rows}.parquet`);
  await store.run(
    `COPY (FROM (VALUES ${values.join(', ')}) v(block_height, tx_index, event_index, rune_id, operation, amount, address)) TO '${path}'`,
  );
  const runes = await store.table(
    'runes',
    columns('id VARCHAR, divisibility BIGINT, premine VARCHAR, rune_json VARCHAR'),
    `SELECT '1:1' AS id, 0 AS divisibility, '100' AS premine, '' AS rune_json`,
  );
  const expected = isRight ? undefined : 'block 5 does not conserve rune 1:1 in its transaction 1';
  expect(await firstUnbalanced(path, runes, store)).toBe(expected);
});
