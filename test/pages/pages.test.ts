/** Tests the page map (src/pages) alone, with a build in memory: the files that an answer reads, and its body. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FORMAT } from '../../src/format/formatVersion.ts';
import { answerFromLists } from '../../src/lists/answers.ts';
import { type ActivityList, OPERATIONS } from '../../src/pages/blockAndTransactionLists.ts';
import { cutRecords, ENVELOPE_TAIL, envelopeHead, PageFormatError, readPage } from '../../src/pages/envelope.ts';
import { type Files, MissingFileError, type OpenFile } from '../../src/pages/fileAccess.ts';
import { archivePath, MANIFEST_PATH, pagePath, pagesOf, stemOf } from '../../src/pages/filePaths.ts';
import { type BuiltSite, DIALECTS, siteOf } from '../../src/pages/mirrorOptions.ts';
import { MirrorReader } from '../../src/pages/mirrorReader.ts';
import { parsePath, parseTarget } from '../../src/pages/parseRequest.ts';
import { respond } from '../../src/pages/respond.ts';
import { firstRead, isPage, secondRead } from '../../src/pages/windowToPages.ts';
import { matchesEtag } from '../../src/serve/http/headers.ts';
import { NO_ARCHIVE } from '../support/archives.ts';

const TX = 'ab'.repeat(32);
const HASH = '00'.repeat(8) + 'cd'.repeat(24);
const FILES = {
  layout: 'files',
  operationPages: true,
  parquet: false,
  archive: undefined,
  listRoot: undefined,
  tip: 1000,
  lists: {},
} as const;
const DEFAULT: BuiltSite = { ...FILES, dialect: 'contract', pageSizes: [20, 60] };

/** Returns a record. Its text contains the separator of two records. */
const recordAt = (i: number) => `{"rune":{"id":"1:${i}","name":"},{\\"rune\\":${i}"},"amount":"${i}"}`;

/** Returns the files that a build writes for a list. */
function filesOf(list: ActivityList, total: number, site: BuiltSite): Map<string, string> {
  const stem = stemOf(list, site);
  return new Map(
    pagesOf(total, site).map((page) => {
      const records = Array.from({ length: Math.max(0, Math.min(page.limit, total - page.offset)) }, (_, i) => recordAt(page.offset + i));
      return [pagePath(stem, page, site), envelopeHead(page, total) + records.join(',') + ENVELOPE_TAIL];
    }),
  );
}

interface MemoryFile extends OpenFile {
  readonly content: string;
}

class MemoryFiles implements Files<MemoryFile> {
  readonly opened: string[] = [];
  readonly found: string[] = [];
  readonly read = NO_ARCHIVE.read;
  readonly inflate = NO_ARCHIVE.inflate;
  constructor(readonly files: ReadonlyMap<string, string>) {}
  async open(path: string): Promise<MemoryFile | undefined> {
    this.opened.push(path);
    const content = this.files.get(path);
    if (content === undefined) return undefined;
    this.found.push(path);
    return { content, text: () => Promise.resolve(content) };
  }
}

const pageSizes = fc
  .uniqueArray(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 4 })
  .map((sizes) => sizes.sort((a, b) => a - b));
const sites: fc.Arbitrary<BuiltSite> = fc
  .record({ dialect: fc.constantFrom(...DIALECTS), pageSizes })
  .map((site) => ({ ...FILES, ...site }));
const hexId = fc.stringMatching(/^[0-9a-f]{64}$/);
const lists: fc.Arbitrary<ActivityList> = fc.oneof(
  hexId.map((txId) => ({ kind: 'transaction' as const, txId })),
  fc.oneof(fc.nat().map(String), hexId).map((block) => ({ kind: 'block' as const, block })),
  fc
    .tuple(fc.oneof(fc.nat().map(String), hexId), fc.constantFrom(...OPERATIONS))
    .map(([block, operation]) => ({ kind: 'block' as const, block, operation })),
);

function targetOf(list: ActivityList, limit: number, offset: number): string {
  const operation = list.kind === 'block' && list.operation !== undefined ? `&operation_type=${list.operation}` : '';
  const path = list.kind === 'transaction' ? `transactions/${list.txId}` : `blocks/${list.block}`;
  return `/runes/v1/${path}/activity?limit=${limit}&offset=${offset}${operation}`;
}

