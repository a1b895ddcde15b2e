/**
 * One record as compact JSON text, made in SQL by concatenation: DuckDB does it on all cores, and the bytes reach the files without
 * ever being JavaScript strings. Key order and spelling follow the dialect (decisions.md, "Dialects").
 * A twin in JavaScript, for records that are parsed already, is in contract/contractJson.ts, which says why and names the tests that compare the two.
 */
import { type Dialect, OPERATIONS } from '../pages/lists.ts';

/** Characters that JSON must escape, with JSON.stringify's escapes; the backslash comes first so that none is escaped twice. */
const ESCAPES: readonly (readonly [string, string])[] = [
  ['\\', '\\\\'],
  ['"', '\\"'],
  ...Array.from({ length: 0x20 }, (_, code): [string, string] => {
    const character = String.fromCharCode(code);
    return [character, JSON.stringify(character).slice(1, -1)];
  }),
];

const CHARACTERS_TO_ESCAPE = '["\\\\\\x00-\\x1f]';

/** SQL that makes the macro `json_text`: a string with JSON's escapes, without the quotes around it. NULL stays NULL. */
export const JSON_TEXT = `CREATE OR REPLACE TEMP MACRO json_text(value) AS ${ESCAPES.reduce(
  (sql, [character, escaping]) => `replace(${sql}, chr(${character.charCodeAt(0)}), '${escaping}')`,
  'value',
)}`;

/** The columns that may hold any character. */
const TEXTS = ['rune_id', 'rune_name', 'rune_spaced_name', 'address', 'receiver_address'];

/**
 * SQL of JSON put together from pieces, in which `texts` are columns that may hold any character: `pieces` is given what makes SQL of one. One concat() of
 * all pieces copies each once, where a chain of || would copy the front of a record two dozen times. Hardly any text needs escaping, so rows are asked
 * once and not text by text. The macro of JSON_TEXT must be there.
 */
export function jsonOf(texts: readonly string[], pieces: (text: (column: string) => string) => readonly string[]): string {
  const plain = `concat(${pieces((column) => column).join(', ')})`;
  const escaped = `concat(${pieces((column) => `json_text(${column})`).join(', ')})`;
  return `CASE WHEN regexp_matches(concat(${texts.join(', ')}), '${CHARACTERS_TO_ESCAPE}') THEN ${escaped} ELSE ${plain} END`;
}

/** SQL of a canonical record's JSON in this dialect, and a comma. */
export const recordJson = (dialect: Dialect): string => jsonOf(TEXTS, (text) => pieces(dialect, text));

/** The pieces of a record; concat() passes over NULL, which a piece is whose field has no value. */
function pieces(dialect: Dialect, text: (column: string) => string): string[] {
  const optional = (key: string, value: string, quote = '"') => `',"${key}":${quote}' || ${value} || '${quote}'`;
  const rune = [
    `'{"rune":{"id":"', ${text('rune_id')}, '","number":', rune_number, ',"name":"', ${text('rune_name')}`,
    `'","spaced_name":"', ${text('rune_spaced_name')}, '"}'`,
  ];
  const parties = ['address', 'receiver_address'].map((column) => optional(column, text(column)));
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

/** SQL of a record's operation as its place in OPERATIONS. */
export const operationCode = `CASE operation ${OPERATIONS.map((name, code) => `WHEN '${name}' THEN ${code}`).join(' ')} END::TINYINT`;
