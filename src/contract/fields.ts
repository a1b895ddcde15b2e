/**
 * Fields of an activity record and their rules. The checks in SQL (input/cellSql.ts) and the messages about wrong records
 * (input/checkRecords.ts) are made from these rules. The regular expressions match complete values. They use only syntax that has the same
 * meaning in JavaScript and in RE2, the engine of DuckDB.
 */
import { OPERATIONS } from '../pages/blockAndTransactionLists.ts';

/** Largest integer that all JSON clients read exactly, 2^53 - 1. */
export const MAX_INTEGER = Number.MAX_SAFE_INTEGER;

/** Largest amount in smallest units, 2^128 - 1 (runes protocol). */
export const MAX_AMOUNT = 340282366920938463463374607431768211455n;

/** Largest divisibility of a rune (runes protocol). */
export const MAX_DIVISIBILITY = 38;

/** Integer from 0 to 10^39 - 1. Other code compares it with MAX_AMOUNT, because a pattern cannot compare numbers. */
const UNITS = '(?:0|[1-9][0-9]{0,38})';

/** Output that a transaction spends: `txid:vout`, or `txid:vout:address`. */
const SPENT = '[0-9a-f]{64}:(?:0|[1-9][0-9]{0,9})(?::[0-9A-Za-z]{1,100})?';

export const RULES = {
  integer: { pattern: '(?:0|[1-9][0-9]{0,15})', rule: `must be an integer from 0 to ${MAX_INTEGER} (2^53 - 1)` },
  /** Any string. An empty pattern means that the value is not checked. */
  text: { pattern: '', rule: 'must be a string' },
  hash: { pattern: '(?:0[xX])?[0-9a-fA-F]{64}', rule: 'must be 64 hex digits, with or without 0x' },
  hashOrNone: { pattern: '(?:(?:0[xX])?[0-9a-fA-F]{64})?', rule: 'must be 64 hex digits, with or without 0x, or empty' },
  output: {
    pattern: '(?:0[xX])?[0-9a-fA-F]+(?::(?:0|[1-9][0-9]{0,15}))?',
    rule: 'must be hex, with or without 0x, or an outpoint txid:vout',
  },
  spent: { pattern: `${SPENT}(?:,${SPENT})*`, rule: 'must be outputs txid:vout or txid:vout:address with commas between them' },
  operation: { pattern: `(?:${OPERATIONS.join('|')})`, rule: `must be one of ${OPERATIONS.join(', ')}` },
  amount: {
    pattern: `[0-9]+(?:[.][0-9]{1,${MAX_DIVISIBILITY}})?`,
    rule: `must be a decimal string of at most 2^128 - 1 smallest units, with at most ${MAX_DIVISIBILITY} decimals`,
  },
  units: { pattern: UNITS, rule: 'must be an integer from 0 to 2^128 - 1, in smallest units' },
  /** A count or height that may be too large for the kind `integer`. */
  count: { pattern: UNITS, rule: 'must be an integer from 0 to 2^128 - 1' },
  /** True or false. PostgreSQL writes them as t and f into CSV. */
  flag: { pattern: '(?:[tT](?:rue|RUE)?|[fF](?:alse|ALSE)?)', rule: 'must be true or false, or t or f' },
} satisfies Readonly<Record<string, { readonly pattern: string; readonly rule: string }>>;
export type FieldKind = keyof typeof RULES;

export interface Field<Column extends string = string> {
  /** Name of the column in flat tables and in the store. */
  readonly column: Column;
  /** Path in an Activity, such as `location.block_height`. Error messages name the field by this path. */
  readonly path: string;
  readonly kind: FieldKind;
  readonly required: boolean;
}

const field = <Column extends string>(column: Column, path: string, kind: FieldKind, required = true): Field<Column> => ({
  column,
  path,
  kind,
  required,
});

/** Flattened fields of an Activity. Recordings of the API showed which fields are optional (docs/api.md, "Records"). */
export const ACTIVITY_FIELDS = [
  field('rune_id', 'rune.id', 'text'),
  field('rune_number', 'rune.number', 'integer'),
  field('rune_name', 'rune.name', 'text'),
  field('rune_spaced_name', 'rune.spaced_name', 'text'),
  field('address', 'address', 'text', false),
  field('receiver_address', 'receiver_address', 'text', false),
  field('amount', 'amount', 'amount', false),
  field('operation', 'operation', 'operation'),
  field('block_hash', 'location.block_hash', 'hash'),
  field('block_height', 'location.block_height', 'integer'),
  field('tx_id', 'location.tx_id', 'hash'),
  field('tx_index', 'location.tx_index', 'integer'),
  field('vout', 'location.vout', 'integer', false),
  field('output', 'location.output', 'output', false),
  field('timestamp', 'location.timestamp', 'integer'),
] as const;

/** Optional column of flat tables: the position of the event in its transaction. */
export const EVENT_INDEX = field('event_index', 'event_index', 'integer', false);

/** Columns to read from the indexer's table `ledger`. The column `output` has the index of the output (vout). */
export const LEDGER_FIELDS: readonly Field[] = [
  field('rune_id', 'rune_id', 'text'),
  field('block_hash', 'block_hash', 'hash'),
  field('block_height', 'block_height', 'integer'),
  field('tx_index', 'tx_index', 'integer'),
  field('event_index', 'event_index', 'integer'),
  field('tx_id', 'tx_id', 'hash'),
  field('output', 'output', 'integer', false),
  field('address', 'address', 'text', false),
  field('receiver_address', 'receiver_address', 'text', false),
  field('amount', 'amount', 'units', false),
  field('operation', 'operation', 'operation'),
  field('timestamp', 'timestamp', 'integer'),
];

/**
 * Columns of ledger files from a node. In the first row of a transaction, `spent` has the outputs with runes that the transaction spends:
 * `txid:vout:address`, separated by commas. Other sources lack this column.
 */
export const NODE_LEDGER_FIELDS: readonly Field[] = [...LEDGER_FIELDS, field('spent', 'spent', 'spent', false)];

/** Columns that the indexer's table `runes` must have. */
export const RUNE_FIELDS = [
  field('id', 'id', 'text'),
  field('number', 'number', 'integer'),
  field('name', 'name', 'text'),
  field('spaced_name', 'spaced_name', 'text'),
  field('divisibility', 'divisibility', 'integer'),
] as const;

/**
 * Columns of the table `runes` that are read if the table has them. `tx_id` is empty for a rune that the protocol itself etched. `symbol`
 * is empty if the rune has no symbol, and a column of mint terms is empty if the rune does not have this term.
 */
export const RUNE_DETAILS = [
  field('block_hash', 'block_hash', 'hash', false),
  field('block_height', 'block_height', 'integer', false),
  field('tx_index', 'tx_index', 'integer', false),
  field('tx_id', 'tx_id', 'hashOrNone', false),
  field('premine', 'premine', 'units', false),
  field('symbol', 'symbol', 'text', false),
  field('turbo', 'turbo', 'flag', false),
  field('cenotaph', 'cenotaph', 'flag', false),
  field('terms_amount', 'terms_amount', 'units', false),
  field('terms_cap', 'terms_cap', 'count', false),
  field('terms_height_start', 'terms_height_start', 'count', false),
  field('terms_height_end', 'terms_height_end', 'count', false),
  field('terms_offset_start', 'terms_offset_start', 'count', false),
  field('terms_offset_end', 'terms_offset_end', 'count', false),
  field('timestamp', 'timestamp', 'integer', false),
] as const;
