/** Tests which archive files, and which answers of hosts, a reader accepts or refuses. */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { sealFile } from '../../src/contract/archiveFile.ts';
import { ArchiveError } from '../../src/format/archiveError.ts';
import { Archive } from '../../src/format/archiveReader.ts';
import { FormatError } from '../../src/format/formatVersion.ts';
import type { DocumentLevel } from '../../src/format/levels.ts';
import { PartCache } from '../../src/format/partCache.ts';
import { parseRoot, type Root, renderRoot } from '../../src/format/root.ts';
import { parseDirectory, type Segment } from '../../src/format/segmentDirectory.ts';
import { verifiedRead } from '../../src/format/verifiedRead.ts';
import { inflateText, partOf } from '../../src/serve/archiveParts.ts';
import { hex } from '../support/records.ts';

const MB = 1024 * 1024;

describe('a root', () => {
  const segment: Segment = { first: 4, last: 7, file: 'a'.repeat(64), bytes: 100, directory: 20 };
  const files = [{ from: '', file: 'b'.repeat(64), bytes: 9, directory: 0, members: [['', 9] as const] }];
  const level: DocumentLevel = { first: 0, last: 7, files };
  const sizes = { pageSize: 60, objectSize: 4096, segmentBlocks: 1024 };
  const root: Root = { ...sizes, steps: [16, 4], unsettled: 2, segments: [segment], ids: [level] };

  /** Lists of a mirror with the tip 21, whose levels are 0 to 15, 16 to 19 and 20 to 21, without their files. */
  const listsWith = (levels: Readonly<Record<string, unknown>>, more: object = {}) => {
    const right = [
      { first: 0, last: 15 },
      { first: 20, last: 21 },
    ];
    const of = (kind: string): unknown => levels[kind] ?? right;
    return {
      ...{ steps: [16, 4], unsettled: 2, tip: 21, page: 60, names: of('names') },
      etchings: { total: 1, levels: of('etchings'), runes: of('runes') },
      activity: of('activity'),
      balances: { addresses: of('addresses'), holders: of('holders') },
      outputs: { tipHash: '', outputs: of('outputs'), addresses: of('owners'), starts: of('starts') },
      ...more,
    };
  };

  it('may have lists whose levels follow from the tip and the lowest block', () => {
    const from = (levels: readonly (readonly [number, number])[]) => levels.map(([first, last]) => ({ first, last }));
    const above = Object.fromEntries(
      ['addresses', 'holders', 'outputs', 'owners', 'starts', 'activity'].map((kind) => [
        kind,
        from([
          [5, 7],
          [8, 15],
        ]),
      ]),
    );
    for (const lists of [
      listsWith({}),
      listsWith(above, { lowest: 5 }),
      { ...listsWith({}), etchings: undefined, balances: undefined, outputs: undefined, activity: undefined, names: [] },
    ])
      expect(() => parseRoot(renderRoot({ ...root, lists } as unknown as Root))).not.toThrow();
  });

  it('is read as written', () => {
    const parted: Root = { ...root, segments: [{ ...segment, part: { page: 3, operations: { mint: 4 } } }] };
    for (const one of [root, parted]) expect(parseRoot(renderRoot(one))).toEqual(one);
  });

  it.each<[string, unknown]>([
    ['no page size', { ...root, pageSize: 0 }],
    ['half a record in a page', { ...root, pageSize: 1.5 }],
    ['no steps', { ...root, steps: undefined }],
    ['steps that are no multiples of each other', { ...root, steps: [16, 3] }],
    ['equal steps', { ...root, steps: [16, 16] }],
    ['steps that ascend', { ...root, steps: [4, 16] }],
    ['a step of 0', { ...root, steps: [16, 0] }],
    ['an endless list of steps', { ...root, steps: Array.from({ length: 9 }, (_, i) => 2 ** (9 - i)) }],
    ['unsettled blocks below 0', { ...root, unsettled: -1 }],
    ['no object size', { ...root, objectSize: undefined }],
    ['a number of blocks that is text', { ...root, segmentBlocks: '1024' }],
    ['no segments', { ...root, segments: undefined }],
    ['no table', { ...root, ids: null }],
    ['a level twice', { ...root, ids: [level, level] }],
    ['levels that overlap', { ...root, ids: [level, { ...level, first: 7, last: 9 }] }],
    ['a level that ends before it begins', { ...root, ids: [{ ...level, first: 8 }] }],
    ['more levels than steps allow', { ...root, ids: Array.from({ length: 19 }, (_, i) => ({ ...level, first: i, last: i })) }],
    ...(['etchings', 'runes', 'names', 'addresses', 'holders', 'outputs', 'owners', 'starts', 'activity'] as const).flatMap((kind) =>
      [
        ['a level that does not follow from the tip', [{ first: 1, last: 15 }]],
        ['40 equal levels', Array.from({ length: 40 }, () => ({ first: 0, last: 15 }))],
        [
          'levels of another tip',
          [
            { first: 0, last: 15 },
            { first: 16, last: 22 },
          ],
        ],
      ].map(([what, levels]): [string, unknown] => [`${what}, of ${kind}`, { ...root, lists: listsWith({ [kind]: levels }) }]),
    ),
    ['a tip above all heights', { ...root, lists: { ...listsWith({}), tip: 2 ** 24 } }],
    ['a tip that is text', { ...root, lists: { ...listsWith({}), tip: '21' } }],
  ])('is refused with %s', (_, wrong) => {
    expect(() => parseRoot(renderRoot(wrong as Root))).toThrow(ArchiveError);
  });

  it('is refused with millions of empty lists, which need far more memory than their text', () => {
    const text = renderRoot(root).replace('"segments":[', `"segments":[${'[],'.repeat(2_000_001)}`);
    expect(() => parseRoot(text)).toThrow(ArchiveError);
  });

  it.each([
    [5, 'have format 5, and this version of rune-activity-mirror reads format 4: update this program or client module'],
    [3, 'have format 3, and this version of rune-activity-mirror reads format 4: the mirror has to be built again with this version'],
    ['"1"', 'have no format version, '],
  ])('of format %s is refused with advice', (format, message) => {
    const text = renderRoot(root).replace('"format":4', `"format":${format}`);
    const failure = (() => {
      try {
        return parseRoot(text);
      } catch (error) {
        return error;
      }
    })();
    expect(failure).toBeInstanceOf(FormatError);
    expect(String(failure)).toContain(message);
  });

  it.each<[string, Partial<Segment>]>([
    ['a path as a file', { file: '../../../secret.json'.padEnd(64, 'a') }],
    ['a directory larger than its file', { directory: 101 }],
    ['a directory of terabytes', { bytes: 2 ** 50, directory: 2 ** 50 }],
    ['half a byte', { bytes: 100.5 }],
    ['a directory below zero', { directory: -1 }],
    ['no size', { bytes: undefined as unknown as number }],
  ])('with %s is not followed', async (_, change) => {
    const content = gzipSync(renderRoot({ ...root, objectSize: 2 * MB, segments: [{ ...segment, ...change }] }));
    const { name, file: text } = sealFile(content);
    const asked: string[] = [];
    const archive = await Archive.open(
      { root: name, bytes: content.length },
      {
        read: async (file) => {
          asked.push(file);
          return text;
        },
        inflate: inflateText,
      },
    );
    await expect(archive.block(5)).rejects.toThrow('the root or a directory of the archive is damaged');
    expect(asked).toEqual([name]);
  });

  it('is refused if it is not a root', () => {
    for (const text of ['', '<!doctype html>', 'null', renderRoot(root).slice(0, -3)])
      expect(() => parseRoot(text), text).toThrow(ArchiveError);
  });

  it('names directories, which are refused if they do not fit', () => {
    const line = JSON.stringify({ height: 4, hash: hex('x'), records: 3, pages: [30, 50], operations: { mint: [1, 2] } });
    expect(parseDirectory(`${line}\n`, segment).get(4)).toMatchObject({ offsets: [0, 30] });
    for (const text of [
      '',
      `${line}\n${line}\n`,
      line.slice(1),
      line.replace('50', '51'),
      line.replace('[30,50]', '80'),
      line.replace(/"operations".*/, '"a":1}'),
    ])
      expect(() => parseDirectory(text, segment), text).toThrow(ArchiveError);
  });
});

