/**
 * Tests functions of the explorer that need no browser: what an entered text means, how numbers and times are formatted, and where the axis
 * of a chart breaks.
 */
import { describe, expect, it } from 'vitest';
import type { Stats } from '../../src/contract/statsSchemas.ts';
import type { Operation } from '../../src/pages/blockAndTransactionLists.ts';
import type { Activity, Etching } from '../../src/serve/client/mirrorClient.ts';
import { activityChart, columnsOf, linear } from '../../src/site/activityChart.ts';
import { addDecimals, decimalsOf, percent, shareOf } from '../../src/site/explorer/amountMath.ts';
import { lastBlock, mintOf } from '../../src/site/explorer/mintState.ts';
import { readLookUp, viewOf } from '../../src/site/explorer/readLookUp.ts';
import { signOf, totalsOf, transactionsOf } from '../../src/site/explorer/transfers.ts';
import { searchOf, targetOf } from '../../src/site/explorer/views.ts';
import { formatHeights, groupDigits, isoTime, relativeTime, shorten, utc } from '../../src/site/formatValues.ts';
import { overviewOf } from '../../src/site/overview.ts';
import { words } from '../support/records.ts';

const TX = 'e79134080a83fe3e0e06ed6990c5a9b63b362313341745707a2bff7d788a1375';
const HASH = `00000000${TX.slice(8)}`;

