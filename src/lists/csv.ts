/**
 * Renders entries of lists as CSV (RFC 4180), for the command `export` and for the explorer. The first line has the names of the columns.
 * Lines end with CR and LF. A missing value is an empty cell.
 */

const NAMES = ['id', 'number', 'name', 'spaced_name'];
const RUNE = NAMES.map((name) => `rune.${name}`);
const TRANSACTION = ['location.block_hash', 'location.block_height', 'location.tx_id', 'location.tx_index'];
const RECORD = ['address', 'receiver_address', 'amount', 'operation'];
const EVENT = [...RECORD, ...TRANSACTION, 'location.vout', 'location.output', 'location.timestamp'];

/** Columns by list, as paths in an entry. An output has a row for each of its runes. `newest` and `active` are lists of runes. */
export const CSV_PATHS = {
  holders: ['address', 'balance'],
  balances: ['address', ...RUNE, 'balance'],
  activity: [...RUNE, ...EVENT],
  /** Activity of a single rune. Its records omit the rune, because it is the same in all records. */
  rune_activity: EVENT,
  outputs: ['output', 'address', ...TRANSACTION, 'location.timestamp', ...RUNE, 'balance'],
  newest: [
    ...NAMES,
    ...['divisibility', 'symbol', 'turbo'],
    ...['amount', 'cap', 'height_start', 'height_end', 'offset_start', 'offset_end'].map((name) => `mint_terms.${name}`),
    ...['current', 'premine', 'minted', 'total_mints', 'mintable', 'burned', 'total_burns'].map((name) => `supply.${name}`),
    ...TRANSACTION,
    'location.timestamp',
  ],
  active: [...NAMES, 'records', 'etching', 'mint', 'burn', 'send', 'receive'],
} as const satisfies Readonly<Record<string, readonly string[]>>;
export type CsvList = keyof typeof CSV_PATHS;

/** Returns the names of a list's columns, such as `rune_name` for `rune.name`, and `vout` for `location.vout`. */
export const csvColumns = (list: CsvList): string[] => CSV_PATHS[list].map((path) => path.replace('location.', '').replace('.', '_'));

/** Returns the lines of an entry, each with CR and LF at its end. */
export function csvLines(list: CsvList, entry: object): string[] {
  const { runes } = entry as { readonly runes?: readonly object[] };
  const rows = list === 'outputs' && runes !== undefined ? runes.map((rune) => ({ ...entry, ...rune })) : [entry];
  return rows.map((row) => csvLine(CSV_PATHS[list].map((path) => valueAt(row, path))));
}

const valueAt = (row: object, path: string): unknown =>
  path.split('.').reduce<unknown>((value, key) => (Object(value) as Readonly<Record<string, unknown>>)[key], row);

/** Returns a line with these cells, with CR and LF at its end. */
export const csvLine = (cells: readonly unknown[]): string => `${cells.map(cellOf).join(',')}\r\n`;

/**
 * Spreadsheets run a cell that begins with one of these characters, which a hostile mirror may send, as a formula. An apostrophe before the
 * text makes them show it. No address, amount or name of a rune begins with them.
 */
const FORMULA = /^[=+\-@\t\r]/;

function cellOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value.replace(FORMULA, `'$&`) : String(value);
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
