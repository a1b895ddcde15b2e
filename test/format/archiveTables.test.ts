/** Tests the sorted tables of an archive, and the cache for parts of archive files. */
import { gunzipSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sealFile } from '../../src/contract/archiveFile.ts';
import { ArchiveError } from '../../src/format/archiveError.ts';
import { Archive, type ArchiveFiles } from '../../src/format/archiveReader.ts';
import { crc32 } from '../../src/format/crc32.ts';
import { PartCache } from '../../src/format/partCache.ts';
import { renderRoot } from '../../src/format/root.ts';
import {
  BLOCK_BYTES,
  blocksPerFile,
  checkBlocks,
  countsFor,
  ENTRIES_PER_BLOCK,
  ENTRY_BYTES,
  Entries,
  fileBytes,
  findEntries,
  keyOf,
  type Level,
  type TableEntry,
  writeEntry,
} from '../../src/format/sortedTable.ts';
import { LIMITS } from '../../src/limits.ts';
import { randomFor } from '../support/seed.ts';

const KEYS = 2 ** 48;
const UNUSED: TableEntry = { key: KEYS - 1, height: 2 ** 24 - 1, first: 2 ** 32 - 1, count: 2 ** 24 - 1 };

/** Encodes the blocks of a table by the rules of docs/archive.md. */
function blocksOf(entries: readonly TableEntry[]): Uint8Array {
  const count = Math.ceil(entries.length / ENTRIES_PER_BLOCK);
  const bytes = new Uint8Array(count * BLOCK_BYTES);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < count * ENTRIES_PER_BLOCK; i += 1) {
    const at = Math.floor(i / ENTRIES_PER_BLOCK) * BLOCK_BYTES + (i % ENTRIES_PER_BLOCK) * ENTRY_BYTES;
    writeEntry(view, at, entries[i] ?? UNUSED);
  }
  for (let end = BLOCK_BYTES; end <= bytes.length; end += BLOCK_BYTES) view.setUint32(end - 4, crc32(bytes, end - BLOCK_BYTES, end - 4));
  return bytes;
}

/**
 * Makes a level of a sorted table with these ascending keys. `counts` has the number of keys for each value of their
 * first `bits` bits. The field `first` identifies an entry.
 */
function levelOf(keys: readonly number[], bits: number): { readonly level: Level; readonly entries: readonly TableEntry[] } {
  const entries = keys.map((key, i) => ({ key, height: i % 1000, first: i, count: i % 7 }));
  const counts = Array.from({ length: 2 ** bits }, () => 0);
  for (const key of keys) {
    const bucket = Math.floor(key / 2 ** (48 - bits));
    counts[bucket] = (counts[bucket] ?? 0) + 1;
  }
  return { level: { first: 0, last: 999, counts, files: [] }, entries };
}

/** Reads a table from memory, and records how many blocks each read has. */
function counting(entries: readonly TableEntry[]) {
  const blocks = blocksOf(entries);
  const reads: number[] = [];
  const readBlocks = (_: Level, from: number, to: number): Promise<Uint8Array> => {
    if (from < 0 || to <= from || to * BLOCK_BYTES > blocks.length) throw new Error(`blocks ${from} to ${to} are not in the table`);
    reads.push(to - from);
    return Promise.resolve(blocks.subarray(from * BLOCK_BYTES, to * BLOCK_BYTES));
  };
  return { reads, readBlocks };
}

const anyKey = fc.oneof(
  fc.maxSafeNat().map((n) => n % KEYS),
  fc.constantFrom(0, 1, KEYS - 2, KEYS - 1),
);
/** Keys near one another: from a random key on, with steps of one to five million. */
const cluster = fc
  .tuple(anyKey, fc.constantFrom(1, 50, 5_000_000), fc.integer({ min: 1, max: 1500 }))
  .map(([start, step, count]) => Array.from({ length: count }, (_, i) => Math.min(start + i * step, KEYS - 1)));
const equals = fc.tuple(anyKey, fc.integer({ min: 1, max: 900 })).map(([key, count]) => Array.from({ length: count }, () => key));
const evenly = fc.tuple(fc.integer({ min: 0, max: 2000 }), fc.nat()).map(([count, salt]) => {
  const random = randomFor(`keys ${salt}`);
  return Array.from({ length: count }, () => Math.floor(random() * KEYS));
});
const someKeys = fc
  .array(fc.oneof(evenly, cluster, equals), { minLength: 0, maxLength: 4 })
  .map((parts) => parts.flat().sort((a, b) => a - b));

