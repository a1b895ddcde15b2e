/**
 * Tests that `writeTexts` makes a document from rows, each with one text of the document. The files equal those of a DocumentWriter that
 * gets complete documents, for any texts, and also if the rows are sorted in several parts.
 */
import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { sortedRows } from '../../src/duckdb/sortedRows.ts';
import { Store } from '../../src/duckdb/store.ts';
import { DocumentWriter } from '../../src/engine/archive/documentWriter.ts';
import { TEXTS, writeTexts } from '../../src/engine/archive/makeLevels.ts';
import { LIMITS } from '../../src/limits.ts';
import { temporaryFolder } from '../support/build.ts';
import { lineOf } from '../support/documents.ts';

const RANGE = { first: 0, last: 9 };
const FILE_BYTES = 20_000;
const limits = { ...LIMITS, documentMember: 1500 };
const files = new Map<string, Uint8Array>();
const put = (content: Uint8Array) => {
  const name = createHash('sha256').update(content).digest('hex');
  files.set(name, content);
  return name;
};

it('texts become the same files as documents, also in several parts', async () => {
  const store = await Store.open({ memoryLimit: '100MB', threads: 2, scratch: temporaryFolder() });
  try {
    // The texts have characters of one to four bytes. A document has up to 2,999 values, so its rows are in several chunks.
    const value = (document: number, i: number) => `${'•😀é'.repeat(document % 4)}${(document * 7919 + i * 104729) % 99991}`;
    const counts = Array.from({ length: 300 }, (_, document) => (document === 120 ? 2999 : document % 23));
    const documents = counts.map((count, document) => ({
      key: String(document).padStart(8, '0'),
      values: ['head', ...Array.from({ length: count }, (_, i) => value(document, i))],
    }));
    const plain = new DocumentWriter(FILE_BYTES, limits, (parts) => put(Buffer.concat(parts)));
    for (const document of documents) plain.addLines(lineOf(document));
    const expected = await plain.finish(RANGE);
    expect(expected?.files.length).toBeGreaterThan(1);
    // The limit of a member is the length of a JavaScript string, not a number of bytes.
    let [members, size] = [0, limits.documentMember];
    for (const { key, values } of documents) {
      const { length } = `${key}\t${values.join('\t')}\n`;
      if (size + length > limits.documentMember) [members, size] = [members + 1, 0];
      size += length;
    }
    const directories = expected?.files.map(({ file, directory }) => gunzipSync(files.get(file)?.subarray(-directory) ?? '').toString());
    expect(directories?.flatMap((text) => JSON.parse(text) as unknown[])).toHaveLength(members);

    const cells = documents.flatMap(({ key, values }, rank) => [
      `(${rank}, -1, chr(10) || '${key}' || chr(9) || 'head')`,
      ...values.slice(1).map((one, place) => `(${rank}, ${place}, chr(9) || '${one}')`),
    ]);
    await store.run(`CREATE TEMP TABLE texts AS SELECT * FROM (VALUES ${cells.join(', ')}) AS t(rank, place, text)`);
    // Ranks must sort as numbers. As text, 10 sorts before 9.
    const rows = { rows: 'SELECT * FROM texts ORDER BY hash(text)', key: 'rank', within: 'place' };
    for (const sortedAtOnce of [LIMITS.sortedAtOnce, 900]) {
      const writer = new DocumentWriter(FILE_BYTES, limits, (parts) => put(Buffer.concat(parts)));
      await writeTexts(writer, sortedRows({ ...rows, select: TEXTS }, { keptRecords: 1, sortedAtOnce }, store));
      expect(await writer.finish(RANGE)).toEqual(expected);
    }
    const writer = new DocumentWriter(FILE_BYTES, limits, (parts) => put(Buffer.concat(parts)));
    await writeTexts(writer, store.stream(`SELECT ${TEXTS} FROM texts LIMIT 0`));
    expect(await writer.finish(RANGE)).toBe(undefined);
  } finally {
    store.close();
  }
});