describe('a part of a file', () => {
  const content = Buffer.from('0123456789');
  const response = (bytes: Uint8Array | null, status: number, headers: Record<string, string> = {}) =>
    new Response(bytes === null ? null : new Uint8Array(bytes), { status, headers });

  it.each<[string, Response, string | undefined]>([
    ['of the part', response(content.subarray(2, 6), 206, { 'content-range': 'bytes 2-5/10' }), '2345'],
    ['of the part, without a Content-Range', response(content.subarray(2, 6), 206), '2345'],
    ['of the whole file', response(content, 200), '2345'],
    ['of another part', response(content.subarray(0, 4), 206, { 'content-range': 'bytes 0-3/10' }), undefined],
    ['of less than the part', response(content.subarray(2, 5), 206, { 'content-range': 'bytes 2-4/5' }), undefined],
    ['of a file that ends before', response(content.subarray(0, 5), 200), undefined],
    ['that is empty', response(null, 200), undefined],
    ['that the file is shorter', response(null, 416), undefined],
    ['that the file is missing', response(Buffer.from('<h1>no</h1>'), 404), undefined],
  ])('is taken from an answer %s', async (_, answer, expected) => {
    const part = await partOf('file', answer, 2, 4);
    expect(part && Buffer.from(part).toString()).toBe(expected);
  });

  it('is not taken from any other answer', async () => {
    for (const status of [500, 403, 301])
      await expect(partOf('file', response(content, status), 2, 4)).rejects.toThrow(`file was answered with status ${status}`);
  });

  it('may arrive in pieces of any length, and the rest of the answer is not read', async () => {
    for (const size of [1, 3, 4, 100]) {
      let isCancelled = false;
      const body = new ReadableStream<Uint8Array>({
        pull: (controller) => controller.enqueue(new Uint8Array(Buffer.alloc(size, 'x'))),
        cancel: () => {
          isCancelled = true;
        },
      });
      const part = await partOf('file', new Response(body), 20, 7);
      expect([Buffer.from(part ?? []).toString(), isCancelled]).toEqual(['xxxxxxx', true]);
    }
  });

  it('is inflated if it is one complete gzip member, up to a size', async () => {
    const member = gzipSync('•'.repeat(1000));
    expect(await inflateText(member, 3000)).toBe('•'.repeat(1000));
    expect(await inflateText(gzipSync('\ufeffa'), 4)).toBe('\ufeffa');
    await expect(inflateText(member, 2999)).rejects.toThrow('inflates to more than 2999 bytes');
    const damaged = Buffer.from(member);
    damaged[damaged.length - 8] = (damaged[damaged.length - 8] ?? 0) ^ 1;
    for (const wrong of [damaged, member.subarray(0, -1), Buffer.concat([member, Buffer.from('x')]), Buffer.from('no gzip')])
      await expect(inflateText(wrong, MB)).rejects.toThrow();
  });
});

it('the tail of a file is checked even if the tail is cached: the returned bytes are those that were checked', async () => {
  const { name, file } = sealFile(Buffer.alloc(40_000, 'a'));
  let served = file;
  const read = async (_: string, offset: number, length: number) => served.subarray(offset, offset + length);
  const digest = async (bytes: Uint8Array) => createHash('sha256').update(bytes).digest();
  const checked = verifiedRead(read, digest, new PartCache());
  expect(await checked(name, 0, 10, file.length)).toEqual(file.subarray(0, 10));
  served = Buffer.from(file);
  served.writeUInt8((served.at(-1) ?? 0) ^ 1, served.length - 1);
  await expect(checked(name, 0, file.length, file.length)).rejects.toThrow(ArchiveError);
  served = file;
  expect(await checked(name, 0, file.length, file.length)).toEqual(file);
});
