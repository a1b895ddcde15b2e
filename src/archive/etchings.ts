/**
 * The etchings of an archive, as documents: the key is the ordinal of a rune in the order of etchings, the only value its
 * JSON. A level has the etchings that changed in its blocks, as they are after the last of these. So of several levels
 * that have an etching, the newest is right.
 */
import { runeKey } from './balanceTables.ts';
import { findDocuments } from './documents.ts';
import { ArchiveError } from './error.ts';
import type { EtchingTables } from './listTables.ts';
import type { Archive } from './reader.ts';

/** Reads the JSON of the etchings `from` to `to - 1`. Rejects with an ArchiveError when one is missing or damaged. */
export async function readEtchings(archive: Archive, { levels }: EtchingTables, from: number, to: number): Promise<string[]> {
  const keys = Array.from({ length: to - from }, (_, i) => runeKey(from + i));
  const found = await Promise.all(levels.map((level) => findDocuments(archive, level, keys)));
  return keys.map((key, i) => {
    const [json] = found.flatMap((documents) => documents[i] ?? []).slice(-1);
    if (json === undefined) throw new ArchiveError(`the archive does not have the etching ${key}`);
    return json;
  });
}
