/** Tests lists in documents (docs/files.md): how builds write them, and how readers find entries. */
import { setImmediate } from 'node:timers/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { openFile, sealFile } from '../../src/contract/archiveFile.ts';
import { DocumentWriter } from '../../src/engine/archive/documentWriter.ts';
import { PagedLists } from '../../src/engine/archive/pagedLists.ts';
import { documentsOf, type StoredArchive } from '../../src/engine/archive/storedArchive.ts';
import { ArchiveError } from '../../src/format/archiveError.ts';
import { Archive } from '../../src/format/archiveReader.ts';
import type { DocumentLevel } from '../../src/format/levels.ts';
import { findPagedList } from '../../src/format/pagedList.ts';
import { type Root, renderRoot } from '../../src/format/root.ts';
import { LIMITS, READER_LIMITS } from '../../src/limits.ts';
import { LISTED, listKeyOf, parsePointers } from '../../src/lists/activity.ts';
import { limitsWith } from '../support/limits.ts';
import { hex } from '../support/records.ts';

const PAGE = 4;
const keyOf = (list: number): string => hex(`list ${list}`).slice(0, 18);

/** Files in memory, and the number of rounds of reads. */
function memory() {
  const files = new Map<string, Buffer>();
  const put = (content: Uint8Array): string => {
    const { name, file } = sealFile(content);
    files.set(name, Buffer.from(file));
    return name;
  };
  const reads: { rounds: number; round: Promise<unknown> | undefined } = { rounds: 0, round: undefined };
  const open = async (levels: readonly DocumentLevel[]) => {
    const lists = { ...LIMITS.listLevels, tip: 9, page: PAGE, names: [] };
    const sizes = { pageSize: 60, objectSize: 2 ** 22, segmentBlocks: 1024, ...LIMITS.tableLevels };
    const root = gzipSync(renderRoot({ ...sizes, segments: [], ids: [], lists } as Root));
    const read = async (name: string, offset: number, length: number) => {
      if (reads.round === undefined) {
        reads.rounds += 1;
        reads.round = setImmediate().then(() => {
          reads.round = undefined;
        });
      }
      await reads.round;
      return files.get(name)?.subarray(offset, offset + length);
    };
    const inflate = async (member: Uint8Array, most: number) => gunzipSync(member, { maxOutputLength: most }).toString();
    return { levels, archive: await Archive.open({ root: put(root), bytes: root.length }, { read, inflate }) };
  };
  const stored = { read: (name: string) => openFile(name, files.get(name) ?? Buffer.alloc(0)) ?? Buffer.alloc(0) } as Pick<
    StoredArchive,
    'read'
  >;
  return { put, open, reads, stored };
}

/** Writes a level with these lists. Item `list` of `sizes` is the number of entries of a list; entries ascend from `first`. */
async function levelOf(sizes: readonly number[], first: number, put: (content: Uint8Array) => string, range = { first: 0, last: 9 }) {
  const writer = new DocumentWriter(3000, limitsWith({ documentMember: 400 }), (parts) => put(Buffer.concat(parts)));
  const lists = new PagedLists(writer, PAGE);
  const sorted = [...sizes.entries()].sort(([a], [b]) => (keyOf(a) < keyOf(b) ? -1 : 1));
  for (const [list, size] of sorted) {
    if (size === 0) continue;
    // The key as a text, or as numbers: the same bytes.
    if (list % 2 === 0) lists.list(keyOf(list));
    else lists.hexList(...[0, 6, 12].map((at) => Number.parseInt(keyOf(list).slice(at, at + 6), 16)));
    for (let i = 0; i < size; i += 1) {
      lists.entry();
      lists.number(first + i, false);
      lists.number(list, false);
      lists.number(1, true);
    }
  }
  lists.finish();
  return writer.finish(range);
}