describe('any window of any list', () => {
  it('is a slice of the list, and takes at most two pages', async () => {
    await fc.assert(
      fc.asyncProperty(
        sites,
        lists,
        fc.integer({ min: 0, max: 500 }),
        fc.nat(600),
        fc.double({ min: 0, max: 1, noNaN: true }),
        async (site, list, total, offset, share) => {
          const maximum = site.pageSizes.at(-1) ?? 1;
          const limit = 1 + Math.floor(share * (maximum - 1));
          const source = new MemoryFiles(total === 0 ? new Map() : filesOf(list, total, site));
          const answer = await respond(targetOf(list, limit, offset), site, source, answerFromLists);
          const slice = Array.from({ length: total }, (_, i) => recordAt(i)).slice(offset, offset + limit);
          const expected = `${envelopeHead({ limit, offset }, total)}${slice.join(',')}${ENVELOPE_TAIL}`;
          expect(answer.kind === 'page' ? answer.page.content : answer.kind === 'window' && answer.body).toBe(expected);
          expect(source.found.length).toBeLessThanOrEqual(2);
          // If a page is missing, the answer reads at most one more page.
          expect(source.opened.length).toBeLessThanOrEqual(2);
        },
      ),
      { numRuns: 3000 },
    );
  });

  it('that is a page is answered with its file unchanged', async () => {
    const list: ActivityList = { kind: 'block', block: '840000' };
    const source = new MemoryFiles(filesOf(list, 130, DEFAULT));
    for (const [limit, offset] of [
      [20, 0],
      [20, 20],
      [60, 0],
      [60, 120],
      [20, 120],
    ] as const) {
      const answer = await respond(targetOf(list, limit, offset), DEFAULT, source, answerFromLists);
      expect(answer).toMatchObject({
        kind: 'page',
        page: { content: source.files.get(pagePath(stemOf(list, DEFAULT), { limit, offset }, DEFAULT)) },
      });
    }
  });

  it('uses the page sizes of the site', async () => {
    const site: BuiltSite = { ...DEFAULT, dialect: 'hiro', pageSizes: [20, 60, 1000] };
    const list: ActivityList = { kind: 'transaction', txId: TX };
    const source = new MemoryFiles(filesOf(list, 1500, site));
    const answer = await respond(targetOf(list, 777, 500), site, source, answerFromLists);
    expect(answer.kind === 'window' && readPage(answer.body).records).toEqual(Array.from({ length: 777 }, (_, i) => recordAt(500 + i)));
    expect(await respond(targetOf(list, 1001, 0), site, source, answerFromLists)).toMatchObject({
      kind: 'refusal',
      message: 'querystring/limit must be <= 1000',
    });
    expect(source.found).toHaveLength(2);
  });

  it('reads the smallest page that covers it', () => {
    const site: BuiltSite = { ...DEFAULT, dialect: 'hiro', pageSizes: [20, 60, 1000] };
    expect(firstRead({ limit: 5, offset: 30 }, site)).toEqual({ limit: 20, offset: 20 });
    expect(firstRead({ limit: 5, offset: 38 }, site)).toEqual({ limit: 60, offset: 0 });
    expect(firstRead({ limit: 20, offset: 55 }, site)).toEqual({ limit: 1000, offset: 0 });
    expect(secondRead({ limit: 60, offset: 30 }, { limit: 60, offset: 0 }, 60)).toBeUndefined();
    expect(secondRead({ limit: 60, offset: 30 }, { limit: 60, offset: 0 }, 61)).toEqual({ limit: 60, offset: 60 });
    expect(isPage({ limit: 20, offset: 30 }, site)).toBe(false);
    expect(firstRead({ limit: 20, offset: 40 }, site)).toEqual({ limit: 20, offset: 40 });
  });

  it('with a missing page of a known list is an error, not empty', async () => {
    const list: ActivityList = { kind: 'block', block: '1' };
    const whole = filesOf(list, 200, DEFAULT);
    for (const path of [...whole.keys()].filter((p) => p.includes('/60/'))) {
      const source = new MemoryFiles(new Map([...whole].filter(([other]) => other !== path)));
      const offset = Number(/(\d+)\.json/.exec(path)?.[1]);
      await expect(respond(targetOf(list, 60, offset), DEFAULT, source, answerFromLists)).rejects.toThrow(
        `${path} is missing from the build`,
      );
    }
  });
});

