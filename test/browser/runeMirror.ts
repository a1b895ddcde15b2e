/**
 * Invents runes with their complete history. The mints of some runes are open, of others ended or not yet begun. One rune has many holders.
 */
import { addressOf } from '../../src/runes/address.ts';
import { NETWORKS } from '../../src/runes/networks.ts';
import { hex } from '../support/records.ts';

const RUNES =
  'id,number,name,spaced_name,block_hash,block_height,tx_index,tx_id,divisibility,premine,symbol,terms_amount,terms_cap,terms_height_start,terms_height_end,terms_offset_start,terms_offset_end,turbo,cenotaph,timestamp';
const LEDGER = 'rune_id,block_hash,block_height,tx_index,event_index,tx_id,output,address,receiver_address,amount,operation,timestamp';

const FIRST = 840_000;
/** Height of the last block. */
export const LAST = 840_070;
const blockHash = (height: number) => `0000000000000000000${hex(`block ${height}`).slice(0, 45)}`;
const timeOf = (height: number) => 1_755_000_000 - (LAST - height) * 600;
const noHash = (bytes: Uint8Array) => bytes;
export const holder = (i: number): string =>
  addressOf(Uint8Array.from([0x51, 32, ...Buffer.from(hex(`holder ${i}`), 'hex')]), NETWORKS.main, noHash) ?? '';
const transaction = (name: string): string => hex(`transaction ${name}`);

interface Rune {
  readonly tx: number;
  readonly spaced: string;
  readonly decimals: number;
  readonly premine: string;
  readonly symbol: string;
  /** Terms of the mint: amount, cap, first and last height, first and last offset. */
  readonly terms: readonly (string | number)[];
}

const NO_TERMS = ['', '', '', '', '', ''];
const ETCHED: readonly Rune[] = [
  { tx: 1, spaced: 'AMBER•LANTERN•MOON', decimals: 2, premine: '2100000000', symbol: '🏮', terms: ['10000', '4000', '', '', '', ''] },
  { tx: 3, spaced: 'DOG•GO•TO•THE•MOON', decimals: 5, premine: '10000000000000000', symbol: '🐕', terms: NO_TERMS },
  { tx: 6, spaced: 'DOGS•AND•CATS•TOGETHER', decimals: 0, premine: '0', symbol: '', terms: ['5', '12', '', '', '', ''] },
  { tx: 9, spaced: 'DOMINO•EFFECT•NOW', decimals: 8, premine: '0', symbol: 'ᚱ', terms: ['100000000', '21000', '', '', '10', '60'] },
  { tx: 12, spaced: 'LATER•THAN•TODAY', decimals: 1, premine: '7', symbol: 'ש', terms: ['50', '100', '850000', '860000', '', ''] },
];

/** Returns input files with these runes, for a build in layout `archive` with lists. */
export function runeInput(): Record<string, string> {
  const runes = [
    `1:0,0,UNCOMMONGOODS,UNCOMMON•GOODS,${blockHash(FIRST)},${FIRST},0,"",0,0,⧉,1,340282366920938463463374607431768211455,840000,1050000,,,f,f,${timeOf(FIRST)}`,
    ...ETCHED.map(({ tx, spaced, decimals, premine, symbol, terms }, i) => {
      const name = spaced.replaceAll('•', '');
      const place = [blockHash(FIRST), FIRST, tx, transaction(`${FIRST} ${tx}`)];
      return [`${FIRST}:${tx}`, i + 1, name, spaced, ...place, decimals, premine, symbol, ...terms, 'f', 'f', timeOf(FIRST)].join();
    }),
  ];
  const rows: string[] = [];
  const row = (
    height: number,
    tx: number,
    event: number,
    rune: string,
    operation: string,
    address: string,
    amount: string | number,
    receiver = '',
  ) => {
    const output = operation === 'receive' || operation === 'send' ? 1 : '';
    const id = transaction(`${height} ${tx}`);
    rows.push([rune, blockHash(height), height, tx, event, id, output, address, receiver, amount, operation, timeOf(height)].join());
  };
  for (const { tx, premine } of ETCHED) {
    row(FIRST, tx, 0, `${FIRST}:${tx}`, 'etching', '', '');
    if (premine !== '0') row(FIRST, tx, 1, `${FIRST}:${tx}`, 'receive', holder(0), premine);
  }
  for (let height = FIRST + 1; height <= LAST; height += 1) {
    const n = height - FIRST;
    // Each block pays the rune with the dog to a new holder.
    const amount = Math.floor(1e15 / (n + 1) ** 1.7) + n;
    row(height, 20, 0, '840000:3', 'receive', holder(n), amount);
    row(height, 20, 1, '840000:3', 'send', holder(0), amount, holder(n));
    // In each tenth block, the sender also pays itself in a second transaction.
    if (n % 10 === 0) {
      row(height, 21, 0, '840000:3', 'receive', holder(0), 3);
      row(height, 21, 1, '840000:3', 'send', holder(0), 3, holder(0));
    }
    // In some other blocks, the first transaction also pays a part back to the sender, and in some of these a second holder.
    if (n % 10 === 5) {
      row(height, 20, 2, '840000:3', 'receive', holder(0), 500);
      row(height, 20, 3, '840000:3', 'send', holder(0), 500, holder(0));
    }
    if (n % 20 === 5) {
      row(height, 20, 4, '840000:3', 'receive', holder(1), 40);
      row(height, 20, 5, '840000:3', 'send', holder(0), 40, holder(1));
    }
    for (let mint = 0; mint < 1 + (n % 3); mint += 1) {
      row(height, 30 + mint, 0, '840000:1', 'mint', '', 10000);
      row(height, 30 + mint, 1, '840000:1', 'receive', holder((n * 7) % 31), 10000);
    }
    if (n <= 12) {
      row(height, 40, 0, '840000:6', 'mint', '', 5);
      row(height, 40, 1, '840000:6', 'receive', holder(n), 5);
    }
    if (n === 40) row(height, 50, 0, '840000:3', 'burn', holder(1), 2100000);
    if (n > 10 && n < 60 && n % 4 === 0) {
      row(height, 60, 0, '840000:9', 'mint', '', 100000000);
      row(height, 60, 1, '840000:9', 'receive', holder(2), 100000000);
    }
  }
  return { 'runes.csv': [RUNES, ...runes, ''].join('\n'), 'ledger.csv': [LEDGER, ...rows, ''].join('\n') };
}

/** Returns input files with one rune per block, from block 840,000 on. The name of a rune decides the hash of its block. */
export function etchedRunes(spacedNames: readonly string[]): Record<string, string> {
  const etched = spacedNames.map((spaced, i) => {
    const place = [hex(`block of ${spaced}`), FIRST + i, 1, transaction(spaced)];
    return { id: `${FIRST + i}:1`, spaced, number: i, place };
  });
  const runes = etched.map(({ id, spaced, number, place }) =>
    [id, number, spaced.replaceAll('•', ''), spaced, ...place, 0, 0, '', ...NO_TERMS, 'f', 'f', timeOf(FIRST)].join(),
  );
  const rows = etched.map(({ id, place: [hash, height, tx, txId] }) =>
    [id, hash, height, tx, 0, txId, '', '', '', '', 'etching', timeOf(FIRST)].join(),
  );
  return { 'runes.csv': [RUNES, ...runes, ''].join('\n'), 'ledger.csv': [LEDGER, ...rows, ''].join('\n') };
}
