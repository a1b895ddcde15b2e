/** Columns of runes tables. */
import { RUNE_DETAILS, RUNE_FIELDS } from '../contract/fields.ts';
import { columnsOf, type TableWith } from '../duckdb/table.ts';

/** Fields of the columns that a runes table of the input may have. */
export const FIELDS = [...RUNE_FIELDS, ...RUNE_DETAILS];

/**
 * Columns of the joined runes table, which has one row per rune. `premine` and terms are integers of up to 128 bits as text: cast them to
 * UHUGEINT. A term that the rune does not have is NULL, and a missing symbol is `¤`. If `is_complete` is false, any column after
 * `divisibility` may be NULL because no input has its value. `source` is the number of the file that has the rune, and NULL if several
 * files have the rune.
 */
export const RUNES = { ...columnsOf(FIELDS), is_complete: 'BOOLEAN', source: 'INTEGER' } as const;
export type Runes = TableWith<keyof typeof RUNES>;
