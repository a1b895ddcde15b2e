/**
 * Tests lists of activity in archives of both layouts: how many rounds of reads an answer takes, and what happens if
 * files are damaged or forged. Reads that run at the same time are one round.
 */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { crc32 } from '../../src/format/crc32.ts';
import type { ActivityLevel, ListTables } from '../../src/format/listTables.ts';
import { parseRoot, type Root, renderRoot } from '../../src/format/root.ts';
import { POINTER_BYTES } from '../../src/lists/activity.ts';
import { siteOf } from '../../src/pages/mirrorOptions.ts';
import { FetchMirror } from '../../src/serve/fetchHost.ts';
import { VerificationError } from '../../src/verify/findings.ts';
import { ACTIVITY_INPUTS } from '../support/activityVectors.ts';
import { contentOf, fileServer, MANIFEST, putFile } from '../support/archives.ts';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { check } from '../support/outputs.ts';
import { readsOf } from '../support/rounds.ts';
import { randomFor } from '../support/seed.ts';

const work = temporaryFolder();
const at = (name: string) => join(work, name);
const SIZES = { small: 4096, ranges: 2 * 1024 * 1024, files: 128 * 1024 } as const;
const siteAt = (name: string) => siteOf(JSON.parse(readFileSync(join(at(name), MANIFEST), 'utf8')));
const fileAt = (name: string, file: string) => join(at(name), 'archive', `${file}.bin`);
const rootOf = (name: string) => parseRoot(gunzipSync(contentOf(at(name), siteAt(name).listRoot?.root ?? '')).toString());
const levelsOf = (name: string): readonly ActivityLevel[] => rootOf(name).lists?.activity ?? [];

const ADDRESS = 'bc1puhscltmvhv6c8qfdfgqx8gjrr3qeshngc2yxkr2sv5wepn8x75nqefemv0';
const BY_ID = [
  'etchings/840000:6/activity?limit=20',
  'etchings/840000:6/activity?limit=7&offset=815',
  'etchings/840000:9999/activity',
  `etchings/840000:6/activity/${ADDRESS}?offset=50`,
  `addresses/${ADDRESS}/activity?limit=20&offset=130`,
  'addresses/nobody/activity',
];
const BY_NAME = ['etchings/1/activity', `etchings/IYACRQIUKFATVU/activity/${ADDRESS}`, 'etchings/NOSUCHRUNE/activity'];
const targets = [...BY_ID, ...BY_NAME].map((path) => `/runes/v1/${path}`);
const ask = async (mirror: FetchMirror, target: string) => {
  const response = await mirror.answer(new Request(`http://127.0.0.1${target}`));
  return response?.status === 503 ? '503' : `${response?.status} ${await response?.text()}`;
};
const answersOf = (name: string) => {
  const mirror = new FetchMirror(fileServer(at(name)).fetchFile, 0);
  return Promise.all(targets.map((target) => ask(mirror, target)));
};

beforeAll(async () => {
  for (const [name, objectSize] of Object.entries(SIZES)) {
    await testBuild(at(name), {
      inputs: ACTIVITY_INPUTS,
      pageSizes: [2, 7, 20],
      layout: name === 'files' ? name : 'archive',
      lists: true,
      objectSize,
    });
  }
});

describe.each(['small', 'ranges', 'files'] as const)('lists of activity, %s', (name) => {
  it('take three rounds of reads after the manifest and the root, or four by name', async () => {
    for (const [i, target] of targets.entries()) {
      const { rounds } = await readsOf(target, siteAt(name), at(name));
      // A table in small files may take up to two more rounds. In layout `files`, the root of the lists is not in
      // memory yet, so reading the root takes one more round.
      const most = (i < BY_ID.length ? 3 : 4) + { small: 2, ranges: 0, files: 1 }[name];
      expect([target, rounds, rounds <= most]).toEqual([target, rounds, true]);
    }
  });

  it('of a damaged or shortened file are right or a 503, and verification finds the damage', async () => {
    const random = randomFor(`activity of ${name}`);
    const expected = await answersOf(name);
    let refused = 0;
    const files = levelsOf(name).flatMap(({ heads, pointers }) => [...heads.files.slice(0, 3), ...pointers.files.slice(0, 3)]);
    for (const [i, file] of files.entries()) {
      const [place, bits] = [random(), 1 + Math.floor(random() * 255)];
      const damage = (content: Buffer) => {
        const where = Math.floor(place * content.length);
        if (i % 3 === 2) return content.subarray(0, where);
        const copy = Buffer.from(content);
        copy[where] = (copy[where] ?? 0) ^ bits;
        return copy;
      };
      const path = `archive/${file}.bin`;
      const mirror = new FetchMirror(fileServer(at(name), (asked, content) => (asked === path ? damage(content) : content)).fetchFile, 0);
      for (const [j, target] of targets.entries()) {
        const answer = await ask(mirror, target);
        if (answer === '503') refused += 1;
        else expect(answer, `${target} with ${path} damaged at ${place}`).toBe(expected[j]);
      }
      const before = readFileSync(fileAt(name, file));
      writeFileSync(fileAt(name, file), damage(before));
      const error = await check(at(name)).catch((caught: unknown) => caught);
      writeFileSync(fileAt(name, file), before);
      expect((error as VerificationError).details).toContainEqual(expect.stringContaining(path));
    }
    expect(refused).toBeGreaterThan(0);
    await check(at(name));
  });
});

