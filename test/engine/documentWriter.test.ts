/** Tests that documents which threads compress come into the same files as documents which the main thread compresses. */
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { DocumentWriter } from '../../src/engine/archive/documentWriter.ts';
import { MOST_INFLATED } from '../../src/format/root.ts';
import { lineOf } from '../support/documents.ts';
import { limitsWith } from '../support/limits.ts';
import { hex } from '../support/records.ts';

const RANGE = { first: 0, last: 9 };

/** Writes documents with these numbers of characters. Waits at `pauses`, where compressed members can arrive. */
async function written(sizes: readonly number[], documentMember: number, pauses: (i: number) => boolean) {
  const files: Buffer[] = [];
  const put = (content: Uint8Array) => `${files.push(Buffer.from(content))}`;
  const writer = new DocumentWriter(4000, limitsWith({ documentMember }), (parts) => put(Buffer.concat(parts)));
  for (const [i, size] of sizes.entries()) {
    if (pauses(i)) await setImmediate();
    const text = Array.from({ length: size }, (_, k) => String.fromCharCode(97 + ((i * 31 + k * k) % 26))).join('');
    writer.addLines(lineOf({ key: String(i).padStart(8, '0'), values: [text] }));
  }
  return { level: await writer.finish(RANGE), files };
}

it('makes the same files, whether members are compressed here or in threads', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(900), { maxLength: 200 }),
      fc.integer({ min: 1, max: 2000 }),
      fc.uniqueArray(fc.nat(200), { maxLength: 40 }),
      async (sizes, documentMember, pauses) => {
        const expected = await written(sizes, documentMember, () => true);
        expect(await written(sizes, documentMember, (i) => pauses.includes(i))).toEqual(expected);
      },
    ),
    { numRuns: 60 },
  );
});

it('writes files although no compressed member can arrive', async () => {
  let files = 0;
  const put = () => {
    files += 1;
    return String(files);
  };
  const writer = new DocumentWriter(4000, limitsWith({ documentMember: 100 }), put);
  const counts = Array.from({ length: 3000 }, (_, i) => {
    writer.addLines(lineOf({ key: String(i).padStart(8, '0'), values: [hex(`document ${i}`)] }));
    return files;
  });
  await writer.finish(RANGE);
  // At most 32 members of about 100 bytes, and a file of 4,000 bytes, are in memory.
  expect(counts[300]).toBeGreaterThan(0);
  expect(counts.at(-1)).toBeGreaterThanOrEqual(files - 4);
});

it('refuses a member that is too large, with advice', async () => {
  const writer = new DocumentWriter(4000, limitsWith({ documentMember: 100 }), () => '');
  writer.addLines(lineOf({ key: 'a', values: ['x'.repeat(MOST_INFLATED)] }));
  const error = await (async () => writer.addLines(lineOf({ key: 'b', values: [] })))().catch((caught: unknown) => caught);
  expect(error).toEqual(expect.objectContaining({ exitCode: 3, details: [expect.stringContaining('--page-sizes')] }));
});
