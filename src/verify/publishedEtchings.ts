/**
 * Reads the etchings of an archive as the runes of a build. Pages do not have all values of an etching. So its newest document is believed,
 * and compared with the etching's record and with the published rows.
 */
import { type Store, text } from '../duckdb/store.ts';
import type { Table, TableWith } from '../duckdb/table.ts';
import { documentsOf, type StoredArchive } from '../engine/archive/storedArchive.ts';
import type { StateTables } from '../engine/state/state.ts';
import { messageOf } from '../errors.ts';
import { ArchiveError } from '../format/archiveError.ts';
import type { Records } from '../input/canonicalRecordSql.ts';
import { RUNES } from '../input/rawSource.ts';
import { parseFacts } from '../lists/etchings.ts';
import { isFromNode, type Verification } from './verification.ts';

/** Columns of runes that no document has. */
const UNKNOWN: Readonly<Record<string, string>> = { cenotaph: 'NULL::BOOLEAN', is_complete: 'true', source: 'NULL::INTEGER' };
const KNOWN = Object.keys(RUNES).filter((name) => UNKNOWN[name] === undefined);

/** Returns a table of the newest version of each etching. Throws an ArchiveError for damage. */
export async function publishedRunes(archive: StoredArchive, store: Store): Promise<Table<typeof RUNES>> {
  const known = Object.fromEntries(KNOWN.map((name) => [name, 'VARCHAR' as const]));
  const texts = await store.append('etching_texts', { ...known, document: 'VARCHAR', level: 'INTEGER' }, etchingsIn(archive));
  const cells = Object.entries(RUNES).map(([name, type]) => {
    const cell = UNKNOWN[name] ?? (name.startsWith('terms_') ? `nullif("${name}", '')` : `"${name}"`);
    return `(${cell})::${type} AS "${name}"`;
  });
  const newest = `SELECT document, max(level) AS level FROM ${texts} GROUP BY document`;
  return store.table('published_runes', RUNES, `SELECT ${cells.join(', ')} FROM ${texts} SEMI JOIN (${newest}) USING (document, level)`);
}

/** Yields the rows of all versions of etchings: the columns KNOWN, the key of the document, and the index of the level. */
function* etchingsIn(archive: StoredArchive): Generator<(string | number)[]> {
  for (const [i, level] of (archive.root.lists?.etchings?.levels ?? []).entries())
    for (const { key, values } of documentsOf(archive, level)) {
      const [facts = '', ...others] = values;
      if (others.length > 0) throw new ArchiveError(`the etching ${key} has ${values.length} values instead of one`);
      try {
        const cells: Readonly<Record<string, unknown>> = { ...parseFacts(facts) };
        yield [...KNOWN.map((name) => String(cells[name] ?? '')), key, i];
      } catch (error) {
        throw new ArchiveError(`the etching ${key}: ${messageOf(error)}`);
      }
    }
}

/** Compares etchings with the records of the blocks. */
export async function checkEtchings(
  records: Records,
  { runes, blocks, runeCounts }: Pick<StateTables, 'runes' | 'blocks' | 'runeCounts'>,
  { findings, manifest, store }: Verification,
): Promise<void> {
  const report = async (ids: string, what: (id: string) => string) => {
    for (const { id } of await store.rows(`SELECT id FROM (${ids}) ORDER BY id LIMIT 20`, { id: text })) findings.add(what(id));
  };
  await report(
    `SELECT DISTINCT rune_id AS id FROM ${runeCounts} ANTI JOIN ${runes} ON id = rune_id`,
    (id) => `the rune ${id} has records but no etching`,
  );
  if (!isFromNode(manifest)) return;
  const place = (names: string) => `(${names}, block_hash, block_height, tx_id, tx_index, "timestamp")`;
  // Rune 1:0 has no record, because the protocol itself etched it.
  await report(
    `SELECT r.id FROM (SELECT id, ${place('number, name, spaced_name')} AS place FROM ${runes} SEMI JOIN ${blocks} USING (block_height)) AS r
       LEFT JOIN (SELECT rune_id AS id, ${place('rune_number, rune_name, rune_spaced_name')} AS place FROM ${records} WHERE operation = 'etching') AS e USING (id)
     WHERE r.id <> '1:0' AND r.place::VARCHAR IS DISTINCT FROM e.place::VARCHAR`,
    (id) => `the etching ${id} does not match its record`,
  );
}

/** Returns SQL that selects the ids of runes whose published row (`rows`) differs from their etching. */
export const differingRunes = (runes: TableWith<keyof typeof RUNES>, rows: string): string => {
  const cells = KNOWN.map((name) => `"${name}"::VARCHAR AS "${name}"`).join(', ');
  return `SELECT id FROM (SELECT ${cells} FROM ${runes} EXCEPT SELECT ${cells} FROM ${rows})`;
};
