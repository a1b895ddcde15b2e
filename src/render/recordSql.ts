/**
 * One record as compact JSON text, made in SQL by concatenation: DuckDB does it on all cores, and the bytes reach the files without
 * ever being JavaScript strings. Key order and spelling follow the dialect (decisions.md, "Dialects").
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

/** SQL that makes the macro `json_text`: a string as a JSON string. Few need escaping, so most are only put in quotes. */
export const JSON_TEXT = (() => {
  const escaped = ESCAPES.reduce(
    (sql, [character, escaping]) => `replace(${sql}, chr(${character.charCodeAt(0)}), '${escaping}')`,
    'value',
  );
  return `CREATE TEMP MACRO json_text(value) AS
    CASE WHEN regexp_matches(value, '["\\\\\\x00-\\x1f]') THEN '"' || ${escaped} || '"' ELSE '"' || value || '"' END`;
})();

const optional = (key: string, value: string): string => `coalesce(',"${key}":' || ${value}, '')`;

/** SQL of a canonical record's JSON in this dialect. */
export function recordJson(dialect: Dialect): string {
  const rune = `'{"rune":{"id":' || json_text(rune_id) || ',"number":' || rune_number || ',"name":' || json_text(rune_name) ||
    ',"spaced_name":' || json_text(rune_spaced_name) || '}'`;
  const parties = [optional('address', 'json_text(address)'), optional('receiver_address', 'json_text(receiver_address)')];
  const amount = optional('amount', `'"' || amount || '"'`);
  const operation = `',"operation":"' || operation || '"'`;
  const prefix = dialect === 'contract' ? '0x' : '';
  const place = `',"location":{"block_hash":"${prefix}' || block_hash || '","block_height":' || block_height ||
    ',"tx_id":"${prefix}' || tx_id || '","tx_index":' || tx_index`;
  const timestamp = `',"timestamp":' || "timestamp"`;
  const vout = optional('vout', 'vout');
  if (dialect === 'contract') {
    const output = optional('output', `'"0x' || "output" || '"'`);
    return [rune, ...parties, amount, operation, place, vout, output, timestamp, `'}}'`].join(' || ');
  }
  const output = optional('output', `'"' || "output" || coalesce(':' || vout, '') || '"'`);
  return [rune, operation, place, timestamp, vout, output, `'}'`, ...parties, amount, `'}'`].join(' || ');
}

/** SQL of a record's operation as its place in OPERATIONS. */
export const operationCode = `CASE operation ${OPERATIONS.map((name, code) => `WHEN '${name}' THEN ${code}`).join(' ')} END::TINYINT`;
