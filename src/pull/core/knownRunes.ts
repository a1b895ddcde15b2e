/** Reads the table of runes of a pulled folder, as far as the ledger needs it. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { InputError, messageOf } from '../../errors.ts';
import { runeId } from '../../runes/ledger.ts';
import type { Terms } from '../../runes/message.ts';
import { nameNumber } from '../../runes/name.ts';
import { int, nullable, type Store, text } from '../../store/duckdb.ts';
import { readFiles } from '../../store/files.ts';
import type { KnownRune } from '../../unspent/diskLedger.ts';
import { checkDigest, RUNES_FILE } from '../pulledFiles.ts';

/** Returns the runes, ascending by number. Throws an InputError when the table is damaged. */
export async function knownRunes(folder: string, store: Store): Promise<KnownRune[]> {
  const path = join(folder, RUNES_FILE);
  if (!existsSync(path)) return [];
  try {
    await checkDigest(path);
    const terms = ['amount', 'cap', 'height_start', 'height_end', 'offset_start', 'offset_end'];
    const rows = await store.rows(
      `SELECT id, name, block_height, ${terms.map((term) => `terms_${term}::VARCHAR AS ${term}`).join(', ')}
       FROM ${readFiles('parquet', [path])} ORDER BY number`,
      {
        id: text,
        name: text,
        block_height: int,
        amount: nullable(text),
        cap: nullable(text),
        height_start: nullable(text),
        height_end: nullable(text),
        offset_start: nullable(text),
        offset_end: nullable(text),
      },
    );
    return rows.map(({ id, name, block_height, ...given }) => {
      const [block = 0, tx = 0] = id.split(':').map(Number);
      return { id: runeId(block, tx), name: nameNumber(name), height: block_height, terms: termsOf(given) };
    });
  } catch (error) {
    throw new InputError(`${path} cannot be read: ${messageOf(error)}`, [
      `Restore it from a copy, or remove ${folder}: the next pull reads all blocks again.`,
    ]);
  }
}

/** The columns of a rune's terms, as text. */
type TermsText = Readonly<Record<'amount' | 'cap' | 'height_start' | 'height_end' | 'offset_start' | 'offset_end', string | undefined>>;

/** A rune whose terms are all empty cannot be minted, as one without terms. */
function termsOf(given: TermsText): Terms | undefined {
  if (Object.values(given).every((value) => value === undefined)) return undefined;
  const value = (text: string | undefined) => (text === undefined ? undefined : BigInt(text));
  return {
    amount: value(given.amount),
    cap: value(given.cap),
    heightStart: value(given.height_start),
    heightEnd: value(given.height_end),
    offsetStart: value(given.offset_start),
    offsetEnd: value(given.offset_end),
  };
}
