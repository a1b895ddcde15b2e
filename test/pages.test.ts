/** The page map by itself: a build in memory, and every property that the design promises of it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { matchesEtag } from '../src/http/headers.ts';
import { cutRecords, ENVELOPE_TAIL, envelopeHead, PageFormatError, readPage } from '../src/pages/envelope.ts';
import { type ActivityList, OPERATIONS } from '../src/pages/lists.ts';
import { packedPagePath, packedPagesOf, pagePath, pagesOf, stemOf } from '../src/pages/paths.ts';
import { parseTarget } from '../src/pages/request.ts';
import { type Files, MissingFileError, type OpenFile, respond } from '../src/pages/respond.ts';
import { type BuiltSite, DIALECTS } from '../src/pages/site.ts';
import { exactPage, firstRead, secondRead } from '../src/pages/window.ts';

const TX = 'ab'.repeat(32);
const HASH = '00'.repeat(8) + 'cd'.repeat(24);
const FILES = { layout: 'files', operationPages: true, compress: [], parquet: false, prefixDigits: 0, tip: 1000 } as const;
const DEFAULT: BuiltSite = { ...FILES, dialect: 'contract', pageSizes: [20, 60] };

/** Records with text that tries to look like the space between two records. */
const recordAt = (i: number) => `{"rune":{"id":"1:${i}","name":"},{\\"rune\\":${i}"},"amount":"${i}"}`;

/** Files of one list, as the writer lays them out. */
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
  it('is the slice of the whole list, from at most two pages', async () => {
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
          const answer = await respond(targetOf(list, limit, offset), site, source);
          const slice = Array.from({ length: total }, (_, i) => recordAt(i)).slice(offset, offset + limit);
          const expected = `${envelopeHead({ limit, offset }, total)}${slice.join(',')}${ENVELOPE_TAIL}`;
          expect(answer.kind === 'page' ? answer.page.content : answer.kind === 'window' && answer.body).toBe(expected);
          expect(source.found.length).toBeLessThanOrEqual(2);
          // A page that was tried and does not exist costs one more look, never more.
          expect(source.opened.length).toBeLessThanOrEqual(2);
        },
      ),
      { numRuns: 3000 },
    );
  });

  it('that is a page of the build is passed through untouched', async () => {
    const list: ActivityList = { kind: 'block', block: '840000' };
    const source = new MemoryFiles(filesOf(list, 130, DEFAULT));
    for (const [limit, offset] of [
      [20, 0],
      [20, 20],
      [60, 0],
      [60, 120],
      [20, 120],
    ] as const) {
      const answer = await respond(targetOf(list, limit, offset), DEFAULT, source);
      expect(answer).toMatchObject({
        kind: 'page',
        page: { content: source.files.get(pagePath(stemOf(list, DEFAULT), { limit, offset }, DEFAULT)) },
      });
    }
  });

  it('honours a raised maximum through the site alone', async () => {
    const site: BuiltSite = { ...DEFAULT, dialect: 'hiro', pageSizes: [20, 60, 1000] };
    const list: ActivityList = { kind: 'transaction', txId: TX };
    const source = new MemoryFiles(filesOf(list, 1500, site));
    const answer = await respond(targetOf(list, 777, 500), site, source);
    expect(answer.kind === 'window' && readPage(answer.body).records).toEqual(Array.from({ length: 777 }, (_, i) => recordAt(500 + i)));
    expect(await respond(targetOf(list, 1001, 0), site, source)).toMatchObject({
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
    expect(exactPage({ limit: 20, offset: 30 }, site)).toBeUndefined();
  });

  it('is never empty because a page of a known list is missing', async () => {
    const list: ActivityList = { kind: 'block', block: '1' };
    const whole = filesOf(list, 200, DEFAULT);
    for (const path of [...whole.keys()].filter((p) => p.includes('/60/'))) {
      const source = new MemoryFiles(new Map([...whole].filter(([other]) => other !== path)));
      const offset = Number(/(\d+)\.json/.exec(path)?.[1]);
      await expect(respond(targetOf(list, 60, offset), DEFAULT, source)).rejects.toThrow(`${path} is missing from the build`);
    }
  });
});

