/**
 * Documents of archives: every stored key is found, no other key is found, and damage is an error. SEED repeats a run.
 */
import { createHash } from 'node:crypto';
import { setImmediate as tick } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DocumentWriter, mergeDocuments, type StoredDocument } from '../../src/engine/archive/documentWriter.ts';
import { nameOf } from '../../src/engine/archive/storedArchive.ts';
import { gzipMember } from '../../src/engine/render/compress.ts';
import { ArchiveError } from '../../src/format/archiveError.ts';
import { Archive } from '../../src/format/archiveReader.ts';
import {
  findDocuments,
  findInLevels,
  keyOfAddress,
  pageKey,
  parseMembers,
  renderMembers,
  separatorOf,
} from '../../src/format/documents.ts';
import type { DocumentLevel } from '../../src/format/levels.ts';
import { renderRoot } from '../../src/format/root.ts';
import { LIMITS } from '../../src/limits.ts';
import { compareAddresses } from '../../src/lists/balances.ts';

/** Writes documents as a level of an archive in memory. Readers read parts of files if `objectSize` is large. */
async function levelOf(documents: readonly StoredDocument[], fileSize: number, objectSize = fileSize, limits = LIMITS) {
  const files = new Map<string, Uint8Array>();
  const reads = { rounds: 0, pending: 0 };
  const put = (content: Uint8Array) => {
    files.set(nameOf(content), content);
    return nameOf(content);
  };
  const writer = new DocumentWriter(fileSize, limits, put);
  for (const document of documents) writer.add(document);
  const level: DocumentLevel = writer.finish({ first: 0, last: 9 }) ?? { first: 0, last: 9, files: [] };
  const root = gzipMember(
    Buffer.from(renderRoot({ pageSize: 20, objectSize, segmentBlocks: 1024, ...LIMITS.tableLevels, segments: [], ids: [] })),
  );
  const archive = () =>
    Archive.open(
      { root: put(root), bytes: root.length },
      {
        read: async (file, offset, length) => {
          if (reads.pending === 0) reads.rounds += 1;
          reads.pending += 1;
          await tick();
          reads.pending -= 1;
          return files.get(file)?.subarray(offset, offset + length);
        },
        inflate: async (member, most) => gunzipSync(member, { maxOutputLength: most }).toString(),
      },
    );
  return { level, files, archive, reads };
}

const sha256 = (value: string) => createHash('sha256').update(value).digest('hex');

const key = fc.string({ unit: fc.constantFrom('a', 'b', 'z', '%', '.', '0'), maxLength: 6 });
const documentsOf = (keys: readonly string[]): StoredDocument[] =>
  [...new Set(keys)].sort().map((one) => ({ key: one, values: [`["${one}"]`, 'x'.repeat((one.length * 97) % 400)] }));