it('an unknown id makes a reader request the manifest again only if absence must be confirmed', async () => {
  const manifest = { generator: 'rune-activity-mirror', format: FORMAT, layout: 'files', dialect: 'contract', page_sizes: [20, 60] };
  const files = new Map([[MANIFEST_PATH, JSON.stringify({ ...manifest, operation_pages: true })]]);
  for (const [confirms, times] of [
    [undefined, 1],
    [true, 3],
  ] as const) {
    const source = new MemoryFiles(files);
    const reader = new MirrorReader(source, answerFromLists, Number.POSITIVE_INFINITY, confirms);
    for (const id of ['12', '34']) await reader.answer(`/runes/v1/blocks/${id}/activity`);
    expect(source.found).toHaveLength(times);
  }
});

describe('a partly written page', () => {
  /** Returns a record whose address ends like a page. So the end of a cut page does not prove that the page is complete. */
  const tricky = (i: number) => `{"rune":{"id":"1:${i}"},"address":"}]}}}]}"}`;

  it.each([
    ['?limit=4&offset=4', 'blocks/5/4/4.json'],
    ['', 'blocks/5.json'],
    ['?limit=3&offset=1', 'blocks/5/4/0.json'],
    ['?limit=3&offset=3', 'blocks/5/4/4.json'],
    ['?limit=3&offset=90', 'blocks/5.json'],
  ])('never occurs in an answer: %s, %s', async (query, half) => {
    const site: BuiltSite = { ...DEFAULT, pageSizes: [2, 4] };
    const pageOf = (limit: number, offset: number) => {
      const records = Array.from({ length: Math.min(limit, 7 - offset) }, (_, i) => tricky(offset + i));
      return envelopeHead({ limit, offset }, 7) + records.join(',') + ENVELOPE_TAIL;
    };
    const files = new Map(pagesOf(7, site).map((id) => [pagePath('runes/v1/blocks/5', id, site), pageOf(id.limit, id.offset)]));
    const target = `/runes/v1/blocks/5/activity${query}`;
    const path = `runes/v1/${half}`;
    const whole = files.get(path) ?? '';
    expect(await respond(target, site, new MemoryFiles(files), answerFromLists)).toMatchObject({
      kind: expect.stringMatching(/^(page|window)$/),
    });
    for (let length = 0; length < whole.length; length += 1) {
      const cut = new MemoryFiles(new Map(files).set(path, whole.slice(0, length)));
      await expect(respond(target, site, cut, answerFromLists), `cut at ${length}`).rejects.toThrow(MissingFileError);
    }
  });
});

describe('pages of two builds', () => {
  const hash = (digit: string) => digit.repeat(64);
  const recordOf = (i: number, block: string, height = 5) =>
    `{"rune":{"id":"1:${i}"},"location":{"block_hash":"${block}","block_height":${height}}}`;
  const textOf = (limit: number, offset: number, total: number, block = hash('a'), height = 5) => {
    const count = Math.max(Math.min(limit, total - offset), 0);
    const records = Array.from({ length: count }, (_, i) => recordOf(offset + i, block, height));
    return envelopeHead({ limit, offset }, total) + records.join(',') + ENVELOPE_TAIL;
  };
  const stem = 'runes/v1/blocks/5';
  const ask = (query: string, files: Readonly<Record<string, string>>) =>
    respond(`/runes/v1/blocks/5/activity${query}`, DEFAULT, new MemoryFiles(new Map(Object.entries(files))), answerFromLists);

  it.each([
    ['another total', textOf(60, 60, 101)],
    ['another block', textOf(60, 60, 100, hash('b'))],
  ])('are never joined: %s', async (_, second) => {
    const first = { [`${stem}/60/0.json`]: textOf(60, 0, 100) };
    const whole = await ask('?limit=60&offset=30', { ...first, [`${stem}/60/60.json`]: textOf(60, 60, 100) });
    expect(whole.kind === 'window' && readPage(whole.body).records).toHaveLength(60);
    await expect(ask('?limit=60&offset=30', { ...first, [`${stem}/60/60.json`]: second })).rejects.toThrow('belongs to another build');
    await expect(ask('?limit=60&offset=30', first)).rejects.toThrow(`${stem}/60/60.json is missing from the build`);
  });

  it.each([
    ['of another limit', '?limit=20&offset=20', textOf(30, 20, 100)],
    ['of another offset', '?limit=20&offset=20', textOf(20, 40, 100)],
    ['of another limit, as a part of the answer', '?limit=5&offset=21', textOf(30, 20, 100)],
    ['of another offset, as a part of the answer', '?limit=5&offset=21', textOf(20, 0, 100)],
  ])('may lack a page: %s', async (_, query, text) => {
    await expect(ask(query, { [`${stem}/20/20.json`]: text })).rejects.toThrow('belongs to a build with other page sizes');
  });

  it('are cached by CDNs only if their blocks are settled, and never as two joined pages', async () => {
    for (const [height, isSettled] of [
      [994, true],
      [995, false],
      [1000, false],
    ] as const) {
      const files = {
        [`${stem}.json`]: textOf(20, 0, 100, hash('a'), height),
        [`${stem}/60/0.json`]: textOf(60, 0, 100, hash('a'), height),
        [`${stem}/60/60.json`]: textOf(60, 60, 100, hash('a'), height),
      };
      expect(await ask('', files)).toMatchObject({ kind: 'page', isSettled });
      expect(await ask('?limit=3', files)).toMatchObject({ kind: 'window', isSettled });
      expect(await ask('?limit=60&offset=30', files)).toMatchObject({ kind: 'window', isSettled: false });
      // The answer has no records, which would show the block's height. So the page map cannot know whether the block is settled.
      expect(await ask('?offset=500', files)).toMatchObject({ kind: 'window', isSettled: false });
    }
  });
});

