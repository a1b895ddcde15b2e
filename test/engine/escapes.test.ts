/** Tests the SQL that finds texts with characters to escape: too few would make wrong JSON, and too many cost time. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { int, Store } from '../../src/duckdb/store.ts';
import { JSON_TEXT, needsEscapes } from '../../src/engine/render/renderRecordSql.ts';
import { temporaryFolder } from '../support/build.ts';

let store: Store;
beforeAll(async () => {
  store = await Store.open({ memoryLimit: '1GB', threads: 1, scratch: temporaryFolder() });
  await store.run(JSON_TEXT);
});
afterAll(() => store.close());

it('finds each character that JSON must escape, and no other character', async () => {
  // All code points, except surrogates.
  const codes = `FROM range(${0xd800}) AS r(c) UNION ALL FROM range(${0xe000}, ${0x110000}) AS r(c)`;
  const characters = `SELECT c, chr(c::INTEGER) AS t FROM (${codes})`;
  const rows = await store.rows(`SELECT c AS code FROM (${characters}) WHERE ${needsEscapes("'a' || t || 'b'")} ORDER BY c`, { code: int });
  expect(rows.map(({ code }) => code)).toEqual([...Array.from({ length: 0x20 }, (_, code) => code), 0x22, 0x5c]);
  expect(
    await store.number(`SELECT count(*) AS number FROM (${characters}) WHERE c < 1000 AND (json_text(t) <> t) <> ${needsEscapes('t')}`),
  ).toBe(0);
});