describe('documents', () => {
  it('are found by their keys, and nothing else is', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(key, { maxLength: 300 }),
        fc.array(key, { maxLength: 30 }),
        fc.constantFrom(256, 4096, 2 ** 21),
        async (keys, others, size) => {
          const documents = documentsOf(keys);
          const { level, archive } = await levelOf(documents, size);
          const byKey = new Map(documents.map((one) => [one.key, one.values]));
          const asked = [...byKey.keys(), ...others];
          const found = await findDocuments(await archive(), level, asked);
          expect(found).toEqual(asked.map((one) => byKey.get(one)));
        },
      ),
      { numRuns: 40 },
    );
  });

  it('are spread over members and files', async () => {
    const documents = documentsOf(Array.from({ length: 3000 }, (_, i) => `bc1q${String((i * 7919) % 9999).padEnd(20, 'x')}`));
    const { level, files } = await levelOf(documents, 4096);
    expect(level.files.length).toBeGreaterThan(3);
    const members = level.files.map((file) => {
      const content = files.get(file.file) ?? Buffer.alloc(0);
      return parseMembers(gunzipSync(content.subarray(file.bytes - file.directory)).toString(), file);
    });
    expect(Math.max(...members.map(({ length }) => length))).toBeGreaterThan(1);
    // Starts of members are short.
    for (const { from } of members.flat().slice(1)) expect(from.length).toBeLessThan(9);
  });

  it('of a long list take at most three rounds of reads, wherever its files end', async () => {
    const pages = Array.from({ length: 40 }, (_, page) => pageKey('b', page));
    let several = 0;
    for (let length = 0; length < 40; length += 1) {
      const before = Array.from({ length }, (_, i) => `a${String(i).padStart(3, '0')}`);
      const documents = [...before, 'b', ...pages].map((one) => ({ key: one, values: [sha256(one).repeat(4)] }));
      const { level, archive, reads } = await levelOf(documents, 4096, 2 ** 22, { ...LIMITS, documentMember: 500 });
      const opened = await archive();
      reads.rounds = 0;
      const [found] = await findInLevels(opened, [level], 'b');
      expect(found?.values).toHaveLength(1);
      const page = pages[length] ?? '';
      expect((await findDocuments(opened, level, [page]))[0]).toHaveLength(1);
      expect([length, reads.rounds <= 3]).toEqual([length, true]);
      if (level.files.some(({ from }) => from > 'b' && from <= page)) several += 1;
    }
    expect(several).toBeGreaterThan(5);
  });

  it('of damaged files are an error, or right', async () => {
    const documents = documentsOf(Array.from({ length: 200 }, (_, i) => `key ${i}`));
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.nat(), fc.integer({ min: 1, max: 255 }), fc.boolean(), async (which, at, bits, isCut) => {
        const { level, files, archive } = await levelOf(documents, 4096);
        const name = level.files[which % level.files.length]?.file ?? '';
        const content = Buffer.from(files.get(name) ?? '');
        const place = at % content.length;
        content[place] = (content[place] ?? 0) ^ bits;
        files.set(name, isCut ? content.subarray(0, place) : content);
        const opened = await archive();
        let errors = 0;
        for (const { key: asked, values } of documents) {
          const found = await findDocuments(opened, level, [asked]).catch((error: unknown) => error);
          if (found instanceof ArchiveError) errors += 1;
          else expect(found).toEqual([values]);
        }
        // A bit of a gzip header, such as its time, has no meaning.
        if (isCut) expect(errors).toBeGreaterThan(0);
      }),
      { numRuns: 60 },
    );
  });

  it('must ascend', () => {
    const writer = new DocumentWriter(4096, LIMITS, () => '');
    writer.add({ key: 'b', values: [] });
    expect(() => writer.add({ key: 'a', values: [] })).toThrow('the document a comes after b');
  });

  it('of several sequences are merged in order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(key, { maxLength: 9 }), { maxLength: 4 }), async (lists) => {
        const sources = lists.map((keys, i) => [...new Set(keys)].sort().map((one) => ({ key: one, values: [String(i)] })));
        const merged: StoredDocument[] = [];
        for await (const document of mergeDocuments(sources, (all) => all.flat())) merged.push(document);
        const expected = [...new Set(lists.flat())].sort().map((one) => ({
          key: one,
          values: lists.flatMap((keys, i) => (keys.includes(one) ? [String(i)] : [])),
        }));
        expect(merged).toEqual(expected);
      }),
    );
  });
});

describe('directories', () => {
  const file = { from: '', file: 'ab'.repeat(16), bytes: 100, directory: 40 };
  it.each<[string, string]>([
    ['is not JSON', '['],
    ['has another size', renderMembers([['', 59]])],
    [
      'has a member without bytes',
      renderMembers([
        ['', 60],
        ['b', 0],
      ]),
    ],
    ['begins with another key', renderMembers([['a', 60]])],
    [
      'does not ascend',
      renderMembers([
        ['', 30],
        ['', 30],
      ]),
    ],
  ])('are refused if one %s', (_, text) => {
    expect(() => parseMembers(text, file)).toThrow(ArchiveError);
  });
});

describe('keys', () => {
  it('of addresses are ASCII, and those of Bitcoin are themselves', () => {
    expect(keyOfAddress('bc1pej2j02c4as4luf8jxqvwnwvgq69w5vrc4a76xx65v0yd36w9ykaskjvfwa')).toMatch(/^bc1pej2/);
    expect(keyOfAddress(`é\t!'()*~`)).toBe('%C3%A9%09%21%27%28%29%2A~');
    expect(keyOfAddress('\ud800')).toBeUndefined();
  });

  it('have the shortest start that is after the key before', () => {
    fc.assert(
      fc.property(key, key, (a, b) => {
        fc.pre(a < b);
        const start = separatorOf(a, b);
        expect(b.startsWith(start) && start > a && (start.length === 1 || start.slice(0, -1) <= a)).toBe(true);
      }),
    );
  });

  it('order addresses by their bytes', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'é', '\ud7ff', '\ue000', '\uffff', '𐀀', '😀'), maxLength: 4 });
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Math.sign(compareAddresses(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
    );
  });
});