describe('a request target', () => {
  it.each([
    ['/runes', 'status'],
    ['/runes/', 'status'],
    ['/runes/v1', 'status'],
    ['/runes/v1/', 'status'],
    ['/runes/v1?x=/blocks/5/activity', 'status'],
    ['/', 'outside'],
    ['?/runes/v1', 'outside'],
    ['', 'outside'],
    ['/rune/v1/blocks/5/activity', 'outside'],
    ['/x/runes/v1/blocks/5/activity', 'outside'],
    ['/runes/v2/blocks/5/activity', 'unknown'],
    ['/runes/v1//', 'unknown'],
    ['/runes/v1/blocks', 'unknown'],
    ['/runes/v1/blocks/5', 'unknown'],
    ['/runes/v1/blocks/5/activities', 'unknown'],
    ['/runes/v1/blocks/5/activity/', 'unknown'],
    ['/runes/v1/blocks//activity', 'refusal'],
    ['/runes/v1/transactions//activity', 'refusal'],
    ['/runes/v1/blocks/%zz/activity', 'refusal'],
    ['/runes/v1/blocks/5/activity', 'list'],
    ['/runes/v1/%62locks/5/activity', 'list'],
  ])('%s: %s', (target, kind) => {
    expect(parsePath(target).kind).toBe(kind);
    expect(parseTarget(target, DEFAULT).kind).toBe(kind);
  });

  it.each([
    ['', { limit: 20, offset: 0 }],
    ['?', { limit: 20, offset: 0 }],
    ['?&&', { limit: 20, offset: 0 }],
    ['?lim+it=5', { limit: 20, offset: 0 }],
    ['?limits=1&LIMIT=1&=3', { limit: 20, offset: 0 }],
    ['?offset=7&limit=5', { limit: 5, offset: 7 }],
    ['?%6c%69mit=5', { limit: 5, offset: 0 }],
  ])('with the query %j has the window %j', (query, window) => {
    expect(parseTarget(`/runes/v1/blocks/5/activity${query}`, DEFAULT)).toEqual({
      kind: 'list',
      list: { kind: 'block', block: '5' },
      window,
    });
  });

  it('requests no list by operation from a build without such lists', () => {
    const target = '/runes/v1/blocks/5/activity?operation_type=mint';
    expect(parseTarget(target, DEFAULT)).toMatchObject({ kind: 'list', list: { operation: 'mint' } });
    expect(parseTarget(target, { ...DEFAULT, operationPages: false })).toMatchObject({
      kind: 'refusal',
      message: expect.stringContaining('is not available'),
    });
  });
});

