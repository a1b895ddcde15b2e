/** Reads the runes in the folder `pulled`, for the ledger. */
import { join } from 'node:path';
import { type FolderIndex, rowsName } from '../../contract/rowsSchemas.ts';
import { readFiles } from '../../duckdb/readFilesSql.ts';
import type { Store } from '../../duckdb/store.ts';
import { BuildError, messageOf } from '../../errors.ts';
import { checkFile, lost } from '../../rows/rowsFolder.ts';
import { nameNumber } from '../../runes/name.ts';
import type { KnownRune } from '../../unspent/diskLedger.ts';
import { idOf } from './replayRows.ts';

const TERMS = ['amount', 'cap', 'height_start', 'height_end', 'offset_start', 'offset_end'].map((term) => `terms_${term}::VARCHAR`);

/** Yields the runes of an index, ascending by number. Throws an InputError for a damaged file. */
export async function* knownRunes(folder: string, { runes: files }: Pick<FolderIndex, 'runes'>, store: Store): AsyncGenerator<KnownRune> {
  if (files.length === 0) return;
  for (const file of files) await checkFile(folder, 'runes', file);
  const paths = files.map((file) => join(folder, rowsName('runes', file)));
  try {
    const rows = `SELECT id, name, block_height, ${TERMS.join(', ')} FROM ${readFiles('parquet', paths)} ORDER BY number`;
    for await (const chunk of store.stream(rows))
      for (const [id, name, height, ...cells] of chunk.getRows()) {
        const terms = cells.slice(0, TERMS.length).map((cell) => (cell === null ? undefined : BigInt(String(cell))));
        const [amount, cap, heightStart, heightEnd, offsetStart, offsetEnd] = terms;
        // A rune whose terms are all empty cannot be minted, so it equals a rune without terms.
        const hasTerms = terms.some((term) => term !== undefined);
        yield {
          ...{ id: idOf(String(id)), name: nameNumber(String(name)), height: Number(height) },
          terms: hasTerms ? { amount, cap, heightStart, heightEnd, offsetStart, offsetEnd } : undefined,
        };
      }
  } catch (error) {
    // A BuildError means that memory or open files are used up, not that a file is damaged.
    if (error instanceof BuildError) throw error;
    throw lost(`the runes in ${folder} cannot be read: ${messageOf(error)}`, folder);
  }
}