describe('a look-up of a key', () => {
  it('finds the same as a linear search, for any keys', async () => {
    await fc.assert(
      fc.asyncProperty(
        someKeys,
        fc.integer({ min: 0, max: 8 }),
        fc.array(anyKey, { maxLength: 5 }),
        fc.nat(),
        async (keys, bits, others, at) => {
          const { level, entries } = levelOf(keys, bits);
          const { reads, readBlocks } = counting(entries);
          const known = Array.from({ length: Math.min(keys.length, 12) }, (_, i) => keys[(at + i * 97) % keys.length] ?? 0);
          const near = known.slice(0, 4).flatMap((key) => [Math.max(key - 1, 0), Math.min(key + 1, KEYS - 1)]);
          for (const key of [...known, ...near, ...others, 0, KEYS - 1]) {
            reads.length = 0;
            const expected = entries.filter((entry) => entry.key === key);
            expect(await findEntries(level, key, readBlocks)).toEqual(expected);
            // Bound of the reads: two estimated positions, then a binary search, then the blocks of equal entries.
            const most = 3 + Math.ceil(Math.log2(Math.max(keys.length, 1))) + Math.ceil(expected.length / ENTRIES_PER_BLOCK);
            expect(reads.length).toBeLessThanOrEqual(most);
          }
        },
      ),
      { numRuns: 150 },
    );
  });

  it('computes the position from at most 65,536 counts', () => {
    expect([1, 2, 3, 2 ** 40].map((entries) => countsFor(entries, 1))).toEqual([1, 2, 4, 2 ** 16]);
  });

  it('takes one read of at most five blocks if keys are evenly spread, as for real ids', async () => {
    const random = randomFor('evenly spread keys');
    for (const count of [300, 25_000, 130_000]) {
      const keys = Array.from({ length: count }, () => Math.floor(random() * KEYS)).sort((a, b) => a - b);
      const { level, entries } = levelOf(keys, Math.log2(countsFor(count, LIMITS.entriesPerCount)));
      const { reads, readBlocks } = counting(entries);
      const more: number[] = [];
      const present = new Set(keys);
      for (let i = 0; i < 1000; i += 1) {
        reads.length = 0;
        const key = i % 2 === 0 ? (keys[Math.floor(random() * count)] ?? 0) : Math.floor(random() * KEYS);
        const found = await findEntries(level, key, readBlocks);
        expect(found.length > 0).toBe(present.has(key));
        expect(Math.max(...reads)).toBeLessThanOrEqual(5);
        if (reads.length > 1) more.push(key);
      }
      expect(more.length).toBeLessThanOrEqual(1);
    }
  });

  it('in a table of several files and levels finds the entries of all levels, in any size of files', async () => {
    const tableSizes = fc.constantFrom(4096, 10_000, 64 * 1024, 2 * 1024 * 1024);
    await fc.assert(
      fc.asyncProperty(fc.array(someKeys, { minLength: 1, maxLength: 3 }), tableSizes, fc.nat(), async (tables, objectSize, at) => {
        const contents = new Map<string, Uint8Array>();
        const put = (content: Uint8Array): string => {
          const { name, file } = sealFile(content);
          contents.set(name, file);
          return name;
        };
        const made = tables.map((keys) => levelOf(keys, Math.log2(countsFor(keys.length, LIMITS.entriesPerCount))));
        const each = blocksPerFile(objectSize) * ENTRIES_PER_BLOCK;
        const ids = made.map(({ level, entries }, height) => {
          const parts = Array.from({ length: Math.ceil(entries.length / each) }, (_, i) =>
            blocksOf(entries.slice(i * each, (i + 1) * each)),
          );
          const files = parts.map(put);
          for (const [i, part] of parts.entries()) {
            expect(fileBytes({ ...level, files }, i, objectSize)).toBe(part.length);
            expect(part.length).toBeLessThanOrEqual(Math.max(objectSize, BLOCK_BYTES));
          }
          return { ...level, first: height, last: height, files };
        });
        const root = gzipSync(renderRoot({ pageSize: 60, objectSize, segmentBlocks: 1024, ...LIMITS.tableLevels, segments: [], ids }));
        const archive = await Archive.open({ root: put(root), bytes: root.length }, inMemory(contents));
        const all = made.flatMap(({ entries }) => entries);
        for (let i = 0; i < 6; i += 1) {
          const key = all.length === 0 || i === 5 ? (at * 7919) % KEYS : (all[(at + i * 101) % all.length]?.key ?? 0);
          const id = key.toString(16).padStart(64, 'f0');
          expect(await archive.entries(id)).toEqual(all.filter((entry) => entry.key === keyOf(id)));
        }
      }),
      { numRuns: 60 },
    );
  });
});

/** Serves files of an archive from memory. */
function inMemory(contents: ReadonlyMap<string, Uint8Array>): ArchiveFiles {
  return {
    read: (file, offset, length, size) => {
      const content = contents.get(file);
      expect([size, offset + length > size]).toEqual([content?.length, false]);
      return Promise.resolve(
        content === undefined || offset + length > content.length ? undefined : content.subarray(offset, offset + length),
      );
    },
    inflate: async (member, most) => gunzipSync(member, { maxOutputLength: most }).toString(),
  };
}