describe('the options in a manifest', () => {
  const ARCHIVE = { root: '3fa04c1b0d5e6f728394a5b6c7d8e9f00f9e8d7c6b5a493827f6e5d0b1c40af3', bytes: 1234 };
  const MANIFEST = {
    generator: 'rune-activity-mirror',
    format: FORMAT,
    layout: 'archive',
    dialect: 'hiro',
    page_sizes: [20, 60],
    operation_pages: false,
    rows: { index: 'rows/index-0123456789abcdef.json', sha256: '01' },
    archive: ARCHIVE,
    lists: { etchings: { total: 3 } },
    tip: { height: 9 },
  };

  it('are parsed, and optional ones have defaults', () => {
    expect(siteOf(MANIFEST)).toEqual({
      layout: 'archive',
      dialect: 'hiro',
      pageSizes: [20, 60],
      operationPages: false,
      parquet: true,
      archive: ARCHIVE,
      listRoot: ARCHIVE,
      tip: 9,
      lists: { etchings: { total: 3 } },
    });
    const { rows: _, archive: __, lists: ___, ...least } = { ...MANIFEST, layout: 'files', tip: undefined };
    expect(siteOf(least)).toMatchObject({
      layout: 'files',
      parquet: false,
      archive: undefined,
      listRoot: undefined,
      tip: -1,
      lists: {},
    });
    expect(siteOf({ ...least, list_root: ARCHIVE })).toMatchObject({ archive: undefined, listRoot: ARCHIVE });
  });

  it('are accepted at their limits', () => {
    const page_sizes = [1, 100_000];
    expect(siteOf({ ...MANIFEST, page_sizes }).pageSizes).toEqual(page_sizes);
  });

  it.each([[{ tip: undefined }], [{ tip: null }], [{ tip: 9 }], [{ tip: { height: '9' } }], [{ tip: { height: 0.5 } }]])(
    'with %j mark no block as settled',
    (change) => expect(siteOf({ ...MANIFEST, ...change }).tip).toBe(-1),
  );

  it.each([
    [{ generator: 'another' }],
    [{ layout: 'file' }],
    [{ layout: 'files' }],
    [{ dialect: undefined }],
    [{ operation_pages: 1 }],
    [{ page_sizes: undefined }],
    [{ page_sizes: [] }],
    [{ page_sizes: [0, 60] }],
    [{ page_sizes: [60, 20] }],
    [{ page_sizes: [20, 20] }],
    [{ page_sizes: [20, 60.5] }],
    [{ page_sizes: [20, 100_001] }],
    [{ archive: undefined }],
    [{ list_root: { root: 'x', bytes: 1 } }],
    [{ lists: 'etchings' }],
    [{ lists: { etchings: true } }],
    [{ lists: { etchings: null } }],
    [{ archive: '3fa04c1b0d5e6f728394a5b6c7d8e9f00f9e8d7c6b5a493827f6e5d0b1c40af3' }],
    [{ archive: { ...ARCHIVE, root: '../../../../../../../../secret.json' } }],
    [{ archive: { ...ARCHIVE, root: ARCHIVE.root.toUpperCase() } }],
    [{ archive: { ...ARCHIVE, root: `${ARCHIVE.root}0` } }],
    [{ archive: { ...ARCHIVE, root: `${ARCHIVE.root}\n` } }],
    [{ archive: { root: ARCHIVE.root } }],
    [{ archive: { ...ARCHIVE, bytes: 0 } }],
    [{ archive: { ...ARCHIVE, bytes: 1.5 } }],
    [{ archive: { ...ARCHIVE, bytes: '1234' } }],
  ])('are refused with %j', (change) => {
    expect(() => siteOf({ ...MANIFEST, ...change })).toThrow('not a manifest of this version');
  });

  it.each([[null], [undefined], ['{}'], [[]]])('cannot be parsed from %j', (manifest) => {
    expect(() => siteOf(manifest)).toThrow('not a manifest of this version');
  });
});

