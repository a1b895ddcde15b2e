/**
 * Writes the files by which runes are found from the letters of their names (lists/searchFiles.ts). They have the etchings,
 * or in a mirror without them the runes of the records.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { int, nullable, type Store, text } from '../duckdb/store.ts';
import type { FileSink } from '../engine/render/pageFiles.ts';
import type { Etchings } from '../engine/state/etchings.ts';
import type { StateTables } from '../engine/state/state.ts';
import { emptyIfMissing } from '../errors.ts';
import { SEARCH_FOLDER, searchPath } from '../pages/filePaths.ts';
import { yieldNow } from '../yieldNow.ts';
import { newFirstLetters } from './etchings.sql.ts';
import { FIRST_LETTERS, type NamedRune, searchFiles } from './searchFiles.ts';

/**
 * Writes the files whose runes may have changed since the last build, whose etchings are `before`. Returns the paths of
 * files in the output `root` that are no longer needed.
 */
export async function writeSearchFiles(
  root: string,
  before: Etchings | undefined,
  now: Etchings | undefined,
  blockRunes: StateTables['blockRunes'],
  sink: Pick<FileSink, 'file'>,
  store: Store,
): Promise<string[]> {
  const isKnown = before !== undefined && now !== undefined;
  const letters = isKnown ? await newFirstLetters(FIRST_LETTERS, before, now, store) : undefined;
  if (letters?.length === 0) return [];
  const written = new Set<string>();
  for (const [path, content] of searchFiles(await readRunes(now, letters, blockRunes, store))) {
    sink.file(path, Buffer.from(content));
    written.add(path);
    await yieldNow();
  }
  const tops = letters?.map(searchPath).map((path) => path.slice(0, -'.json'.length));
  const isRead = (path: string) => tops === undefined || tops.some((top) => path === `${top}.json` || path.startsWith(`${top}/`));
  return presentFiles(root).filter((path) => isRead(path) && !written.has(path));
}

/** Reads the runes of a mirror with or without etchings: all, or those whose names begin with one of `letters`. */
async function readRunes(
  etchings: Etchings | undefined,
  letters: readonly string[] | undefined,
  blockRunes: StateTables['blockRunes'],
  store: Store,
): Promise<NamedRune[]> {
  const columns = { id: text, number: int, name: text, spaced_name: text, symbol: nullable(text) };
  const first = letters?.map((one) => `'${one}'`).join(', ');
  const isWanted = first === undefined ? '' : `WHERE left(name, ${FIRST_LETTERS}) IN (${first})`;
  if (etchings !== undefined)
    return store.rows(
      `SELECT id, number, name, spaced_name, symbol FROM ${etchings.table} JOIN ${etchings.runes} USING (id) ${isWanted}`,
      columns,
    );
  return store.rows(
    `SELECT rune_id AS id, min(number) AS number, min(name) AS name, min(spaced_name) AS spaced_name, NULL::VARCHAR AS symbol
     FROM ${blockRunes} GROUP BY rune_id`,
    columns,
  );
}

/** Lists everything in the folder of these files. Does not follow links. */
function presentFiles(root: string, folder = SEARCH_FOLDER): string[] {
  return emptyIfMissing(() => readdirSync(join(root, folder), { withFileTypes: true })).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    return entry.isDirectory() ? presentFiles(root, path) : [path];
  });
}
