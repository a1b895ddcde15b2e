/**
 * Computes the expected bodies of answers in dialect `contract`, from the model and the rules of docs/api.md. Uses no code of the program.
 */
import { type Answers, type Balance, decimal, type OutputAnswer, type TransactionRows } from './model/model.ts';
import type { Row } from './model/rows.ts';
import { type Rune, shownSymbol } from './model/runes.ts';
import type { RowWindow } from './rows.ts';

const json = JSON.stringify;

/** Writes an object whose values are JSON texts. Omits fields without a value. */
const object = (fields: Readonly<Record<string, string | undefined>>): string =>
  `{${Object.entries(fields)
    .flatMap(([name, value]) => (value === undefined ? [] : [`${json(name)}:${value}`]))
    .join(',')}}`;

const textOrNone = (value: string | null): string | undefined => (value === null ? undefined : json(value));

const runeOf = ({ id, number, letters, spacedName }: Rune): string =>
  object({ id: json(id), number: String(number), name: json(letters), spaced_name: json(spacedName) });

/** A window of a list: offset and limit. */
export interface Window {
  readonly offset: number;
  readonly limit: number;
}

export const listOf = (
  { offset, limit }: Window,
  total: number,
  results: readonly string[],
  first: Readonly<Record<string, string>> = {},
) => object({ ...first, limit: String(limit), offset: String(offset), total: String(total), results: `[${results.join(',')}]` });

/** Returns a record of activity. Records in the activity of a rune omit the rune. */
export function activityOf(model: Answers, row: Row, transaction: TransactionRows, withRune: boolean): string {
  const rune = model.rune(row.rune);
  if (rune === undefined) throw new Error(`the model has a row of ${row.rune}, which it does not have`);
  const { blockHash, height, txid, txIndex, timestamp } = transaction;
  const hasOutput = row.output !== null;
  return object({
    rune: withRune ? runeOf(rune) : undefined,
    address: textOrNone(row.address),
    receiver_address: textOrNone(row.receiver),
    amount: row.amount === null ? undefined : json(decimal(row.amount, rune.divisibility)),
    operation: json(row.operation),
    location: object({
      block_hash: json(`0x${blockHash}`),
      block_height: String(height),
      tx_id: json(`0x${txid}`),
      tx_index: String(txIndex),
      vout: hasOutput ? String(row.output) : undefined,
      output: hasOutput ? json(`0x${txid}`) : undefined,
      timestamp: String(timestamp),
    }),
  });
}

/** Returns the body of a list of activity, or only its total if the order of its records is not defined. */
export function activityBody(
  model: Answers,
  window: Window,
  { total, rows }: RowWindow,
  withRune = true,
): string | { readonly total: number } {
  if (rows === undefined) return { total };
  return listOf(
    window,
    total,
    rows.map(({ row, transaction }) => activityOf(model, row, transaction, withRune)),
  );
}

export function etchingBody(model: Answers, rune: Rune): string {
  const { divisibility, terms } = rune;
  const supply = model.supply(rune);
  const amount = (value: bigint) => json(decimal(value, divisibility));
  const digits = (value: bigint | null | undefined) => (value === null || value === undefined ? 'null' : String(value));
  const text = (value: string | undefined) => (value === undefined ? 'null' : json(value));
  return object({
    id: json(rune.id),
    name: json(rune.letters),
    spaced_name: json(rune.spacedName),
    number: String(rune.number),
    divisibility: String(divisibility),
    symbol: json(shownSymbol(rune)),
    turbo: String(rune.turbo),
    mint_terms: object({
      amount: terms?.amount === null || terms?.amount === undefined ? 'null' : amount(terms.amount),
      cap: text(terms?.cap?.toString()),
      height_start: digits(terms?.heightStart),
      height_end: digits(terms?.heightEnd),
      offset_start: digits(terms?.offsetStart),
      offset_end: digits(terms?.offsetEnd),
    }),
    supply: object({
      ...(supply && {
        current: amount(supply.current),
        minted: amount(supply.minted),
        total_mints: json(String(supply.mints)),
        mint_percentage: json(supply.mintPercentage),
        mintable: String(supply.mintable),
        burned: amount(supply.burned),
        total_burns: json(String(supply.burnRows)),
      }),
      premine: amount(rune.premine),
    }),
    location: object({
      block_hash: json(`0x${model.block(rune.height).hash}`),
      block_height: String(rune.height),
      tx_id: json(`0x${rune.txid}`),
      tx_index: String(rune.txIndex),
      timestamp: String(rune.timestamp),
    }),
  });
}

const held = ({ rune, amount }: Balance): string => object({ rune: runeOf(rune), balance: json(decimal(amount, rune.divisibility)) });

export const balanceOf = ({ rune, amount }: Balance, address: string): string =>
  object({ rune: runeOf(rune), balance: json(decimal(amount, rune.divisibility)), address: json(address) });

export const holderOf = (rune: Rune, address: string, amount: bigint): string =>
  object({ balance: json(decimal(amount, rune.divisibility)), address: json(address) });

export const tipOf = (model: Answers): Readonly<Record<string, string>> => ({
  block_height: String(model.tip.height),
  block_hash: json(`0x${model.tip.hash}`),
});

/** Returns an output in the form of an address's list of outputs. */
export function listedOutput({ outpoint, address, location, held: runes }: OutputAnswer): string {
  return object({
    output: json(`0x${outpoint}`),
    address: textOrNone(address),
    location: object({
      block_hash: json(`0x${location.blockHash}`),
      block_height: String(location.height),
      tx_id: json(`0x${location.txid}`),
      tx_index: String(location.txIndex),
      timestamp: String(location.timestamp),
    }),
    runes: `[${runes.map(held).join(',')}]`,
  });
}

/** Returns the body of the answer for one output. */
export function outputBody(model: Answers, outpoint: string, found: OutputAnswer | null): string {
  const tip = object(tipOf(model)).slice(0, -1);
  if (found === null) return `${tip},${object({ output: json(`0x${outpoint}`), runes: '[]', spent: 'null' }).slice(1)}`;
  const { spent } = found;
  const body = listedOutput(spent ? { ...found, held: [] } : found).slice(1, -1);
  return `${tip},${body},"spent":${spent}${spent ? `,"held":[${found.held.map(held).join(',')}]` : ''}}`;
}