describe('paths', () => {
  it('consist of ids only', () => {
    for (const txId of [`${TX}/`, TX.slice(1), TX.toUpperCase(), `${TX}\n`, '../x'])
      expect(() => stemOf({ kind: 'transaction', txId }, DEFAULT)).toThrow('cannot be part of a path');
    for (const block of ['', '-1', '5/..', '5\n', `${HASH}0`])
      expect(() => stemOf({ kind: 'block', block }, DEFAULT)).toThrow('cannot be part of a path');
    const name = TX;
    for (const other of ['', '..', name.toUpperCase(), `${name}/`, `${name}\n`, `${name}0`, name.slice(1), `../${name}`])
      expect(() => archivePath(other)).toThrow('cannot be part of a path');
    expect(archivePath(name)).toBe(`archive/${name}.bin`);
  });

  it('are unique for each page', () => {
    const page = fc.record({ limit: fc.integer({ min: 1, max: 99 }), offset: fc.nat(5000) });
    fc.assert(
      fc.property(sites, lists, page, lists, page, (site, listA, pageA, listB, pageB) => {
        const [a, b] = [pagePath(stemOf(listA, site), pageA, site), pagePath(stemOf(listB, site), pageB, site)];
        const same = JSON.stringify([listA, pageA]) === JSON.stringify([listB, pageB]);
        expect(a === b).toBe(same);
      }),
      { numRuns: 3000 },
    );
  });

  it('of a list are its first page, and for a longer list the pages of every size', () => {
    const names = (total: number) => pagesOf(total, DEFAULT).map(({ limit, offset }) => `${limit}/${offset}`);
    expect([names(0), names(20), names(21), names(41), names(61)]).toEqual([
      ['20/0'],
      ['20/0'],
      ['20/0', '20/20', '60/0'],
      ['20/0', '20/20', '20/40', '60/0'],
      ['20/0', '20/20', '20/40', '20/60', '60/0', '60/60'],
    ]);
  });

  it('have the documented spelling', () => {
    expect(pagePath(stemOf({ kind: 'transaction', txId: TX }, DEFAULT), { limit: 20, offset: 0 }, DEFAULT)).toBe(
      `runes/v1/transactions/0x${TX}.json`,
    );
    const hiro: BuiltSite = { ...DEFAULT, dialect: 'hiro' };
    expect(pagePath(stemOf({ kind: 'block', block: HASH }, hiro), { limit: 60, offset: 0 }, hiro)).toBe(
      `runes/v1/blocks/${HASH}/60/0.json`,
    );
    expect(pagePath(stemOf({ kind: 'block', block: '840000', operation: 'mint' }, hiro), { limit: 20, offset: 0 }, hiro)).toBe(
      'runes/v1/blocks/840000/mint.json',
    );
  });
});

const hostile = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 80 }),
  fc.constantFrom(
    '..',
    '../..',
    '%2e%2e',
    '..%2f..%2f',
    '%00',
    '\0',
    '840000/../1',
    '840000%2f..%2f1',
    '840000\u0660',
    '８４００００',
    '%',
    '%zz',
    '%c3%28',
    'x'.repeat(10_000),
    '9'.repeat(10_000),
    `0x${'0x'.repeat(31)}`,
    `${TX}\n`,
    `${TX}%0a`,
    '-1',
    '',
    ' ',
    '.',
    'CON',
    '..\\..',
  ),
  fc.string({ maxLength: 10 }).map(encodeURIComponent),
);

describe('hostile requests', () => {
  it('never open a file outside of the two folders of lists, and never throw', async () => {
    const values = fc.oneof(hostile, fc.integer().map(String));
    const queries = fc.array(fc.tuple(fc.oneof(fc.constantFrom('limit', 'offset', 'operation_type', 'l%69mit'), hostile), values), {
      maxLength: 5,
    });
    await fc.assert(
      fc.asyncProperty(sites, fc.constantFrom('blocks', 'transactions'), hostile, queries, async (site, collection, id, query) => {
        const text = query.map(([name, value]) => `${name}=${value}`).join('&');
        const source = new MemoryFiles(new Map());
        const answer = await respond(`/runes/v1/${collection}/${id}/activity?${text}`, site, source, answerFromLists);
        expect(['window', 'refusal', 'status', 'other', 'page']).toContain(answer.kind);
        for (const path of source.opened)
          expect(path).toMatch(/^runes\/v1\/(?:blocks|transactions)\/(?:0x)?[0-9a-f]+(?:\/[a-z]+)?(?:\/\d+\/\d+)?\.json$/);
      }),
      { numRuns: 5000 },
    );
  });

  it('with any target are parsed without throwing', () => {
    fc.assert(
      fc.property(hostile, sites, (text, site) => void parseTarget(text, site)),
      { numRuns: 2000 },
    );
  });

  it('with Unicode digits are refused', () => {
    expect(parseTarget('/runes/v1/blocks/%D9%A8%D9%A4/activity', DEFAULT)).toMatchObject({ kind: 'refusal' });
    expect(parseTarget('/runes/v1/blocks/1/activity?limit=%D9%A8', DEFAULT)).toMatchObject({
      kind: 'refusal',
      message: 'querystring/limit must be integer',
    });
  });
});

