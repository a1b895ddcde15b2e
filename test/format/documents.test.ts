/**
 * Tests documents of archives. A reader finds every stored key and no other key, and damage is an error. The variable SEED repeats a run.
 */

import { createHash } from 'node:crypto';
import { setImmediate as tick } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sealFile } from '../../src/contract/archiveFile.ts';
import { DocumentWriter } from '../../src/engine/archive/documentWriter.ts';
import { documentsOf as readDocuments, type StoredArchive, type StoredDocument } from '../../src/engine/archive/storedArchive.ts';
import { gzipMember } from '../../src/engine/render/compress.ts';
import { ArchiveError } from '../../src/format/archiveError.ts';
import { Archive } from '../../src/format/archiveReader.ts';
import {
  findDocuments,
  findInLevels,
  keyOfAddress,
  pageKey,
  placeMembers,
  renderMembers,
  separatorOf,
} from '../../src/format/documents.ts';
import { type DocumentLevel, levelRanges } from '../../src/format/levels.ts';
import type { ListTables } from '../../src/format/listTables.ts';
import { renderRoot } from '../../src/format/root.ts';
import { LIMITS, READER_LIMITS } from '../../src/limits.ts';
import { answerFromLists } from '../../src/lists/answers.ts';
import { compareAddresses } from '../../src/lists/balances.ts';
import { readEtchings } from '../../src/lists/etchings.ts';
import { removalKey } from '../../src/lists/unspentOutputs.ts';
import { noTransactions } from '../support/archives.ts';
import { lineOf } from '../support/documents.ts';
import { hex } from '../support/records.ts';

/** Writes documents as a level of an archive in memory. If `objectSize` is large, readers request parts of files. */
async function levelOf(documents: readonly StoredDocument[], fileSize: number, objectSize = fileSize, limits = LIMITS) {
  const files = new Map<string, Uint8Array>();
  const reads = { rounds: 0, pending: 0, places: [] as string[] };
  const put = (content: Uint8Array) => {
    const { name } = sealFile(content);
    files.set(name, content);
    return name;
  };
  const writer = new DocumentWriter(fileSize, limits, (parts) => put(Buffer.concat(parts)));
  for (const document of documents) writer.addLines(lineOf(document));
  const level: DocumentLevel = (await writer.finish({ first: 0, last: 9 })) ?? { first: 0, last: 9, files: [] };
  const archive = (lists?: ListTables) => {
    const sizes = { pageSize: 20, objectSize, segmentBlocks: 1024, ...LIMITS.tableLevels };
    const root = gzipMember(Buffer.from(renderRoot({ ...sizes, segments: [], ids: [], lists })));
    return Archive.open(
      { root: put(root), bytes: root.length },
      {
        read: async (file, offset, length) => {
          if (reads.pending === 0) reads.rounds += 1;
          reads.pending += 1;
          reads.places.push(`${file} ${offset}`);
          await tick();
          reads.pending -= 1;
          return sealFile(files.get(file) ?? Buffer.alloc(0)).file.subarray(offset, offset + length);
        },
        inflate: async (member, most) => gunzipSync(member, { maxOutputLength: most }).toString(),
      },
    );
  };
  return { level, files, archive, reads };
}

const sha256 = (value: string) => createHash('sha256').update(value).digest('hex');

// Sets a low limit, so that most test files count as large. Readers then read directories and members separately.
Object.assign(READER_LIMITS, { smallFile: 400 });

const key = fc.string({ unit: fc.constantFrom('a', 'b', 'z', '%', '.', '0'), maxLength: 6 });
const documentsOf = (keys: readonly string[]): StoredDocument[] =>
  [...new Set(keys)].sort().map((one) => ({ key: one, values: [`["${one}"]`, 'x'.repeat((one.length * 97) % 400)] }));