/** Copies a build, and changes a table of the last level of lists. The names and checksums of files are right. */
function forge(
  name: string,
  table: 'heads' | 'pointers',
  change: (content: Buffer) => void,
  changeRoot = (root: Root): Root => root,
): string {
  const copy = `${name}-${table}-${Math.random()}`;
  cpSync(at(name), at(copy), { recursive: true });
  const root = rootOf(name);
  const put = (content: Buffer) => putFile(at(copy), content);
  const activity = (root.lists?.activity ?? []).map((level, i, all) => {
    if (i < all.length - 1) return level;
    const content = contentOf(at(name), level[table].files[0] ?? '');
    change(content);
    for (let end = 4096; end <= content.length; end += 4096) content.writeUInt32BE(crc32(content, end - 4096, end - 4), end - 4);
    return { ...level, [table]: { ...level[table], files: [put(content), ...level[table].files.slice(1)] } };
  });
  const lists = root.lists && { ...root.lists, activity };
  const text = gzipSync(renderRoot(changeRoot({ ...root, lists })));
  const manifest = JSON.parse(readFileSync(join(at(copy), MANIFEST), 'utf8')) as object;
  const changed = { ...manifest, [name === 'files' ? 'list_root' : 'archive']: { root: put(text), bytes: text.length } };
  writeFileSync(join(at(copy), MANIFEST), `${JSON.stringify(changed, null, 2)}\n`);
  return copy;
}

function swap(content: Buffer, a: number, b: number, length: number): void {
  const kept = Buffer.from(content.subarray(a, a + length));
  content.copyWithin(a, b, b + length);
  kept.copy(content, b);
}

describe('lists that a faulty program made', () => {
  it.each<[string, () => string]>([
    ['swapped pointers', () => forge('ranges', 'pointers', (content) => swap(content, 0, 300 * POINTER_BYTES, POINTER_BYTES))],
    ['a pointer to another record', () => forge('ranges', 'pointers', (content) => content.writeUInt8(content.readUInt8(11) ^ 1, 11))],
    ['a list that is too short', () => forge('ranges', 'heads', (content) => content.writeUInt8(content.readUInt8(15) - 1, 15))],
    ['another key', () => forge('ranges', 'heads', (content) => content.writeUInt8(content.readUInt8(8) ^ 1, 8))],
    ['swapped heads', () => forge('ranges', 'heads', (content) => swap(content, 0, 16, 16))],
  ])('are found by verification: %s', async (_, make) => {
    const error = await check(at(make())).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(VerificationError);
    expect((error as VerificationError).details).toContainEqual(expect.stringMatching(/^the lists of the blocks [0-9]+ to [0-9]+ differ/));
  });

  const changeLevels = (lists: ListTables, change: (level: ActivityLevel) => ActivityLevel) => ({
    ...lists,
    activity: (lists.activity ?? []).map(change),
  });
  const LEVELS = 'has other levels of lists than a build makes';
  const BLOCKS = 'has lists of other blocks than the manifest';
  it.each<[string, string, string, (lists: ListTables) => ListTables]>([
    ['another begin', 'ranges', LEVELS, (lists) => changeLevels(lists, (level) => ({ ...level, begin: level.begin + 1 }))],
    [
      'another number of pointers',
      'ranges',
      'have a wrong number of files',
      (lists) => changeLevels(lists, (level) => ({ ...level, pointers: { ...level.pointers, counts: [10 ** 7] } })),
    ],
    ['another highest block', 'ranges', 'damaged', (lists) => ({ ...lists, tip: lists.tip + 1 })],
    ['another lowest block', 'files', BLOCKS, (lists) => ({ ...lists, lowest: (lists.lowest ?? 0) - 1 })],
    ['no lowest block', 'files', 'damaged', (lists) => ({ ...lists, lowest: undefined })],
  ])('are found by verification: %s', async (_, name, finding, change) => {
    const changeRoot = (root: Root): Root => ({ ...root, lists: root.lists && change(root.lists) });
    const error = await check(at(forge(name, 'heads', () => undefined, changeRoot))).catch((caught: unknown) => caught);
    expect((error as VerificationError).details).toContainEqual(expect.stringContaining(finding));
  });

  it('are not answered: a record of another rune or address is a 503', async () => {
    // Changes each pointer so that it points to the record next to the right one.
    const wrong = forge('ranges', 'pointers', (content) => {
      for (let at = 0; at < content.length; at += 1) if ((at % 4096) % POINTER_BYTES === 11) content[at] = (content[at] ?? 0) ^ 1;
    });
    const answers = await answersOf(wrong);
    // A wrong record of another rune or address gives a 503. If the wrong record belongs to the same rune, only
    // verification finds the fault.
    expect(answers.filter((answer) => answer === '503').length).toBeGreaterThan(0);
    const expected = await answersOf('ranges');
    for (const [i, answer] of answers.entries()) if (expected[i]?.includes('"total":0') === true) expect(answer).toBe(expected[i]);
  });
});
