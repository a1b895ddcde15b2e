/**
 * SQL that renders a record as compact JSON. DuckDB runs it on all cores, and the bytes reach the files without becoming JavaScript
 * strings. Key order and spelling depend on the dialect (docs/api.md, "Dialects").
 */
import { literal } from '../../duckdb/store.ts';
import { OPERATIONS } from '../../pages/blockAndTransactionLists.ts';
import type { Dialect } from '../../pages/mirrorOptions.ts';

/** Characters that JSON must escape, each followed by its escape. The backslash is the first, because other escapes begin with one. */
const ESCAPES = ['\\', '"', ...Array.from({ length: 0x20 }, (_, code) => String.fromCharCode(code))].map(
  (character) => character + JSON.stringify(character).slice(1, -1),
);

/** SQL condition: `json_text` would change a text. `to_json` escapes the same characters, in half the time of a regular expression. */
export const needsEscapes = (text: string): string => `contains(to_json(${text}), '\\')`;

/**
 * SQL that creates the macro `json_text`, which escapes a string for JSON, without quotes around it. NULL stays NULL. The macro is a loop,
 * because DuckDB then plans a query for five columns of free text in 2 ms. With a nested replace() for each character, it takes 25 ms.
 */
export const JSON_TEXT = `CREATE OR REPLACE TEMP MACRO json_text(value) AS list_reduce(
  from_json(${literal(JSON.stringify(ESCAPES))}, '["VARCHAR"]'), lambda text, e: replace(text, left(e, 1), substr(e, 2)), value)`;

/** Columns of free text, whose values may contain any character: columns of the rune, and columns of sender and receiver. */
const RUNE_TEXTS = ['rune_id', 'rune_name', 'rune_spaced_name'];
const PARTY_TEXTS = ['address', 'receiver_address'];

/**
 * Returns SQL that concatenates pieces of JSON. `texts` are columns whose values may contain any character. `pieces` returns the SQL of the
 * pieces. For the value of such a column, it calls its parameter `text`, which returns the SQL of the value, escaped or not. The result
 * needs the macro of JSON_TEXT. It uses one concat(), which copies each piece once. A chain of || would copy the first pieces two dozen
 * times. Few rows need escaping, so it first checks all texts of a row at once, and escapes them only if needed.
 */
export function jsonOf(texts: readonly string[], pieces: (text: (column: string) => string) => readonly string[]): string {
  const plain = `concat(${pieces((column) => column).join(', ')})`;
  const escaped = `concat(${pieces((column) => `json_text(${column})`).join(', ')})`;
  return `CASE WHEN ${needsEscapes(`concat(${texts.join(', ')})`)} THEN ${escaped} ELSE ${plain} END`;
}

/** Returns SQL that renders a canonical record as JSON in a dialect of the API. The JSON ends with a comma. */
export const recordJson = (dialect: Dialect): string => jsonOf([...RUNE_TEXTS, ...PARTY_TEXTS], (text) => pieces(dialect, text));

/** Returns SQL of the pieces of a record's JSON. The piece of a missing field is NULL, which concat() skips. */
function pieces(dialect: Dialect, text: (column: string) => string): string[] {
  const rune = [
    `'{"rune":{"id":"', ${text('rune_id')}, '","number":', rune_number, ',"name":"', ${text('rune_name')}`,
    `'","spaced_name":"', ${text('rune_spaced_name')}, '"}'`,
  ];
  const optional = (key: string, value: string, quote = '"') => `',"${key}":${quote}' || ${value} || '${quote}'`;
  const parties = PARTY_TEXTS.map((column) => optional(column, text(column)));
  const amount = optional('amount', 'amount');
  const operation = `',"operation":"', operation`;
  const prefix = dialect === 'contract' ? '0x' : '';
  const place = `'","location":{"block_hash":"${prefix}', block_hash, '","block_height":', block_height, ',"tx_id":"${prefix}', tx_id, '","tx_index":', tx_index`;
  const timestamp = `',"timestamp":', "timestamp"`;
  const vout = optional('vout', 'vout', '');
  if (dialect === 'contract') {
    return [...rune, ...parties, amount, operation, place, vout, optional('output', `'0x' || "output"`), timestamp, `'}},'`];
  }
  const output = optional('output', `"output" || coalesce(':' || vout, '')`);
  return [...rune, operation, place, timestamp, vout, output, `'}'`, ...parties, amount, `'},'`];
}

export const operationCode = `CASE operation ${OPERATIONS.map((name, code) => `WHEN '${name}' THEN ${code}`).join(' ')} END::TINYINT`;
