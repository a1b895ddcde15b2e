/** Reads the runes in the folder `pulled`, for the ledger. */
import { join } from 'node:path';
import { type FolderIndex, rowsName } from '../../contract/rowsSchemas.ts';
import { readFiles } from '../../duckdb/readFilesSql.ts';
import { type Store, text } from '../../duckdb/store.ts';
import { BuildError, messageOf } from '../../errors.ts';
import { countCrossing, type WorkLimits } from '../../limits.ts';
import { checkFile, lost } from '../../rows/rowsFolder.ts';
import { nameNumber } from '../../runes/name.ts';
import { runeId } from '../../runes/runeId.ts';
import type { Terms } from '../../runes/runestone.ts';
import type { KnownRune } from '../../unspent/diskLedger.ts';

const TERMS = ['amount', 'cap', 'height_start', 'height_end', 'offset_start', 'offset_end'];

/** Returns the runes of an index, ascending by number. Throws an InputError for a damaged file. */
export async function knownRunes(
  folder: string,
  { runes: files }: Pick<FolderIndex, 'runes'>,
  limits: Pick<WorkLimits, 'runesPerText'>,
  store: Store,
): Promise<KnownRune[]> {
  if (files.length === 0) return [];
  for (const file of files) await checkFile(folder, 'runes', file);
  const paths = files.map((file) => join(folder, rowsName('runes', file)));
  try {
    const columns = ['id', 'name', 'block_height', ...TERMS.map((term) => `terms_${term}`)];
    const texts = await store.rows(
      `SELECT string_agg(concat_ws(' ', ${columns.map((column) => `coalesce(${column}::VARCHAR, '')`).join(', ')}), chr(10) ORDER BY number) AS runes
       FROM ${readFiles('parquet', paths)} GROUP BY number // ${limits.runesPerText} ORDER BY number // ${limits.runesPerText}`,
      { runes: text },
    );
    if (texts.length > 1) countCrossing('runesPerText');
    return texts.flatMap(({ runes }) => runes.split('\n').map(parseRune));
  } catch (error) {
    // A BuildError means that memory or open files are used up, not that a file is damaged.
    if (error instanceof BuildError) throw error;
    throw lost(`the runes in ${folder} cannot be read: ${messageOf(error)}`, folder);
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
