/** The files by which runes are found from the letters of their names: as a function of the runes, and in builds. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findRunes, lettersOf, MOST_BYTES, type NamedRune, readSearchFile, searchFiles } from '../src/pages/search.ts';
import { isBuiltFile } from '../src/pages/siteFiles.ts';
import { inventedRunes } from './support/inventedRunes.ts';

const bare = (spaced: string) => spaced.replaceAll('•', '');

/** Finds runes in files as the explorer does, and counts the files. */
async function find(letters: string, files: ReadonlyMap<string, string>): Promise<{ names: string[]; read: number }> {
  let read = 0;
  const found = await findRunes(letters, async (path) => {
    read += 1;
    const text = files.get(path);
    return text === undefined ? undefined : readSearchFile(text);
  });
  return { names: found.map(([spaced]) => bare(spaced)), read };
}

/** Names of few letters, so that many begin with the same ones. */
const names = fc.uniqueArray(fc.string({ unit: fc.constantFrom('A', 'B', 'C'), minLength: 1, maxLength: 28 }), { maxLength: 40 });
const runeOf = (name: string, number: number): NamedRune => ({ id: `840000:${number}`, number, name, spaced_name: name });

describe('the files of a search', () => {
  const many = inventedRunes(20_000);
  // As many as a popular pair of letters may have, with names that divide late.
  const deep = many.map((rune, i) => {
    const name = `RUNE${i % 3 === 0 ? 'S' : ''}${rune.name}`.slice(0, 28);
    return { ...rune, name, spaced_name: name };
  });

  it.each([
    ['runes with many names', many],
    ['runes whose names begin alike', deep],
  ])('of %s are small, and have every rune under each of its first letters', async (_, runes) => {
    const files = new Map(searchFiles(runes));
    expect([...files.keys()].filter((path) => !isBuiltFile(path))).toEqual([]);
    const largest = Math.max(...[...files.values()].map((text) => Buffer.byteLength(text)));
    expect(largest).toBeLessThanOrEqual(MOST_BYTES);
    expect(files.size).toBeLessThan(1500);
    for (let i = 0; i < runes.length; i += 97) {
      const { name } = runes[i] as NamedRune;
      expect((await find(name, files)).names).toContain(name);
      const same = runes.filter((rune) => rune.name.startsWith(name.slice(0, 5)));
      // The oldest come first, whether the file is complete or not.
      const found = (await find(name.slice(0, 5), files)).names;
      expect(found.slice(0, 8)).toEqual(same.slice(0, 8).map((rune) => rune.name));
    }
  });

  it('find what a list of all runes has', async () => {
    await fc.assert(
      fc.asyncProperty(names, fc.string({ unit: fc.constantFrom('A', 'B', 'C'), minLength: 1, maxLength: 5 }), async (all, letters) => {
        const runes = all.map(runeOf);
        const found = (await find(letters, new Map(searchFiles(runes)))).names;
        // One letter is a name, but not the beginning of one.
        const expected = all.filter((name) => (letters.length === 1 ? name === letters : name.startsWith(letters)));
        expect(found).toEqual(expected);
      }),
    );
  });

  it('follow from the runes alone, in any order, and a new rune changes only files of its first two letters', () => {
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

  it('leave out names, ids and symbols that the protocol does not have', () => {
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

  it('end, even if all runes have the same name', () => {
    const same = Array.from({ length: 5000 }, (_, i) => runeOf('SAMENAME', i));
    const files = [...searchFiles(same)];
    expect(files.length).toBeLessThan(10);
    expect(Math.max(...files.map(([, text]) => text.length))).toBeLessThanOrEqual(MOST_BYTES);
  });
});

it('other text is not a file of a search', () => {
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