describe('a look-up', () => {
  it.each([
    [TX, 'transaction', TX],
    [`0x${TX}`, 'transaction', `0x${TX}`],
    [` 0X${TX.toUpperCase()}\n`, 'transaction', `0x${TX}`],
    [HASH, 'block', HASH],
    [`0x${HASH}`, 'block', `0x${HASH}`],
    ['840000', 'block', '840000'],
    ['840,000', 'block', '840000'],
    ['#000840 000', 'block', '840000'],
    ['0', 'block', '0'],
  ])('%s is recognised as a %s', (text, kind, id) => {
    expect(readLookUp(text)).toEqual({ kind, id, offset: 0 });
  });

  it.each([
    ['', /Type a rune/],
    [TX.slice(1), /have 64 hex digits; this has 63/],
    [`${TX}0`, /this has 65/],
    [`g${TX.slice(1)}`, /this has “g” in it/],
    ['-1', /neither/],
    ['🐕', /neither/],
    ['1.5', /neither/],
    ['<img src=x onerror=alert(1)>', /neither/],
    ['Q'.repeat(29), /at most 28 letters/],
    ['https://mempool.space/mining', /URL names neither/],
    ['https://%zz/tx/1', /URL names neither/],
    ['99999999999999999', /this has 17/],
    ['https://mempool.space/address/1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb', /checksum of this address is wrong/],
  ])('%s is refused with an explanation', (text, problem) => {
    expect(readLookUp(text)).toMatchObject({ problem: expect.stringMatching(problem) });
  });

  it.each([
    ['840000:3', 'rune', '840000:3'],
    ['0840000:03', 'rune', '840000:3'],
    ['dog•go•to•the•moon', 'rune', 'DOGGOTOTHEMOON'],
    ['Dog.go to the moon ', 'rune', 'DOGGOTOTHEMOON'],
    ['deadbeef', 'rune', 'DEADBEEF'],
    ['bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq', 'address', 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq'],
    ['BC1QAR0SRRR7XFKVY5L643LYDNW9RE59GTZZWF5MDQ', 'address', 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq'],
    ['1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa', 'address', '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa'],
    ['3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy', 'address', '3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy'],
    ['Latest', 'block', 'latest'],
    [`https://mempool.space/tx/${TX}`, 'transaction', TX],
    [`mempool.space/tx/${TX}#vout=1`, 'transaction', TX],
    [`https://mempool.space/testnet4/block/${HASH}`, 'block', HASH],
    ['https://mempool.space/block/840000', 'block', '840000'],
    ['https://mempool.space/address/1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa', 'address', '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa'],
    ['https://ordinals.com/rune/DOG•GO•TO•THE•MOON', 'rune', 'DOGGOTOTHEMOON'],
    ['https://ordinals.com/rune/840000:3', 'rune', '840000:3'],
    ['https://ordinals.com/rune/BLOCK', 'rune', 'BLOCK'],
    ['https://ordinals.com/rune/CONSTRUCTOR', 'rune', 'CONSTRUCTOR'],
    ['https://example.org/mirror/?rune=TOKEN&list=holders', 'rune', 'TOKEN'],
    [`https://example.org/constructor/tx/${TX}`, 'transaction', TX],
    [`https://ordinals.com/output/${TX}:1`, 'output', `${TX}:1`],
    [` 0X${TX.toUpperCase()}:01`, 'output', `${TX}:1`],
    [`https://example.org/mirror/?output=${TX}:12`, 'output', `${TX}:12`],
    [`https://example.org/runes/v1/outputs/${TX}:0`, 'output', `${TX}:0`],
    [`https://ordinals.com/tx/${TX}i0`, 'transaction', TX],
    ['https://unisat.io/runes/detail/DOG%E2%80%A2GO%E2%80%A2TO%E2%80%A2THE%E2%80%A2MOON', 'rune', 'DOGGOTOTHEMOON'],
    ['https://unisat.io/runes/market?tick=DOG%E2%80%A2GO%E2%80%A2TO%E2%80%A2THE%E2%80%A2MOON', 'rune', 'DOGGOTOTHEMOON'],
    ['https://luminex.io/rune/dog.go.to.the.moon', 'rune', 'DOGGOTOTHEMOON'],
    ['https://magiceden.io/runes/DOG•GO•TO•THE•MOON', 'rune', 'DOGGOTOTHEMOON'],
    ['https://example.org/mirror/?block=840000&operation=mint', 'block', '840000'],
    ['https://example.org/mirror/?rune=840000:3&list=holders', 'rune', '840000:3'],
    ['https://example.org/runes/v1/etchings/840000:3/holders?limit=5', 'rune', '840000:3'],
    ['https://example.org/runes/v1/blocks/840000/activity', 'block', '840000'],
  ])('%s is a %s', (text, kind, id) => {
    expect(readLookUp(text)).toEqual({ kind, id, offset: 0 });
  });
});

describe('an address of the page', () => {
  it.each(
    words(`
      ?block=840000 ?block=840000&operation=mint&limit=60&offset=60 ?block=0x${HASH}&offset=20 ?tx=${TX} ?tx=0x${TX}&limit=60
      ?tx=${HASH} ?block=${TX} ?rune=840000:3&list=holders&limit=60&offset=60 ?rune=DOGGOTOTHEMOON
      ?address=bc1q&list=activity&offset=20 ?runes ?runes&list=day ?runes=MOON ?address=bc1q&list=outputs ?output=${TX}:1
    `),
  )('%s is parsed and written back the same', (search) => {
    const view = viewOf(search);
    expect(view.kind === 'overview' || view.kind === 'problem' ? view : searchOf(view)).toBe(search);
  });

  it.each(['', '?', '?utm_source=x'])('%s shows the overview', (search) => expect(viewOf(search)).toEqual({ kind: 'overview' }));

  it('without an id is an error; the API checks numbers', () => {
    expect(viewOf('?block=<x>')).toMatchObject({ kind: 'problem', text: '<x>' });
    expect(viewOf('?block=x')).toMatchObject({ kind: 'problem', said: { instead: { view: { kind: 'rune', id: 'X' } } } });
    expect(viewOf('?rune=%3Cb%3E')).toMatchObject({ kind: 'problem', text: '<b>' });
    expect(viewOf('?address=')).toMatchObject({ kind: 'problem' });
    expect(viewOf(`?output=${TX}`)).toMatchObject({ kind: 'problem', said: { problem: expect.stringContaining('a colon') } });
    expect(viewOf('?tx=840000')).toMatchObject({ kind: 'problem', said: { instead: { view: { id: '840000' } } } });
    expect(viewOf('?block=1&limit=abc')).toMatchObject({ limit: Number.NaN });
    expect(viewOf('?block=1&limit=1000')).toMatchObject({ limit: 1000 });
    expect(viewOf('?block=1&operation=nothing')).toMatchObject({ list: undefined });
  });

  it('has the target of a request to the API', () => {
    expect(targetOf('blocks/840000/activity', { limit: 60, offset: 120 }, { operation_type: 'mint' })).toBe(
      'runes/v1/blocks/840000/activity?limit=60&offset=120&operation_type=mint',
    );
    expect(targetOf('etchings', { offset: 0 })).toBe('runes/v1/etchings');
  });
});

describe('formatting', () => {
  it('groups digits of any length, but not decimals', () => {
    expect(groupDigits('340282366920938463463374607431768211455')).toBe('340,282,366,920,938,463,463,374,607,431,768,211,455');
    expect(groupDigits('1234567.12345678')).toBe('1,234,567.12345678');
    expect(groupDigits('100')).toBe('100');
    expect(['1234.50', '1.000', '0.000', '10', '0.100'].map(groupDigits)).toEqual(['1,234.5', '1', '0', '10', '0.1']);
  });

  it('shortens ids and leaves short text alone', () => {
    expect(shorten(`0x${TX}`)).toBe('0xe79134…8a1375');
    expect(shorten('bc1q')).toBe('bc1q');
  });

  it('formats relative and exact times, also beyond the date range', () => {
    expect(relativeTime(1_000_000, 1_000_000 + 3 * 86_400)).toBe('3 days ago');
    expect(relativeTime(1_000_000, 1_000_000 + 30)).toBe('just now');
    expect(relativeTime(1_000_000 + 20 * 31_556_952, 1_000_000)).toBe('in 20 years');
    expect([utc(1_713_571_767), isoTime(1_713_571_767)]).toEqual(['2024-04-20 00:09:27 UTC', '2024-04-20T00:09:27Z']);
    expect([utc(Number.MAX_SAFE_INTEGER), isoTime(Number.MAX_SAFE_INTEGER)]).toEqual(['9007199254740991', '']);
  });

  it('formats runs of heights', () => {
    expect(formatHeights([])).toBe('none');
    expect(formatHeights([[5, 5]])).toBe('5');
    expect(
      formatHeights([
        [1, 1000],
        [2000, 2000],
      ]),
    ).toBe('1 to 1,000 and 2,000');
    expect(formatHeights(Array.from({ length: 20 }, (_, i) => [i * 2, i * 2] as const))).toBe('0, 2, 4, 6, …, 34, 36 and 38');
  });
});

describe('totals of a transaction', () => {
  it('are exact sums of decimals', () => {
    expect(addDecimals([])).toBe('0');
    expect(addDecimals(['1', '2'])).toBe('3');
    expect(addDecimals(['0.1', '0.20', '0.003'])).toBe('0.303');
    expect(addDecimals(['0.00000007', '0.00000005'])).toBe('0.00000012');
    expect(addDecimals(['340282366920938463463374607431768211455', '1.5'])).toBe('340282366920938463463374607431768211456.5');
  });

  it('are by rune and operation, without records that have no amount', () => {
    const of = (id: string, operation: Operation, amount?: string) =>
      ({ rune: { id, number: 1, name: id, spaced_name: id }, operation, ...(amount === undefined ? {} : { amount }) }) as Activity;
    const totals = totalsOf([
      of('1:1', 'send', '2'),
      of('2:1', 'etching'),
      of('3:1', 'burn', '0.5'),
      of('1:1', 'receive', '1'),
      of('1:1', 'send', '3'),
    ]);
    expect(totals.map(({ rune, sums }) => [rune.id, sums])).toEqual([
      ['1:1', { send: '5', receive: '1' }],
      ['3:1', { burn: '0.5' }],
    ]);
  });
});

/** Returns a record of a transaction with these fields. */
const at = (operation: Operation, amount: string, vout: number, address?: string, receiver_address?: string) =>
  ({ operation, amount, address, receiver_address, location: { tx_id: TX, output: TX, vout } }) as unknown as Activity;

describe('rows of activity', () => {
  const rowsAt = (offset: number, results: readonly Activity[]) => transactionsOf({ offset, results }).flat();
  const shown = (records: readonly Activity[], offset = 0) =>
    rowsAt(offset, records).map(({ record, kind, from, to, location }) => [kind, record.amount, from, to, location.vout]);
  /**
   * Records of one transaction. Alice and a sender without an address pay Bob. Alice gets the rest and a part of the mint, and burns units.
   */
  const records = [
    at('burn', '0.5', 9, 'alice'),
    at('send', '1.25', 2, 'alice', 'alice'),
    at('receive', '3.75', 2, 'alice'),
    at('send', '4', 1, undefined, 'bob'),
    at('send', '6.000', 1, 'alice', 'bob'),
    at('receive', '10', 1, 'bob'),
    at('mint', '2.5', 9),
  ];

  it('join a receive with its sends and the mint of its transaction', () => {
    expect(shown(records)).toEqual([
      ['burn', '0.5', 'alice', undefined, 9],
      ['to itself', '1.25', 'alice', 'alice', 2],
      ['transfer', '4', null, 'bob', 1],
      ['transfer', '6.000', 'alice', 'bob', 1],
      ['mint', '2.5', undefined, 'alice', 2],
    ]);
  });

  it('are those of the records if a counterpart is unknown or its amount differs', () => {
    expect(shown(records.slice(2, 5))).toEqual([
      ['receive', '3.75', undefined, 'alice', 2],
      ['send', '4', null, 'bob', 1],
      ['send', '6.000', 'alice', 'bob', 1],
    ]);
    expect(shown(records.slice(4, 6)).map(([kind]) => kind)).toEqual(['send', 'receive']);
    expect(shown(records.slice(5)).map(([kind]) => kind)).toEqual(['receive', 'mint']);
    // The page begins within the transaction. The send that belongs to the receive is on the previous page, and so is the receive that
    // belongs to the mint.
    const cut = [at('receive', '2.5', 3, 'bob'), at('mint', '2.5', 9)];
    expect([shown(cut, 20), shown(cut)].map((rows) => rows.map(([kind]) => kind))).toEqual([['receive', 'mint'], ['mint']]);
  });

  /** Returns a list of transactions with events and stray records, in random order, with outputs and runes in common. */
  const randomList = (random: (below: number) => number) =>
    Array.from({ length: 1 + random(5) }, (_, tx) =>
      Array.from({ length: random(8) }, (): Activity[] => {
        const [amount, vout, rune] = [1 + random(3), random(2), random(2)];
        const one = (operation: Operation, units: number) => ({
          ...at(operation, String(units), vout, operation === 'mint' ? undefined : 'alice', operation === 'send' ? 'alice' : undefined),
          rune: { id: `1:${rune}` } as Activity['rune'],
          location: { tx_id: String(tx), output: `${tx}:${vout}` } as Activity['location'],
        });
        const sends = Array.from({ length: random(4) }, () => one('send', amount));
        const kind = random(6);
        if (kind === 0) return [one('mint', amount)];
        if (kind === 1) return [one('receive', amount), one('mint', amount)];
        if (kind === 2) return sends;
        if (kind === 3) return [one('burn', amount)];
        return [...sends, one('receive', amount * sends.length + (kind === 4 ? random(4) : 0))];
      }).flat(),
    ).flat();

  it('are, on pages of any size, those of the complete list for each transaction that the page has completely', () => {
    let seed = 7;
    const random = (below: number) => {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      return Math.floor((seed / 2147483648) * below);
    };
    const kinds = new Map<unknown, number>();
    for (let i = 0; i < 60; i += 1) {
      const records = randomList(random);
      const complete = rowsAt(0, records);
      for (const { kind } of complete) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      for (const size of [1, 2, 3, 5, 20]) {
        for (let offset = 0; offset < records.length; offset += size) {
          const page = records.slice(offset, offset + size);
          const rows = rowsAt(offset, page);
          // Every record but a receive has its row. A receive has a row, or is joined with others whose sum it is.
          const isOther = ({ operation }: { readonly operation: Operation }) => operation !== 'receive';
          expect(rows.map(({ record }) => record).filter(isOther)).toEqual(page.filter(isOther));
          const idOf = ({ location }: { readonly location: Activity['location'] }) => location.tx_id;
          // The page cannot know that its first transaction does not begin on the page before.
          const others = page.filter((one) => offset === 0 || idOf(one) !== page[0]?.location.tx_id);
          const outside = new Set(records.filter((one) => !others.includes(one)).map(idOf));
          const inside = new Set(others.map(idOf).filter((id) => !outside.has(id)));
          const ofWhole = (all: typeof rows) => all.filter(({ record }) => inside.has(idOf(record)));
          expect(ofWhole(rows)).toEqual(ofWhole(complete));
        }
      }
    }
    expect(Math.min(...['to itself', 'send', 'receive', 'mint', 'burn'].map((kind) => kinds.get(kind) ?? 0))).toBeGreaterThan(30);
  });

  it('of an address have the sign of their change of its balance', () => {
    const own = [
      at('burn', '1', 0, 'alice'),
      at('send', '1', 1, 'alice', 'bob'),
      at('send', '2', 2, 'alice', 'alice'),
      at('receive', '2', 2, 'alice'),
      at('receive', '3', 3, 'alice'),
      at('receive', '5', 4, 'alice'),
      at('mint', '5', 4),
    ];
    expect(rowsAt(0, own).map((row) => `${row.kind} ${signOf(row)}${row.record.amount}`)).toEqual([
      'burn −1',
      'send −1',
      'to itself 2',
      'receive +3',
      'mint +5',
    ]);
  });
});

describe('amounts of a rune', () => {
  const terms = { amount: '1.5', cap: '100', height_start: null, height_end: null, offset_start: null, offset_end: null };
  /** Returns the mint of a rune with other terms, after some mints, on a mirror up to the block `height`. */
  const mintAt = (
    mint_terms: Partial<Record<keyof typeof terms, string | number | null>>,
    height = 1,
    total_mints?: string,
    dialect: 'contract' | 'hiro' = 'contract',
  ) => {
    const supply = total_mints === undefined ? {} : { total_mints };
    const etching = { mint_terms: { ...terms, ...mint_terms }, divisibility: 2, location: { block_height: 1000 }, supply };
    return mintOf(etching as unknown as Etching, { dialect, tip: { height, hash: HASH } });
  };

  it('have shares, for any number of digits', () => {
    const most = '340282366920938463463374607431768211455';
    expect([shareOf(most, most), shareOf('0.5', '2'), shareOf('1', '0'), shareOf('0', '5')]).toEqual([1, 0.25, undefined, 0]);
    expect([0, 0.00001, 0.125, 0.99999, 1, 2.5].map(percent)).toEqual(['0%', '<0.01%', '12.50%', '99.99%', '100%', '250.00%']);
    expect([decimalsOf(['1', undefined, '2.125']), decimalsOf([])]).toEqual([3, 0]);
  });

  it('have a mint with the stricter of heights and offsets', () => {
    expect(mintAt({ amount: null, cap: null })).toBe(undefined);
    expect(mintAt({ cap: '0.01' }, 1, undefined, 'hiro')).toMatchObject({ cap: 1n });
    const strict = { height_start: 1010, offset_start: 5, height_end: 1100, offset_end: 50 };
    const mint = mintAt(strict, 1020, '25');
    expect(mint).toMatchObject({ amount: '1.5', cap: 100n, start: 1010n, end: 1050n, isOver: false, mints: 25n, left: 75n, share: 0.25 });
    const at = (mints: string | undefined, tip: number) => mintAt(strict, tip, mints)?.text;
    expect([at('5', 1008), at('5', 1009), at(undefined, 1048), at('5', 1049), at('100', 1020)]).toEqual([
      'Opens at block 1,010',
      'Open until block 1,049',
      'Open until block 1,049',
      'Closed since block 1,050',
      'Closed: all mints are made',
    ]);
    expect(mint && lastBlock(mint)).toBe(1049n);
    const huge = mintAt({ height_end: '18446744073709551615' });
    expect([huge?.text, huge && lastBlock(huge)]).toEqual(['Open until block 18,446,744,073,709,551,614', 18446744073709551614n]);
    const never = mintAt({ height_end: 0 });
    expect([never?.text, never && lastBlock(never)]).toEqual(['Closed since block 0', 'none']);
    expect(mintAt({}, 1, '99')).toMatchObject({ isOpen: true, text: 'Open' });
    expect(mintAt({ cap: null })).toMatchObject({ isOpen: false, isOver: true, text: 'Closed: the terms allow no mints' });
  });
});

describe('the chart', () => {
  const entry = (height: number, mint = 1) => ({ height, blocks: 1, timestamp: height, etching: 0, mint, burn: 0, send: 0, receive: 2 });

  const statsOf = (activity: readonly ReturnType<typeof entry>[], more: Partial<Stats> = {}) =>
    ({ bucket: 1, first: activity[0]?.height, last: activity.at(-1)?.height, activity, ...more }) as Stats;

  it('has a column for each entry, and a break at gaps of more than 20 entries', () => {
    const columns = columnsOf(statsOf([entry(1), entry(2), entry(4), entry(24), entry(45)]));
    expect(columns.map(({ first, last, total, followsGap }) => [first, last, total, followsGap])).toEqual([
      [1, 1, 3, false],
      [2, 2, 3, false],
      [4, 4, 3, false],
      [24, 24, 3, false],
      [45, 45, 3, true],
    ]);
  });

  it('knows the heights of columns that the mirror does not have completely', () => {
    const columns = columnsOf(
      statsOf(
        [10, 20, 30, 40, 50].map((height) => entry(height)),
        { bucket: 10, first: 13, last: 54 },
      ),
    );
    expect(columns.map(({ first, last }) => [first, last])).toEqual([
      [13, 19],
      [20, 29],
      [30, 39],
      [40, 49],
      [50, 54],
    ]);
  });

  it('draws each operation as a path, and describes each column', () => {
    const html = activityChart(statsOf([entry(10, 1), entry(20, 0)], { bucket: 10, first: 10, last: 25 }));
    // The scale ends at 3 records, which are 200 pixels high.
    expect(html).toContain('<path data-operation="receive" d="M0.46 210.00v-133.33h0.08v133.33zM1.46 210.00v-133.33h0.08v133.33z"/>');
    expect(html).toContain('<path data-operation="mint" d="M0.46 76.67v-66.67h0.08v66.67z"/>');
    expect([...html.matchAll(/<a href="([^"]*)" aria-label="([^"]*)"( tabindex="-1")?>/g)].map(([, ...parts]) => parts)).toEqual([
      ['?block=10', 'Blocks 10 to 19, 1970-01-01: 3 records (1 mint, 2 receive)', ' tabindex="-1"'],
      ['?block=20', 'Blocks 20 to 25, 6 of 10, 1970-01-01: 2 records (2 receive)', undefined],
    ]);
  });

  it.each([1, 2, 3, 7, 150])('labels the axis of %s columns at its ends, and only where there is room', (length) => {
    const html = activityChart(statsOf(Array.from({ length }, (_, i) => entry(2_000_000 + i))));
    const labels = [...html.matchAll(/<text x="([0-9.]+)%" y="230" text-anchor="(\w+)">([0-9,]+)</g)].map(([, x, anchor, text]) => [
      anchor,
      text,
      Number(x),
    ]);
    expect(labels.length).toBe(Math.min(length, 3));
    // A label of a column that is wider than the label is below the middle of the column, where the bar is.
    const [start, end, half] = length > 3 ? ['start', 'end', 0] : ['middle', 'middle', 50 / length];
    expect(labels.at(length === 1 ? 0 : 1)).toEqual([start, '2,000,000', expect.closeTo(half, 2)]);
    expect(labels[0]).toEqual([end, `2,000,${String(length - 1).padStart(3, '0')}`, expect.closeTo(100 - half, 2)]);
  });

  it.each([0, 1, 3, 7, 9, 10, 25, 99, 100, 1234, 500_001])('has a scale for %s', (most) => {
    const { top, ticks } = linear(most);
    expect(top).toBeGreaterThanOrEqual(most);
    expect(ticks.at(-1)).toBe(top);
    expect(ticks.length).toBeLessThanOrEqual(8);
    expect(ticks.every(Number.isInteger)).toBe(true);
  });
});

describe('the statistics of the start page', () => {
  const rune = { id: '5:1', number: 1, name: '<b>', spaced_name: '<b>"&•X', records: 4, etching: 0, mint: 1, burn: 0, send: 0, receive: 3 };
  const operations = { etching: 0, mint: 1, burn: 0, send: 0, receive: 3 };
  const activity = [{ height: 5, blocks: 1, timestamp: 1_713_571_767, ...operations }];
  const stats: Stats = {
    first: 5,
    last: 5,
    blocks: 1,
    transactions: 1,
    records: 4,
    operations,
    bucket: 1,
    activity,
    runes: [rune],
    recent: [],
  };
  const block = { height: 5, hash: HASH, timestamp: 1_713_571_767, records: 4, transactions: 1, operations };

  it('shows names as text, and times in UTC', () => {
    const html = overviewOf({ stats, latest: { tip: 5, blocks: [block] } });
    expect(html).toContain(
      '<a class="rune" href="?rune=5:1">&lt;b&gt;&quot;&amp;•<wbr>X</a> <a href="?block=5" title="Etched in block 5">',
    );
    expect(html).not.toContain('<b>');
    expect(html).toContain('<time datetime="2024-04-20T00:09:27Z">2024-04-20 00:09:27 UTC</time>');
    expect(html).toContain('<span title="1 mint, 3 receive">4</span>');
    expect(html).toContain(
      '<span data-operation="receive" style="width:75.00%"></span><span data-operation="mint" style="width:25.00%"></span>',
    );
  });

  it('cuts names that Bitcoin does not allow, and names their runes by id', () => {
    const runes = stats.runes.map((rune) => ({ ...rune, name: 'A'.repeat(100_000), spaced_name: 'A'.repeat(100_000) }));
    const html = overviewOf({ stats: { ...stats, runes }, latest: { tip: 5, blocks: [block] } });
    expect(html).toContain(`<a class="rune" href="?rune=5:1">${'A'.repeat(100)}…</a>`);
    expect(html.length).toBeLessThan(20_000);
  });

  it('shows times above the range of dates as numbers', () => {
    const timestamp = Number.MAX_SAFE_INTEGER;
    const late = { ...stats, activity: activity.map((entry) => ({ ...entry, timestamp })) };
    const html = overviewOf({ stats: late, latest: { tip: 5, blocks: [{ ...block, timestamp }] } });
    expect(html).toContain('<td>9007199254740991</td>');
    expect(html).toContain('Block 5, 9007199254740991: 4 records');
    expect(html).not.toContain('<time');
  });

  it('is empty without activity', () => {
    expect(overviewOf({ stats: { ...stats, activity: [], runes: [] }, latest: { tip: null, blocks: [] } })).toBe('');
  });
});
