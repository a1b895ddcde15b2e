/**
 * Etchings, as documents. The key is the ordinal of a rune, and the only value is the JSON of the etching. A level has
 * the etchings that changed in its blocks, as of its last block. So if several levels have an etching, the newest level
 * is right.
 */
import { runeKey } from './balanceTables.ts';
import { findDocuments } from './documents.ts';
import { ArchiveError } from './error.ts';
import type { EtchingTables } from './listTables.ts';
import type { Archive } from './reader.ts';

/** Reads the etchings with ordinals `from` to `to - 1`, as JSON. Rejects with an ArchiveError if one is unreadable. */
export async function readEtchings(archive: Archive, { levels }: EtchingTables, from: number, to: number): Promise<string[]> {
  const keys = Array.from({ length: to - from }, (_, i) => runeKey(from + i));
  const found = await Promise.all(levels.map((level) => findDocuments(archive, level, keys)));
  return keys.map((key, i) => {
    const [json] = found.flatMap((documents) => documents[i] ?? []).slice(-1);
    if (json === undefined) throw new ArchiveError(`the archive does not have the etching ${key}`);
    return json;
  });
}
