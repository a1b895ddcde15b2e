/** Tests that a thread compresses documents to the same files as the main thread, and that its failures are errors. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { DocumentWriter, lineOf } from '../../src/engine/archive/documentWriter.ts';
import { MemberCompressor } from '../../src/engine/archive/memberCompressor.ts';
import { BuildError } from '../../src/errors.ts';
import { MOST_INFLATED } from '../../src/format/root.ts';
import { crossings } from '../../src/limits.ts';
import { temporaryFolder } from '../support/build.ts';
import { limitsWith } from '../support/limits.ts';
import { hex } from '../support/records.ts';

const RANGE = { first: 0, last: 9 };

/** Writes documents with these numbers of characters. `pauses` has the documents before which the thread can answer. */
async function written(
  sizes: readonly number[],
  limits: { documentMember: number; membersAtOnce: number },
  compressor?: MemberCompressor,
  pauses: ReadonlySet<number> = new Set(),
) {
  const files: Buffer[] = [];
  const put = (content: Uint8Array) => `${files.push(Buffer.from(content))}`;
  const writer = new DocumentWriter(4000, limitsWith(limits), put, compressor);
  for (const [i, size] of sizes.entries()) {
    if (pauses.has(i)) await setImmediate();
    const text = Array.from({ length: size }, (_, k) => String.fromCharCode(97 + ((i * 31 + k * k) % 26))).join('');
    writer.addLine(lineOf({ key: String(i).padStart(8, '0'), values: [text] }));
  }
  return { level: await writer.finish(RANGE), files };
}

it('makes the same files as the main thread', async () => {
  const offers = { taken: 0, refused: 0 };
  const counting = new MemberCompressor();
  const offer = counting.offer.bind(counting);
  counting.offer = (members) => {
    const answer = offer(members);
    offers[answer === undefined ? 'refused' : 'taken'] += 1;
    return answer;
  };
  try {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(900), { maxLength: 200 }),
        fc.integer({ min: 1, max: 2000 }),
        fc.integer({ min: 1, max: 9000 }),
        fc.uniqueArray(fc.nat(200), { maxLength: 40 }),
        async (sizes, documentMember, membersAtOnce, pauses) => {
          const limits = { documentMember, membersAtOnce };
          const expected = await written(sizes, { documentMember, membersAtOnce: 1e9 });
          expect(await written(sizes, limits, counting, new Set(pauses))).toEqual(expected);
        },
      ),
      { numRuns: 60 },
    );
  } finally {
    await counting.close();
  }
  // Without pauses the thread cannot return a portion, so the main thread compresses the third one.
  expect(Math.min(offers.taken, offers.refused)).toBeGreaterThan(0);
  expect(crossings.get('membersAtOnce')).toBeGreaterThan(0);
});

it('writes files although no answer of the thread can arrive', async () => {
  const compressor = new MemberCompressor();
  let files = 0;
  const put = () => {
    files += 1;
    return String(files);
  };
  const writer = new DocumentWriter(4000, limitsWith({ documentMember: 100, membersAtOnce: 1000 }), put, compressor);
  const counts = Array.from({ length: 3000 }, (_, i) => {
    writer.addLine(lineOf({ key: String(i).padStart(8, '0'), values: [hex(`document ${i}`)] }));
    return files;
  });
  await writer.finish(RANGE);
  await compressor.close();
  // At most eight portions of about 1,000 bytes, and a file of 4,000 bytes, are in memory.
  expect(counts[300]).toBeGreaterThan(0);
  expect(counts.at(-1)).toBeGreaterThanOrEqual(files - 4);
});

const LIMITS = { documentMember: 100, membersAtOnce: 1000 };
const SIZES = Array.from({ length: 100 }, () => 90);

it.each([
  ['throws', `throw new RangeError('of the thread');`, 'of the thread'],
  ['ends', 'process.exit(7);', 'exit code 7'],
])('fails when the thread %s', async (_, code, expected) => {
  const path = join(temporaryFolder(), 'thread.cjs');
  writeFileSync(path, `require('node:worker_threads').parentPort.on('message', () => { ${code} });`);
  const compressor = new MemberCompressor({ script: pathToFileURL(path), argv: [] });
  for (let i = 0; i < 2; i += 1) {
    const error = await written(SIZES, LIMITS, compressor, new Set([50])).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(BuildError);
    expect(error).toEqual(expect.objectContaining({ message: expect.stringContaining(expected) }));
  }
  await compressor.close();
});

it('refuses a member that is too large, with advice', async () => {
  const compressor = new MemberCompressor();
  const writer = new DocumentWriter(4000, limitsWith(LIMITS), () => '', compressor);
  writer.addLine(lineOf({ key: 'a', values: ['x'.repeat(MOST_INFLATED)] }));
  const error = await (async () => writer.addLine(lineOf({ key: 'b', values: [] })))().catch((caught: unknown) => caught);
  expect(error).toEqual(expect.objectContaining({ exitCode: 3, details: [expect.stringContaining('--page-sizes')] }));
  await compressor.close();
});