describe('an entry', () => {
  it('is read as written, up to the largest numbers', () => {
    const upTo = (bits: number) =>
      fc.oneof(
        fc.maxSafeNat().map((n) => n % 2 ** bits),
        fc.constantFrom(0, 2 ** bits - 1),
      );
    const anyEntry = fc.record({ key: upTo(48), height: upTo(24), first: upTo(32), count: upTo(24) });
    fc.assert(
      fc.property(fc.array(anyEntry, { minLength: 1, maxLength: 600 }), (list) => {
        const blocks = blocksOf(list);
        checkBlocks(blocks);
        const entries = new Entries(blocks, 1000);
        expect(list.map((_, i) => entries.at(1000 + i))).toEqual(list);
        expect(entries.end - entries.begin).toBe(Math.ceil(list.length / ENTRIES_PER_BLOCK) * ENTRIES_PER_BLOCK);
        for (let i = list.length; i < entries.end - entries.begin; i += 1) expect(entries.at(1000 + i)).toEqual(UNUSED);
      }),
      { numRuns: 50 },
    );
  });

  it('uses the end of its id as key, because block hashes begin with zeros', () => {
    expect(keyOf(`${'0'.repeat(52)}0123456789ab`)).toBe(0x0123456789ab);
    expect([keyOf('0'.repeat(64)), keyOf('f'.repeat(64))]).toEqual([0, KEYS - 1]);
  });

  it('is in a file in which every changed bit and every cut is detected', () => {
    const blocks = blocksOf(
      levelOf([1, 5, 900], 0).entries.concat(
        levelOf(
          Array.from({ length: 300 }, (_, i) => i),
          0,
        ).entries,
      ),
    );
    const random = randomFor('changed bits');
    for (let i = 0; i < 1000; i += 1) {
      const at = Math.floor(random() * blocks.length);
      const damaged = Uint8Array.from(blocks);
      damaged[at] = (damaged[at] ?? 0) ^ (1 << (i % 8));
      expect(() => checkBlocks(damaged)).toThrow(ArchiveError);
    }
    for (const length of [1, 100, BLOCK_BYTES - 1, BLOCK_BYTES + 1]) {
      expect(() => checkBlocks(blocks.subarray(0, length))).toThrow(ArchiveError);
    }
  });
});

it('the CRC-32 equals that of gzip', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(20), (bytes, from) => {
      const part = bytes.subarray(from);
      expect(crc32(bytes, from)).toBe(gzipSync(part).readUInt32LE(gzipSync(part).length - 8));
    }),
  );
});

describe('the cache for parts', () => {
  const names = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');
  const step = fc.record({
    name: names,
    bytes: fc.oneof(fc.nat(40), fc.nat(140)),
    isForgotten: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
  });

  it('keeps the most recently used parts, within its limit of bytes', async () => {
    const MOST = 100;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const cache = new PartCache(MOST);
        // Expected content of the cache, with the least recently used part first.
        let kept: { readonly name: string; readonly bytes: number }[] = [];
        for (const { name, bytes, isForgotten } of steps) {
          const known = kept.find((one) => one.name === name);
          kept = kept.filter((one) => one.name !== name);
          if (isForgotten) {
            cache.forget(name);
            continue;
          }
          let isLoaded = false;
          const value = await cache.get(name, async () => {
            isLoaded = true;
            return { value: bytes, bytes };
          });
          expect([value, isLoaded]).toEqual([known?.bytes ?? bytes, known === undefined]);
          kept.push({ name, bytes: value });
          while (kept.length > 1 && kept.reduce((sum, one) => sum + one.bytes, 0) > MOST) kept.shift();
        }
      }),
      { numRuns: 300 },
    );
  });

  it('keeps the last root at any size, and no value of infinite size', async () => {
    const cache = new PartCache(1);
    const load = (value: string) => async () => value;
    const unexpected = () => Promise.reject(new Error('it was loaded again'));
    await cache.root('a', load('first'));
    await cache.get('part', async () => ({ value: 'part', bytes: 100 }));
    await cache.get('endless', async () => ({ value: 'endless', bytes: Number.POSITIVE_INFINITY }));
    expect(await cache.get('part', unexpected)).toBe('part');
    expect(await cache.get('endless', async () => ({ value: 'again', bytes: Number.POSITIVE_INFINITY }))).toBe('again');
    expect(await cache.root('a', unexpected)).toBe('first');
    expect(await cache.root('b', load('second'))).toBe('second');
    expect(await cache.root('a', load('third'))).toBe('third');
  });

  it('counts a part once if several requests loaded it at the same time, and stores no failure', async () => {
    const cache = new PartCache(100);
    const load = async () => ({ value: 'x', bytes: 20 });
    await Promise.all(Array.from({ length: 10 }, () => cache.get('same', load)));
    await expect(cache.get('failed', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    for (const name of ['a', 'b', 'c', 'd']) await cache.get(name, load);
    for (const name of ['same', 'a', 'b', 'c', 'd']) {
      expect(await cache.get(name, () => Promise.reject(new Error(`${name} was not kept`)))).toBe('x');
    }
  });
});
