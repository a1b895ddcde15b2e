/**
 * Tests search files, which find runes by the letters of their names. Tests the function that makes them from runes, and the files of
 * builds.
 */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  findRunes,
  lettersOf,
  MOST_BYTES,
  type NamedRune,
  readSearchFile,
  type SearchFile,
  searchFiles,
} from '../../src/lists/searchFiles.ts';
import { isBuiltFile } from '../../src/pages/fileKinds.ts';
import { filesBelow, temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { inventedRunes } from '../support/inventedRunes.ts';
import { check } from '../support/outputs.ts';
import { ndjson, record } from '../support/records.ts';

const bare = (spaced: string) => spaced.replaceAll('•', '');

/** Finds runes in search files like the explorer. Also returns the number of files that it read. */
async function find(letters: string, files: ReadonlyMap<string, string>): Promise<{ names: string[]; read: number }> {
  let read = 0;
  const found = await findRunes(letters, async (path) => {
    read += 1;
    const text = files.get(path);
    return text === undefined ? undefined : readSearchFile(text);
  });
  return { names: found.map(([spaced]) => bare(spaced)), read };
}

/** Names of three different letters, so that many names have the same prefix. */
const names = fc.uniqueArray(fc.string({ unit: fc.constantFrom('A', 'B', 'C'), minLength: 1, maxLength: 28 }), { maxLength: 40 });
const runeOf = (name: string, number: number): NamedRune => ({ id: `840000:${number}`, number, name, spaced_name: name });

describe('the files of a search', () => {
  const many = inventedRunes(20_000);
  // Names that all begin with RUNE or RUNES, to test long common prefixes.
  const deep = many.map((rune, i) => {
    const name = `RUNE${i % 3 === 0 ? 'S' : ''}${rune.name}`.slice(0, 28);
    return { ...rune, name, spaced_name: name };
  });

  it.each([
    ['runes with many names', many],
    ['runes whose names begin alike', deep],
  ])('of %s are small, and have every rune under each of its prefixes', async (_, runes) => {
    const files = new Map(searchFiles(runes));
    expect([...files.keys()].filter((path) => !isBuiltFile(path))).toEqual([]);
    const largest = Math.max(...[...files.values()].map((text) => Buffer.byteLength(text)));
    expect(largest).toBeLessThanOrEqual(MOST_BYTES);
    expect(files.size).toBeLessThan(1500);
    for (let i = 0; i < runes.length; i += 97) {
      const { name } = runes[i] as NamedRune;
      expect((await find(name, files)).names).toContain(name);
      const same = runes.filter((rune) => rune.name.startsWith(name.slice(0, 5)));
      // The oldest runes must come first, even if the file has only some of the runes.
      const found = (await find(name.slice(0, 5), files)).names;
      expect(found.slice(0, 8)).toEqual(same.slice(0, 8).map((rune) => rune.name));
    }
  });

  it('find the same runes as a list of all runes', async () => {
    await fc.assert(
      fc.asyncProperty(names, fc.string({ unit: fc.constantFrom('A', 'B', 'C'), minLength: 1, maxLength: 5 }), async (all, letters) => {
        const runes = all.map(runeOf);
        const found = (await find(letters, new Map(searchFiles(runes)))).names;
        // A single letter finds only the rune that has exactly this name. It does not find names that begin with it.
        const expected = all.filter((name) => (letters.length === 1 ? name === letters : name.startsWith(letters)));
        expect(found).toEqual(expected);
      }),
    );
  });

  it('depend only on the runes, in any order, and a new rune changes only files of its first two letters', () => {
    const before = new Map(searchFiles(deep));
    expect(new Map(searchFiles([...deep].reverse()))).toEqual(before);
    const added = runeOf('RUNESTONECARVER', 1_000_000);
    const other = runeOf('ZEBRACROSSINGS', 1_000_001);
    const after = new Map(searchFiles([...deep, added, other]));
    const changed = [...after].filter(([path, text]) => before.get(path) !== text).map(([path]) => path);
    expect(changed).toContain('runes/v1/search/ze.json');
    const ofRune = changed.filter((path) => path !== 'runes/v1/search/ze.json');
    expect(ofRune.length).toBeGreaterThan(0);
    expect(ofRune.length).toBeLessThan(4);
    expect(ofRune.filter((path) => !path.startsWith('runes/v1/search/ru'))).toEqual([]);
  });

  it('omit names, ids and symbols that the protocol does not allow', () => {
    const odd = [
      { ...runeOf('../../ETC', 1) },
      { ...runeOf('lower', 2) },
      { ...runeOf('A'.repeat(29), 3) },
      { ...runeOf('GOOD', 4), id: 'x' },
      { ...runeOf('GOODNAME', 5), spaced_name: '<b>', symbol: 'ab' },
      { ...runeOf('GOODOTHER', 6), spaced_name: 'GOOD•OTHER', symbol: '¤' },
      { ...runeOf('GOODTHIRD', 7), symbol: '"' },
    ];
    expect([...searchFiles(odd)]).toEqual([
      [
        'runes/v1/search/go.json',
        '{"runes":[\n["GOODNAME","840000:5",5],\n["GOOD•OTHER","840000:6",6],\n["GOODTHIRD","840000:7",7,"\\""]\n],"more":""}\n',
      ],
    ]);
  });

  it('are finite, even if all runes have the same name', () => {
    const same = Array.from({ length: 5000 }, (_, i) => runeOf('SAMENAME', i));
    const files = [...searchFiles(same)];
    expect(files.length).toBeLessThan(10);
    expect(Math.max(...files.map(([, text]) => text.length))).toBeLessThanOrEqual(MOST_BYTES);
  });
});

it('other text is not a search file', () => {
  expect(['', '<html>', '[]', '{"runes":{},"more":""}', '{"runes":[1],"more":""}', '{"runes":[]}'].map(readSearchFile)).toEqual(
    Array.from({ length: 6 }, () => undefined),
  );
});

it.each([
  ['dog•go•to', 'DOGGOTO'],
  ['Dog.Go To', 'DOGGOTO'],
  ['840000:3', undefined],
  ['', undefined],
  ['A'.repeat(29), undefined],
])('a typed name %s has the letters %s', (text, letters) => expect(lettersOf(text)).toBe(letters));

describe('a build', () => {
  const header =
    'id,number,name,spaced_name,block_hash,block_height,tx_index,tx_id,divisibility,premine,symbol,terms_amount,terms_cap,terms_height_start,terms_height_end,terms_offset_start,terms_offset_end,turbo,cenotaph,timestamp';
  const row = (name: string, number: number, height: number, symbol = '$') =>
    `${height}:${number},${number},${name},${name},${'0'.repeat(19)}${'a'.repeat(45)},${height},${number},${'b'.repeat(64)},0,0,${symbol},,,,,,,f,f,1700000000`;
  const at = (height: number, number: number, name: string) =>
    record(height, 1, { rune: { id: `${height}:${number}`, number, name, spaced_name: name } });
  const searchOf = (dist: string) =>
    Object.fromEntries(
      filesBelow(dist)
        .filter((path) => path.startsWith('runes/v1/search/'))
        .map((path) => [path.slice('runes/v1/search/'.length), readFileSync(join(dist, path), 'utf8')]),
    );
  /** Builds, and returns the search files that the build wrote and removed. */
  const changesOf = async (dist: string, input: string) => {
    const folder = join(dist, 'runes/v1/search');
    const stamps = () => new Map(filesBelow(folder).map((path) => [path, statSync(join(folder, path), { bigint: true }).ctimeNs]));
    const before = stamps();
    await testBuild(dist, { inputs: [input] });
    const after = stamps();
    return {
      written: [...after].flatMap(([path, stamp]) => (before.get(path) === stamp ? [] : [path])).sort(),
      removed: [...before.keys()].filter((path) => !after.has(path)),
    };
  };

  it('writes only the files of new etchings, and removes those of lost etchings, like a full build', async () => {
    const folder = temporaryFolder();
    const [input, dist] = [join(folder, 'input'), join(folder, 'dist')];
    // More names with the prefix MA than one search file may have, so this file is split.
    const many = Array.from(
      { length: 1200 },
      (_, i) => `MA${'ABC'[i % 3]}${[...String(i)].map((digit) => 'QRSTUVWXYZ'[Number(digit)]).join('')}`,
    );
    const runes = many.map((name, i) => row(name, i, 840_000));
    const write = (heights: readonly number[], rows: readonly string[]) =>
      writeFiles(input, {
        'runes.csv': [header, ...runes, ...rows, ''].join('\n'),
        'records.ndjson': ndjson(heights.map((height) => ({ ...at(840_000, 0, many[0] ?? ''), location: record(height, 1).location }))),
      });
    const expectAsFull = async () => {
      await testBuild(`${dist}-full`, { inputs: [input], full: true });
      expect(searchOf(dist)).toEqual(searchOf(`${dist}-full`));
    };
    write([840_000], []);
    await testBuild(dist, { inputs: [input] });
    expect(Object.keys(searchOf(dist)).sort()).toEqual(['ma.json', 'ma/b.json']);
    // The new block has no etchings, so the build writes no search file.
    write([840_000, 840_001], []);
    expect(await changesOf(dist, input)).toEqual({ written: [], removed: [] });
    write([840_000, 840_001, 840_002], [row('MOON', 1200, 840_002), row('MABEL', 1201, 840_002)]);
    expect(await changesOf(dist, input)).toEqual({ written: ['ma/b.json', 'mo.json'], removed: [] });
    await expectAsFull();
    write([840_000, 840_001], []);
    expect(await changesOf(dist, input)).toEqual({ written: ['ma/b.json'], removed: ['mo.json'] });
    await expectAsFull();
  });

  it('keeps symbols that decoders or trimmed texts lose', async () => {
    const [input, dist] = [join(temporaryFolder(), 'input'), join(temporaryFolder(), 'dist')];
    const symbols = ['\ufeff', '\ufffe', '\u00a0', '\u3000', '\u2028', '\u0001', '\ufffd', '\u{10ffff}'];
    const rows = symbols.map((symbol, i) => row(`NAME${'ABCDEFGH'[i]}`, i, 840_000, symbol));
    writeFiles(input, {
      'runes.csv': [header, ...rows, ''].join('\n'),
      'records.ndjson': ndjson([{ ...at(840_000, 0, 'NAMEA'), location: record(840_000, 1).location }]),
    });
    await testBuild(dist, { inputs: [input] });
    const { runes } = JSON.parse(searchOf(dist)['na.json'] ?? '') as SearchFile;
    expect(runes.map(([, , , symbol]) => symbol)).toEqual(symbols);
    await check(dist);
  });

  it('without etchings has the runes of the records', async () => {
    const folder = temporaryFolder();
    const [input, dist] = [join(folder, 'input'), join(folder, 'dist')];
    writeFiles(input, { 'records.ndjson': ndjson([at(840_000, 1, 'APPLES'), at(840_001, 2, 'PEARS')]) });
    await testBuild(dist, { inputs: [input] });
    expect(Object.keys(searchOf(dist)).sort()).toEqual(['ap.json', 'pe.json']);
    writeFileSync(join(input, 'records.ndjson'), ndjson([at(840_000, 1, 'APPLES'), at(840_001, 3, 'PLUMS')]));
    expect(await changesOf(dist, input)).toEqual({ written: ['pl.json'], removed: ['pe.json'] });
    expect(searchOf(dist)).toEqual({
      'ap.json': '{"runes":[\n["APPLES","840000:1",1]\n],"more":""}\n',
      'pl.json': '{"runes":[\n["PLUMS","840001:3",3]\n],"more":""}\n',
    });
  });
});