describe('a page of which only the beginning is written', () => {
  /** A record whose address ends as a page ends, so that the end of a cut page says nothing. */
  const tricky = (i: number) => `{"rune":{"id":"1:${i}"},"address":"}]}}}]}"}`;

  it.each([
    ['files', '?limit=4&offset=4', 'blocks/5/4/4.json'],
    ['files', '', 'blocks/5.json'],
    ['files', '?limit=3&offset=1', 'blocks/5/4/0.json'],
    ['files', '?limit=3&offset=3', 'blocks/5/4/4.json'],
    ['files', '?limit=3&offset=90', 'blocks/5.json'],
    ['packed', '?limit=4&offset=4', 'blocks/5-0a/4/4.json'],
    ['packed', '?limit=3&offset=3', 'blocks/5-0a/4/0.json'],
    ['packed', '?limit=3&offset=3', 'blocks/5-0a/4/4.json'],
  ] as const)('is never a part of an answer, wherever it was cut: layout %s, %s, %s', async (layout, query, half) => {
    const site: BuiltSite = { ...DEFAULT, layout, pageSizes: [2, 4], prefixDigits: layout === 'packed' ? 1 : 0 };
    const pageOf = (limit: number, offset: number) => {
      const records = Array.from({ length: Math.min(limit, 7 - offset) }, (_, i) => tricky(offset + i));
      return envelopeHead({ limit, offset }, 7) + records.join(',') + ENVELOPE_TAIL;
    };
    const pages = layout === 'files' ? pagesOf(7, site) : packedPagesOf(7, site);
    const stem = `runes/v1/blocks/${layout === 'files' ? '5' : '5-0a'}`;
    const files = new Map(
      pages.map((id) => [layout === 'files' ? pagePath(stem, id, site) : packedPagePath(stem, id), pageOf(id.limit, id.offset)]),
    );
    files.set('runes/v1/pointers/5.json', '{"edition":"5-0a","records":7,"operations":{}}');
    const target = `/runes/v1/blocks/5/activity${query}`;
    const path = `runes/v1/${half}`;
    const whole = files.get(path) ?? '';
    expect(await respond(target, site, new MemoryFiles(files))).toMatchObject({ kind: expect.stringMatching(/^(page|window)$/) });
    for (let length = 0; length < whole.length; length += 1) {
      const cut = new MemoryFiles(new Map(files).set(path, whole.slice(0, length)));
      await expect(respond(target, site, cut), `cut at ${length}`).rejects.toThrow(MissingFileError);
    }
  });
});

describe('paths', () => {
  it('are different for different pages', () => {
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

  it('are those of the design', () => {
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
  it('never open a file outside the two folders of lists, and never throw', async () => {
    const values = fc.oneof(hostile, fc.integer().map(String));
    const queries = fc.array(fc.tuple(fc.oneof(fc.constantFrom('limit', 'offset', 'operation_type', 'l%69mit'), hostile), values), {
      maxLength: 5,
    });
    await fc.assert(
      fc.asyncProperty(sites, fc.constantFrom('blocks', 'transactions'), hostile, queries, async (site, collection, id, query) => {
        const text = query.map(([name, value]) => `${name}=${value}`).join('&');
        const source = new MemoryFiles(new Map());
        const answer = await respond(`/runes/v1/${collection}/${id}/activity?${text}`, site, source);
        expect(['window', 'refusal', 'status', 'other', 'page']).toContain(answer.kind);
        for (const path of source.opened)
          expect(path).toMatch(/^runes\/v1\/(?:blocks|transactions)\/(?:0x)?[0-9a-f]+(?:\/[a-z]+)?(?:\/\d+\/\d+)?\.json$/);
      }),
      { numRuns: 5000 },
    );
  });

  it('with any target at all are parsed without throwing', () => {
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
  it('are found in every spelling', () => {
    for (const id of [TX, `0x${TX}`, TX.toUpperCase(), `0X${TX.toUpperCase()}`]) {
      expect(listOf(`/runes/v1/transactions/${id}/activity`)).toEqual({ kind: 'transaction', txId: TX });
      expect(listOf(`/runes/blocks/${id}/activity`)).toEqual({ kind: 'block', block: TX });
    }
  });
  it('of 64 decimal digits are hashes, other decimals are heights', () => {
    expect(listOf(`/runes/v1/blocks/${'9'.repeat(64)}/activity`)).toEqual({ kind: 'block', block: '9'.repeat(64) });
    expect(listOf('/runes/v1/blocks/000840000/activity')).toEqual({ kind: 'block', block: '840000' });
    expect(listOf('/runes/v1/blocks/000/activity')).toEqual({ kind: 'block', block: '0' });
    expect(listOf(`/runes/v1/blocks/${'0'.repeat(63)}/activity`)).toEqual({ kind: 'block', block: '0' });
  });
  it('of heights beyond any data are one, however long', () => {
    for (const digits of [17, 65, 10_000]) {
      expect(listOf(`/runes/v1/blocks/${'1'.repeat(digits)}/activity`)).toEqual({ kind: 'block', block: '9007199254740992' });
    }
  });
});

describe('readPage', () => {
  it('gives back the records that a page was made of', () => {
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
  it("and cutRecords give the same records, also where those are part of others' text", () => {
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
  it('refuses what is no page', () => {
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
    [undefined, false],
  ])('%s: %s', (header, matches) => expect(matchesEtag(header, '"a"')).toBe(matches));
});
