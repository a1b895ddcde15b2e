/** Reads the table of runes in the folder `pulled`, for the ledger. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Store, text } from '../../duckdb/store.ts';
import { BuildError, InputError, messageOf } from '../../errors.ts';
import { countCrossing, type WorkLimits } from '../../limits.ts';
import { nameNumber } from '../../runes/name.ts';
import { runeId } from '../../runes/runeId.ts';
import type { Terms } from '../../runes/runestone.ts';
import type { KnownRune } from '../../unspent/diskLedger.ts';
import { checkDigest, NEWEST_RUNES_FILE, RUNES_FILE, readRunes } from '../pulledFiles.ts';

const TERMS = ['amount', 'cap', 'height_start', 'height_end', 'offset_start', 'offset_end'];

/** Returns the runes, ascending by number, or none if there is no table. Throws an InputError for a damaged table. */
export async function knownRunes(folder: string, limits: Pick<WorkLimits, 'runesPerText'>, store: Store): Promise<KnownRune[]> {
  const paths = [RUNES_FILE, NEWEST_RUNES_FILE].map((name) => join(folder, name)).filter((path) => existsSync(path));
  if (!paths.includes(join(folder, RUNES_FILE))) return [];
  let path = '';
  try {
    for (path of paths) await checkDigest(path);
    const columns = ['id', 'name', 'block_height', ...TERMS.map((term) => `terms_${term}`)];
    const texts = await store.rows(
      `SELECT string_agg(concat_ws(' ', ${columns.map((column) => `coalesce(${column}::VARCHAR, '')`).join(', ')}), chr(10) ORDER BY number) AS runes
       FROM (${readRunes(folder)}) GROUP BY number // ${limits.runesPerText} ORDER BY number // ${limits.runesPerText}`,
      { runes: text },
    );
    if (texts.length > 1) countCrossing('runesPerText');
    return texts.flatMap(({ runes }) => runes.split('\n').map(parseRune));
  } catch (error) {
    // A BuildError means that memory or open files are used up, not that the table is damaged.
    if (error instanceof BuildError) throw error;
    throw new InputError(`${path} cannot be read: ${messageOf(error)}`, [
      `Restore it from a copy, or remove ${folder}: the next pull reads all blocks again.`,
    ]);
  }
}

/** Parses a line with id, name, height and terms. */
function parseRune(line: string): KnownRune {
  const [id = '', name = '', height, ...terms] = line.split(' ');
  const [block = 0, tx = 0] = id.split(':').map(Number);
  return { id: runeId(block, tx), name: nameNumber(name), height: Number(height), terms: termsOf(terms) };
}

/** Returns undefined if all terms are empty: such a rune cannot be minted, so it equals a rune without terms. */
function termsOf(texts: readonly string[]): Terms | undefined {
  if (texts.every((text) => text === '')) return undefined;
  const [amount, cap, heightStart, heightEnd, offsetStart, offsetEnd] = texts.map((text) => (text === '' ? undefined : BigInt(text)));
  return { amount, cap, heightStart, heightEnd, offsetStart, offsetEnd };
}
