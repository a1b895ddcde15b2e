/** Writes the search files (searchFiles.ts), which have all etchings or, without etchings, all runes with records. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { int, nullable, type Store, text } from '../duckdb/store.ts';
import { columns } from '../duckdb/table.ts';
import type { FileSink } from '../engine/render/pageFiles.ts';
import type { Etchings } from '../engine/state/knownEtchings.ts';
import type { StateTables } from '../engine/state/state.ts';
import { emptyIfMissing } from '../errors.ts';
import { SEARCH_FOLDER, searchPath } from '../pages/filePaths.ts';
import { yieldNow } from '../yieldNow.ts';
import { changedFirstLetters, type EtchingChange } from './etchings.sql.ts';
import { FIRST_LETTERS, type NamedRune, searchFiles } from './searchFiles.ts';

const NAMED = columns('part BIGINT, id VARCHAR, number BIGINT, name VARCHAR, spaced_name VARCHAR, symbol VARCHAR');

/** Writes the files whose runes may have changed. Returns the paths of files in the output `root` that are no longer needed. */
export async function writeSearchFiles(
  root: string,
  change: EtchingChange,
  runeCounts: StateTables['runeCounts'],
  sink: Pick<FileSink, 'file'>,
  store: Store,
): Promise<string[]> {
  const letters = await changedFirstLetters(FIRST_LETTERS, change, store);
  if (letters?.length === 0) return [];
  const written = new Set<string>();
  for await (const runes of groupsOf(change.now, letters, runeCounts, store)) {
    for (const [path, content] of searchFiles(runes)) {
      sink.file(path, Buffer.from(content));
      written.add(path);
      await yieldNow();
    }
  }
  const tops = letters?.map(searchPath).map((path) => path.slice(0, -'.json'.length));
  const isRead = (path: string) => tops === undefined || tops.some((top) => path === `${top}.json` || path.startsWith(`${top}/`));
  return presentFiles(root).filter((path) => isRead(path) && !written.has(path));
}

/**
 * Yields the runes in groups with the same first letters: only the groups of `letters`, or else all. Only one group is in memory, because a
 * mirror of all history has a quarter of a million runes.
 */
async function* groupsOf(
  etchings: Etchings | undefined,
  letters: readonly string[] | undefined,
  runeCounts: StateTables['runeCounts'],
  store: Store,
): AsyncGenerator<NamedRune[]> {
  const first = `left(name, ${FIRST_LETTERS})`;
  const isWanted = letters === undefined ? '' : `AND ${first} IN (${letters.map((one) => `'${one}'`).join(', ')})`;
  const runes =
    etchings === undefined
      ? `SELECT rune_id AS id, min(number) AS number, min(name) AS name, min(spaced_name) AS spaced_name, NULL::VARCHAR AS symbol
         FROM ${runeCounts} GROUP BY rune_id`
      : `SELECT id, number, name, spaced_name, symbol FROM ${etchings.runes} WHERE block_height <= ${etchings.tip} ${isWanted}`;
  const numbered = `SELECT dense_rank() OVER (ORDER BY ${first}) AS part, * FROM (${runes})`;
  const named = await store.table('named', NAMED, `FROM (${numbered}) ORDER BY part`);
  const parts = await store.number(`SELECT coalesce(max(part), 0) AS number FROM ${named}`);
  const fields = { id: text, number: int, name: text, spaced_name: text, symbol: nullable(text) };
  for (let part = 1; part <= parts; part += 1) yield await store.rows(`SELECT * EXCLUDE (part) FROM ${named} WHERE part = ${part}`, fields);
  await store.run(`DROP TABLE ${named}`);
}

/** Lists all search files of the output. Does not follow links. */
function presentFiles(root: string, folder = SEARCH_FOLDER): string[] {
  return emptyIfMissing(() => readdirSync(join(root, folder), { withFileTypes: true })).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    return entry.isDirectory() ? presentFiles(root, path) : [path];
  });
}