describe('documents', () => {
  it('are found by their keys, and no other key is found', async () => {
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
      return placeMembers(gunzipSync(content.subarray(file.bytes - file.directory, file.bytes)).toString(), file);
    });
    expect(Math.max(...members.map(({ length }) => length))).toBeGreaterThan(1);
    // Directories must store only short prefixes of keys, because readers load complete directories.
    for (const { from } of members.flat().slice(1)) expect(from.length).toBeLessThan(9);
  });

  it('that are requested together take one read of each directory and each member', async () => {
    const keys = Array.from({ length: 300 }, (_, i) => `key ${1000 + i}`);
    const { level, archive, reads } = await levelOf(documentsOf(keys), 4096, 2 ** 22, { ...LIMITS, documentMember: 999 });
    expect(level.files.length).toBeGreaterThan(1);
    const opened = await archive();
    reads.places.length = 0;
    expect((await findDocuments(opened, level, keys)).filter((found) => found === undefined)).toEqual([]);
    expect(reads.places.length).toBeGreaterThan(level.files.length * 2);
    expect(new Set(reads.places).size).toBe(reads.places.length);
  });

  it('of a small file take one read', async () => {
    const keys = ['a', 'b', 'c'];
    const { level, archive, reads } = await levelOf(documentsOf(keys), 4096, 2 ** 22, { ...LIMITS, documentMember: 1 });
    expect(level.files.map(({ bytes }) => bytes <= READER_LIMITS.smallFile)).toEqual([true]);
    const opened = await archive();
    for (const key of [...keys, ...keys]) expect(await findDocuments(opened, level, [key])).not.toEqual([undefined]);
    // A small file takes only two reads: the root, and the complete file.
    expect(reads.places).toHaveLength(2);
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

  it('are in the smallest number of consecutive members that the limits allow', async () => {
    const documents = documentsOf(Array.from({ length: 300 }, (_, i) => `key ${i}`));
    for (const [objectSize, documentMember] of [
      [4096, 2000],
      [700, 2000],
      [4096, 1],
    ] as const) {
      const { level, files } = await levelOf(documents, objectSize, objectSize, { ...LIMITS, documentMember });
      const members = level.files.flatMap((file, at) => {
        const content = files.get(file.file) ?? Buffer.alloc(0);
        const placed = placeMembers(gunzipSync(content.subarray(file.bytes - file.directory, file.bytes)).toString(), file);
        return placed.map(({ offset, length }) => ({ at, length, text: gunzipSync(content.subarray(offset, offset + length)).toString() }));
      });
      for (const [i, { at, text }] of members.entries()) {
        const next = members[i + 1];
        const most = Math.min(objectSize, documentMember);
        expect(text.length <= most || text.indexOf('\n') === text.length - 1).toBe(true);
        if (next === undefined) continue;
        expect(text.length + next.text.indexOf('\n') + 1).toBeGreaterThan(most);
        const bytes = members.filter((one) => one.at === at).reduce((sum, { length }) => sum + length, 0);
        expect(bytes).toBeLessThanOrEqual(objectSize);
        if (next.at !== at) expect(bytes + next.length).toBeGreaterThan(objectSize);
      }
    }
  });

  it('can fill members and files to the last byte', async () => {
    const documents = Array.from({ length: 40 }, (_, i) => ({ key: `key ${i + 10}`, values: [hex(`value ${i}`)] }));
    // A member has four lines. A line has a key, a tab, a value and a line feed.
    const documentMember = 4 * (6 + 1 + 64 + 1);
    const lengthsIn = async (objectSize: number) => {
      const { level, files } = await levelOf(documents, objectSize, objectSize, { ...LIMITS, documentMember });
      return level.files.map((file) => {
        const content = files.get(file.file) ?? Buffer.alloc(0);
        const text = gunzipSync(content.subarray(file.bytes - file.directory, file.bytes)).toString();
        return placeMembers(text, file).map(({ length }) => length);
      });
    };
    const [lengths = []] = await lengthsIn(2 ** 20);
    expect(lengths.length).toBe(10);
    const [first = 0, second = 0] = lengths;
    expect((await lengthsIn(first + second))[0]).toEqual([first, second]);
  });

  /** Returns an archive of a last build that has the files of a level. */
  const storedIn = (files: ReadonlyMap<string, Uint8Array>): StoredArchive => {
    const read = (file: string) => Buffer.from(files.get(file) ?? '');
    return { read } as unknown as StoredArchive;
  };
  it('can all be read by the next build', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(key, fc.constantFrom('', ' 00000000', ' 00000001', ' r00000002')), { maxLength: 300 }),
        fc.constantFrom(300, 4096),
        async (keys, size) => {
          // With the prefix `k`, no key is empty, so every value has at least one character.
          const documents = documentsOf(keys.map((parts) => `k${parts.join('')}`));
          const { level, files } = await levelOf(documents, size, size, { ...LIMITS, documentMember: 200 });
          expect([...readDocuments(storedIn(files), level)]).toEqual(documents);
        },
      ),
    );
  });

  it('of a file that is damaged, or has documents at wrong positions, cause a full build', async () => {
    const { level, files } = await levelOf(documentsOf(Array.from({ length: 200 }, (_, i) => `key ${i}`)), 4096, 4096, {
      ...LIMITS,
      documentMember: 999,
    });
    const refused = (change: (content: Buffer) => Buffer, reason: RegExp, other: DocumentLevel = level) => {
      const names = new Set([...files.keys(), ...other.files.map((one) => one.file)]);
      const stored = storedIn(new Map([...names].map((name) => [name, change(Buffer.from(files.get(name) ?? ''))])));
      expect(() => [...readDocuments(stored, other)]).toThrow(ArchiveError);
      expect(() => [...readDocuments(stored, other)]).toThrow(reason);
    };
    const same = (content: Buffer) => content;
    const [first, ...others] = level.files;
    if (first === undefined) throw new Error('the level has a file');
    refused((content) => Buffer.concat([content, Buffer.alloc(1)]), /has another size than the root says$/);
    refused((content) => content.fill(0, content.length - 9), /has a damaged directory of documents$/);
    refused((content) => content.fill(0, 0, 99), /is damaged$/);
    refused(same, /has the document key [0-9]+ in a wrong place$/, {
      ...level,
      files: [first, first, ...others],
    });
    const twice = gzipMember(Buffer.from('b\tx\na\tx\n'));
    const directory = gzipMember(Buffer.from(renderMembers([['', twice.length]])));
    const file = { from: '', file: 'ab'.repeat(16), bytes: twice.length + directory.length, directory: directory.length };
    refused(() => Buffer.concat([twice, directory]), /has the document a in a wrong place$/, { ...level, files: [file] });
  });

  it('of damaged files are right or an error', async () => {
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
        // Changed bits of a gzip header, such as its time, may have no effect. Only a file that was cut must cause errors.
        if (isCut) expect(errors).toBeGreaterThan(0);
      }),
      { numRuns: 60 },
    );
  });

  it('of etchings are read completely, or reading fails', async () => {
    const { level, archive } = await levelOf([{ key: '00000004', values: ['["1:4",4,"A","A",0,"A",false,[],"0"]'] }], 4096);
    const read = async (from: number, to: number) => readEtchings(await archive(), { total: 9, levels: [level], runes: [] }, from, to);
    expect(await read(4, 5)).toMatchObject([{ id: '1:4' }]);
    await expect(read(3, 5)).rejects.toThrow('the archive does not have the etching 00000003');
  });

  it('of outputs are damaged if they remove more outputs than exist', async () => {
    const value = (vout: number) => `["${'ab'.repeat(32)}:${vout}",3,"${'cd'.repeat(32)}",1,0,["1:1",0,"A","A",0,"5"]]`;
    const older = await levelOf([{ key: 'ann', values: [value(0), value(1)] }], 4096);
    const steps = { steps: [10], unsettled: 1 };
    const ranges = levelRanges(19, steps);
    expect(ranges).toHaveLength(2);
    const totalAfter = async (removed: number) => {
      const head = { key: 'ann', values: [`[0,[[0,0,${removed}]]]`] };
      const newer = await levelOf([head, { key: removalKey('ann', 0, 0), values: [`["${'ab'.repeat(32)}:0"]`] }], 4096);
      for (const [name, content] of newer.files) older.files.set(name, content);
      const addresses = [older, newer].map(({ level }, i) => ({ ...level, ...ranges[i] }));
      const outputs = { tipHash: 'cd'.repeat(32), outputs: [], addresses, starts: [] };
      const archive = await older.archive({ ...steps, tip: 19, page: 2, names: [], outputs });
      const window = { limit: 20, offset: 2 };
      const body = await answerFromLists({ kind: 'further', part: 'outputs', address: 'ann', window }, 'hiro', archive, noTransactions);
      return (JSON.parse(String(body)) as { total: number }).total;
    };
    expect(await totalAfter(1)).toBe(1);
    await expect(totalAfter(3)).rejects.toThrow(ArchiveError);
  });

  it('must be in ascending order', () => {
    const writer = new DocumentWriter(4096, LIMITS, () => '');
    writer.addLines(lineOf({ key: 'b', values: [] }));
    expect(() => writer.addLines(lineOf({ key: 'a', values: [] }))).toThrow('documents are not sorted: a was added after b');
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
    expect(() => placeMembers(text, file)).toThrow(ArchiveError);
  });
});

describe('keys', () => {
  it('of addresses are ASCII, and a Bitcoin address is its own key', () => {
    expect(keyOfAddress('bc1pej2j02c4as4luf8jxqvwnwvgq69w5vrc4a76xx65v0yd36w9ykaskjvfwa')).toMatch(/^bc1pej2/);
    expect(keyOfAddress(`é\t!'()*~`)).toBe('%C3%A9%09%21%27%28%29%2A~');
    expect(keyOfAddress('\ud800')).toBeUndefined();
  });

  it('of pages are those of docs/files.md', () => expect(pageKey('00000003', 12)).toBe('00000003 00000012'));

  it('are stored as the shortest prefix that sorts after the previous key', () => {
    fc.assert(
      fc.property(key, key, (a, b) => {
        fc.pre(a < b);
        const start = separatorOf(a, b);
        expect(b.startsWith(start) && start > a && (start.length === 1 || start.slice(0, -1) <= a)).toBe(true);
      }),
    );
  });

  it('order addresses by their bytes', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'é', '\ud7ff', '\ue000', '\uffff', '𐀀', '𐏿', '😀'), maxLength: 4 });
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Math.sign(compareAddresses(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
      { numRuns: 2000 },
    );
  });
});