describe('lists in documents', () => {
  const { smallFile } = READER_LIMITS;
  afterEach(() => {
    Object.assign(READER_LIMITS, { smallFile });
  });

  it('are read as written, in any number of levels, wherever a window begins', async () => {
    const sizes = fc.array(fc.oneof(fc.nat(3), fc.nat(3 * PAGE), fc.nat(200)), { minLength: 1, maxLength: 12 });
    // Numbers of one digit to 16.
    const bases = fc.constantFrom(0, 95, 1e9 - 1050, 2 ** 31 - 50, 1e10 - 7, Number.MAX_SAFE_INTEGER - 3000);
    await fc.assert(
      fc.asyncProperty(
        fc.array(sizes, { minLength: 1, maxLength: 3 }),
        bases,
        fc.nat(250),
        fc.nat(20),
        async (made, base, offset, count) => {
          const { put, open } = memory();
          const written = await Promise.all(made.map((one, i) => levelOf(one, base + 1000 * i, put)));
          const { levels, archive } = await open(written.filter((level) => level !== undefined));
          for (const list of [0, 1, 11]) {
            const expected = made.flatMap((one, i) =>
              Array.from({ length: one[list] ?? 0 }, (_, entry) => `${base + 1000 * i + entry}.${list}.1`),
            );
            const found = await findPagedList(archive, levels, keyOf(list), offset, (values) => values);
            expect(found.total).toBe(expected.length);
            const [from, to] = [Math.min(offset, expected.length), Math.min(offset + count, expected.length)];
            expect(await found.read(from, to)).toEqual(expected.slice(from, to));
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it('have at most a page of entries in a document, and the length of a long list in its head', async () => {
    const { put, stored } = memory();
    const level = await levelOf([PAGE, PAGE + 1, 2 * PAGE], 0, put);
    const documents = new Map([...documentsOf(stored, level ?? { first: 0, last: 9, files: [] })].map(({ key, values }) => [key, values]));
    expect(documents.size).toBe(1 + 3 + 3);
    expect(documents.get(`${keyOf(0)}!`)).toHaveLength(PAGE);
    expect([1, 2].map((list) => documents.get(`${keyOf(list)}!`))).toEqual([[`${PAGE + 1}`], [`${2 * PAGE}`]]);
    expect(['00000000', '00000001'].map((page) => documents.get(`${keyOf(1)} ${page}`)?.length)).toEqual([PAGE, 1]);
  });

  it('take two rounds of reads, and a third only if a window is not in the pages that were expected', async () => {
    Object.assign(READER_LIMITS, { smallFile: 1 });
    const { put, open, reads } = memory();
    const [upper, lower] = [
      await levelOf([3 * PAGE, 40], 0, put),
      await levelOf(
        Array.from({ length: 60 }, (_, i) => 40 + i),
        1000,
        put,
      ),
    ];
    const { archive, levels } = await open([upper, lower].filter((level) => level !== undefined));
    const roundsOf = async (list: number, from: number) => {
      const fresh = await open(levels);
      reads.rounds = 0;
      const found = await findPagedList(fresh.archive, fresh.levels, keyOf(list), from, (values) => values);
      await found.read(from, from + 2);
      return reads.rounds;
    };
    expect(archive.root.lists?.page).toBe(PAGE);
    expect([
      await roundsOf(0, 0),
      await roundsOf(0, 2 * PAGE),
      await roundsOf(30, 0),
      await roundsOf(30, 50),
      await roundsOf(0, 30),
    ]).toEqual([2, 2, 2, 2, 3]);
  });

  it('are written while they are made, however long they are', async () => {
    let bytes = 0;
    const addLines = (lines: Buffer) => {
      bytes += lines.length;
    };
    const lists = new PagedLists({ addLines }, 600);
    lists.list('a'.repeat(18));
    for (let i = 0; i < 100_000; i += 1) {
      lists.entry();
      lists.number(i, true);
      if (i === 50_000) expect(bytes).toBeGreaterThan(200_000);
    }
    lists.finish();
    expect(bytes).toBeGreaterThan(500_000);
  });
});

describe('a pointer', () => {
  const level = { begin: 1000 };

  it('is relative to its level, and may be in the page of the pointer before it', () => {
    expect(parsePointers(['20.300.7', '8', '1.2.0'], level)).toEqual([
      { position: 1020, length: 300, record: 7 },
      { position: 1020, length: 300, record: 8 },
      { position: 1001, length: 2, record: 0 },
    ]);
  });

  it.each(['', '8', '1.2', '1.0.3', '1.2.x', '1.2.3.4', '-1.2.3', '1.2.3.'])('is refused if it is %j', (text) => {
    expect(() => parsePointers([text], level)).toThrow(ArchiveError);
  });

  it('is found by the first 72 bits of a hash, which differ between kinds of lists', () => {
    expect(listKeyOf(LISTED.both('840000:3', 'bc1p'))).toBe(hex('p:840000:3:bc1p').slice(0, 18));
    expect(new Set([LISTED.rune('1:0'), LISTED.address('1:0'), LISTED.both('1:0', '1:0')]).size).toBe(3);
  });
});
