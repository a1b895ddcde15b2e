/** Compares the protocol with ord: chains, messages and real blocks of test/fixtures/indexing. */
import { describe, expect, it } from 'vitest';
import { NETWORKS } from '../../src/runes/networks.ts';
import { runeIdText } from '../../src/runes/runeId.ts';
import { decodeMessage, type Message } from '../../src/runes/runestone.ts';
import { isMessage } from '../../src/runes/script.ts';
import { balancesByRows, balancesOf, MemoryChain } from '../support/memoryLedger.ts';
import { blocksOf, type FixtureChain, fixtureLines, networkOf } from '../support/runeChains.ts';

describe('chains', () => {
  it.each(fixtureLines<FixtureChain>('blocks.ndjson').map((chain) => [chain.test, chain] as const))('%s', (_, fixture) => {
    const { index_runes, asserts } = fixture;
    const memory = new MemoryChain(NETWORKS[networkOf(fixture)]);
    blocksOf(fixture).forEach(({ bytes, height }, index) => {
      memory.add(bytes, height);
      for (const expected of asserts.filter((assertion) => assertion.height === index && index_runes)) {
        expect(runesOf(memory)).toEqual(expected.runes);
        expect(balancesOf(memory)).toEqual([...expected.balances].sort());
        expect(balancesByRows(memory)).toEqual([...expected.balances].sort());
      }
    });
  });
});

/** Returns the runes of a chain in the format of the fixtures. Computes burned amounts and mints from the rows. */
function runesOf({ ledger, rows }: MemoryChain) {
  return [...ledger.byId.values()].map(({ id, name, block, terms, mints, row }) => {
    const of = (operation: string) => rows.filter((other) => other.rune_id === row.id && other.operation === operation);
    expect(of('mint').length).toBe(mints);
    const limits = [row.terms_height_start, row.terms_height_end, row.terms_offset_start, row.terms_offset_end];
    expect([row.terms_amount, row.terms_cap, ...limits]).toEqual(
      (['amount', 'cap', 'heightStart', 'heightEnd', 'offsetStart', 'offsetEnd'] as const).map((name) => terms?.[name] ?? null),
    );
    return {
      id: runeIdText(id),
      block,
      burned: String(of('burn').reduce((sum, { amount }) => sum + (amount ?? 0n), 0n)),
      divisibility: row.divisibility,
      etching: row.tx_id || '0'.repeat(64),
      mints: String(mints),
      number: row.number,
      premine: String(row.premine),
      rune: String(name),
      spacers: [...row.spaced_name].reduce(
        ({ mask, letters }, letter) => (letter === '•' ? { mask: mask | (1 << (letters - 1)), letters } : { mask, letters: letters + 1 }),
        { mask: 0, letters: 0 },
      ).mask,
      symbol: ['¤', ''].includes(row.symbol) ? null : row.symbol,
      terms: terms
        ? {
            amount: terms.amount?.toString() ?? null,
            cap: terms.cap?.toString() ?? null,
            height_start: terms.heightStart?.toString() ?? null,
            height_end: terms.heightEnd?.toString() ?? null,
            offset_start: terms.offsetStart?.toString() ?? null,
            offset_end: terms.offsetEnd?.toString() ?? null,
          }
        : null,
      timestamp: row.timestamp,
      turbo: row.turbo,
    };
  });
}

interface MessageCase {
  readonly name: string;
  readonly outputs: string[];
  readonly expected: null | { readonly runestone?: object; readonly cenotaph?: object };
}

describe('messages', () => {
  it.each(fixtureLines<MessageCase>('messages.ndjson').map((one) => [one.name, one] as const))('%s', (_, { outputs, expected }) => {
    const script = outputs.map((hex) => Buffer.from(hex, 'hex')).find((bytes) => isMessage(bytes, 0, bytes.length));
    expect(script ? plain(decodeMessage(script, outputs.length)) : null).toEqual(expected);
  });
});

/**
 * Converts a message to the format of the fixtures. Omits undefined values, empty lists, and a false `turbo`. Converts bigints to numbers,
 * or to texts if they are too large.
 */
function plain(message: Message): object {
  const { kind, ...fields } = message;
  if (fields && 'edicts' in fields && fields.etching) {
    const { terms, ...etching } = fields.etching;
    const { heightStart, heightEnd, offsetStart, offsetEnd, ...others } = terms ?? {};
    const range = (start?: bigint, end?: bigint) => (start === undefined && end === undefined ? undefined : [start ?? null, end ?? null]);
    return {
      [kind]: tidy({
        ...fields,
        etching: {
          ...etching,
          turbo: etching.turbo || undefined,
          terms: terms && { ...others, height: range(heightStart, heightEnd), offset: range(offsetStart, offsetEnd) },
        },
      }),
    };
  }
  return { [kind]: tidy(fields) };
}

const tidy = (value: object): object =>
  JSON.parse(
    JSON.stringify(value, (_, field) =>
      typeof field === 'bigint'
        ? field <= Number.MAX_SAFE_INTEGER
          ? Number(field)
          : String(field)
        : Array.isArray(field) && field.length === 0
          ? undefined
          : field,
    ),
  );