describe('ids', () => {
  const listOf = (path: string) => {
    const route = parseTarget(path, DEFAULT);
    return route.kind === 'list' ? route.list : route.kind;
  };
  it('are recognised in every spelling', () => {
    for (const id of [TX, `0x${TX}`, TX.toUpperCase(), `0X${TX.toUpperCase()}`]) {
      expect(listOf(`/runes/v1/transactions/${id}/activity`)).toEqual({ kind: 'transaction', txId: TX });
      expect(listOf(`/runes/blocks/${id}/activity`)).toEqual({ kind: 'block', block: TX });
    }
  });
  it('of 64 decimal digits are hashes, other decimals are heights', () => {
    expect(listOf(`/runes/v1/blocks/${'9'.repeat(64)}/activity`)).toEqual({ kind: 'block', block: '9'.repeat(64) });
    expect(listOf('/runes/v1/blocks/000840000/activity')).toEqual({ kind: 'block', block: '840000' });
    expect(listOf('/runes/v1/blocks/1234567890123456/activity')).toEqual({ kind: 'block', block: '1234567890123456' });
    expect(listOf('/runes/v1/blocks/000/activity')).toEqual({ kind: 'block', block: '0' });
    expect(listOf(`/runes/v1/blocks/${'0'.repeat(63)}/activity`)).toEqual({ kind: 'block', block: '0' });
  });
  it('of heights beyond any data are equal', () => {
    for (const digits of [17, 65, 10_000]) {
      expect(listOf(`/runes/v1/blocks/${'1'.repeat(digits)}/activity`)).toEqual({ kind: 'block', block: '9007199254740992' });
    }
  });
});

describe('readPage', () => {
  it('returns the records of a page', () => {
    const text = fc.string({ unit: 'binary', maxLength: 30 });
    const records = fc.array(
      fc.record({ rune: text, address: text }).map((r) => JSON.stringify({ rune: { id: r.rune }, address: r.address })),
    );
    fc.assert(
      fc.property(records, fc.nat(1000), (all, offset) => {
        const total = offset + all.length;
        const page = envelopeHead({ limit: 60, offset }, total) + all.join(',') + ENVELOPE_TAIL;
        expect(readPage(page)).toEqual({ limit: 60, offset, total, records: all });
      }),
    );
  });
  it('and cutRecords give the same records, also if a separator is part of a text', () => {
    const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 30 }), fc.constant('},{"rune":{'));
    const records = fc.array(
      fc.record({ rune: text, address: text }).map((r) => JSON.stringify({ rune: { id: r.rune }, address: r.address })),
    );
    fc.assert(
      fc.property(records, fc.nat(20), fc.nat(20), (all, from, count) => {
        const page = envelopeHead({ limit: 60, offset: 0 }, all.length) + all.join(',') + ENVELOPE_TAIL;
        const expected = all.slice(from, from + count);
        expect(cutRecords(page, from, count)).toEqual({ text: expected.join(','), count: expected.length });
      }),
    );
  });
  it('refuses text that is not a page', () => {
    for (const text of [
      '',
      '{}',
      '<html>',
      '{"limit":20,"offset":0,"total":1,"results":[{"x":1}]}',
      '{"limit":20,"offset":0,"total":1,"results":[{"rune":',
    ]) {
      expect(() => readPage(text)).toThrow(PageFormatError);
      expect(() => cutRecords(text, 0, 1)).toThrow(PageFormatError);
    }
  });
  it('refuses a page with more or fewer records than its total requires', () => {
    const page = (total: number, records: number) =>
      envelopeHead({ limit: 2, offset: 2 }, total) + Array.from({ length: records }, (_, i) => recordAt(i)).join(',') + ENVELOPE_TAIL;
    for (const [total, records] of [
      [1, 0],
      [2, 0],
      [3, 1],
      [4, 2],
      [9, 2],
    ] as const) {
      expect(readPage(page(total, records))).toMatchObject({ total, records: { length: records } });
      for (const wrong of [0, 1, 2, 3].filter((count) => count !== records))
        expect(() => readPage(page(total, wrong))).toThrow(PageFormatError);
    }
  });
});

describe('if-none-match', () => {
  it.each([
    ['"a"', true],
    ['W/"a"', true],
    ['"x", "a"', true],
    ['"a" , "x"', true],
    ['a', true],
    ['*', true],
    ['"A"', false],
    ['""', false],
    ['', false],
  ])('%s: %s', (header, matches) => expect(matchesEtag(header, '"a"')).toBe(matches));
});
