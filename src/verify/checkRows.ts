/**
 * Verifies published rows: the list of their files, and the bytes and rows of each file. Compares rows with pages by the digests of blocks.
 */
import { join } from 'node:path';
import { type Kind, type RowFile, rowsIndex, rowsName } from '../contract/rowsSchemas.ts';
import { readRegularFile } from '../disk/regularFile.ts';
import { portionsOf } from '../duckdb/blockRanges.ts';
import { readFiles } from '../duckdb/readFilesSql.ts';
import { int, text } from '../duckdb/store.ts';
import type { Table } from '../duckdb/table.ts';
import type { StateTables } from '../engine/state/state.ts';
import { BuildError, messageOf } from '../errors.ts';
import { ROWS_FOLDER } from '../pages/filePaths.ts';
import { blocksOfRows, runesOfRows } from '../rows/blocksOfRows.ts';
import { rowsIndexFile } from '../rows/rowsFolder.ts';
import { entriesOf, type FileOfRows, ledgerForm, RUNES, type TableForm } from '../rows/rowsForm.ts';
import { SPENT } from './publishedChanges.ts';
import { differingRunes } from './publishedEtchings.ts';
import type { Claims } from './spentOutputs.ts';
import type { Verification } from './verification.ts';

/**
 * Compares rows with the digests of the blocks. The caller must have compared these digests with the pages. The digests do not cover spent
 * outputs: the caller must compare them if the mirror has outputs. The runes of the rows must be the mirror's `etchings`. Returns what the
 * rows say about spent outputs; nothing if they do not have these.
 */
export async function verifyRows(verification: Verification, etchings: StateTables['runes']): Promise<Claims[]> {
  const { root, manifest, blocks, limits, findings, own, progress, store } = verification;
  const name = manifest.rows?.index ?? '';
  try {
    const spent = await store.table('rows_spent', SPENT);
    const found = rowsIndex.parse(JSON.parse(readRegularFile(join(root, name)).toString('utf8')));
    const namedOf = (kind: Kind) => found[kind].map((file) => ({ ...file, path: `${ROWS_FOLDER}/${rowsName(kind, file)}` }));
    const [named, namedRunes] = [namedOf('files'), namedOf('runes')];
    const runes = await readEntries(namedRunes, RUNES, verification);
    if (runes.length < namedRunes.length) return [];
    const runesFiles = namedRunes.map(({ path }) => join(root, path));
    const differing = differingRunes(etchings, runesFiles.length === 0 ? `${etchings} WHERE false` : readFiles('parquet', runesFiles));
    for (const { id } of await store.rows(`${differing} ORDER BY id LIMIT 20`, { id: text }))
      findings.add(`${name}: its rune ${id} differs from the etching`);
    const expected = new Map(blocks.map((block) => [block.height, block]));
    let [last, leftOut] = [-1, 0];
    for (const file of named) {
      if (file.first <= last || file.last < file.first) findings.add(`${file.path} covers heights of another file`);
      last = file.last;
    }
    const files: RowFile[] = [];
    const counted = named.map((file) => ({ ...file, records: file.rows }));
    for (const portion of portionsOf(counted, limits.listedAtOnce)) {
      progress.show(files.length, named.length, 'files of rows');
      const entries = await readEntries(portion, ledgerForm(found.spent), verification);
      if (entries.length === 0) continue;
      for (const { rows } of entries) leftOut += rows;
      await checkFiles(entries, found.spent ? spent : undefined, verification);
      const paths = entries.map(({ path }) => join(root, path));
      const used = await runesOfRows(paths, runesFiles, store);
      for (const block of await blocksOfRows(paths, used, (one) => expected.get(one.height)?.records === one.records, limits, store)) {
        leftOut -= block.records;
        const path = entries.find((file) => file.first <= block.height && block.height <= file.last)?.path ?? name;
        if (JSON.stringify(expected.get(block.height)) !== JSON.stringify(block))
          findings.add(`${path}: its rows of block ${block.height} are not the records of the pages`);
        expected.delete(block.height);
      }
      await store.run(`DROP TABLE ${used}`);
      for (const { path, ...entry } of entries) files.push(entry);
    }
    if (files.length < named.length) return [];
    for (const height of [...expected.keys()].slice(0, 1)) findings.add(`${name}: no file has the rows of block ${height}`);
    if (leftOut !== (manifest.left_out?.rows ?? 0))
      findings.add(`${name}: ${leftOut} rows are of unknown runes, but the manifest says ${manifest.left_out?.rows ?? 0}`);
    const { sources = [], tip } = manifest;
    const index = rowsIndexFile({ ...found, sources, tip, runes: runes.map(({ path, ...entry }) => entry), files });
    if (index.path !== name || index.sha256 !== manifest.rows?.sha256)
      findings.add(`${name} is not the list that a build makes of these files`);
    own.file(name, index.content);
    const wrong = 'the files of rows are wrong about whether, when or by whom the output';
    own.add([...namedRunes, ...named].map(({ path }) => path));
    return found.spent ? [{ rows: `FROM ${spent}`, hasAddresses: true, isDue: 'true', wrong }] : [];
  } catch (error) {
    // A BuildError means a lack of memory or disk space, which is not a fault of the files.
    if (error instanceof BuildError) throw error;
    findings.add(`${name}: ${messageOf(error).split('\n')[0]}`);
    return [];
  } finally {
    progress.end();
  }
}

/**
 * Adds a finding for each file that has rows of blocks outside of its heights, or transactions that send runes but spend no output. Adds
 * the spent outputs to the table `spent`, if the rows have them.
 */
async function checkFiles(
  files: readonly FileOfRows[],
  spent: Table<typeof SPENT> | undefined,
  { root, findings, store }: Verification,
): Promise<void> {
  const paths = files.map(({ path }) => join(root, path));
  const rows = readFiles('parquet', paths);
  const report = async (wrong: string, say: (count: number) => string) => {
    const counts = `SELECT file, count(*) AS number FROM (${wrong}) GROUP BY file ORDER BY file`;
    for (const { file, number } of await store.rows(counts, { file: int, number: int })) findings.add(`${files[file]?.path}${say(number)}`);
  };
  const ranges = files.map(({ first, last }, i) => `(${i}, ${first}, ${last})`).join(', ');
  await report(
    `SELECT file FROM (SELECT file_index AS file, block_height FROM ${rows}) JOIN (VALUES ${ranges}) AS ranges(file, first, last) USING (file)
     WHERE NOT coalesce(block_height BETWEEN first AND last, false)`,
    (count) => ` has ${count} rows of other blocks`,
  );
  if (spent === undefined) return;
  await store.run(`INSERT INTO ${spent}
    SELECT block_height, split_part(one, ':', 1) || ':' || split_part(one, ':', 2), nullif(split_part(one, ':', 3), '')
    FROM (SELECT block_height, unnest(string_split(spent, ',')) AS one FROM ${rows} WHERE spent IS NOT NULL)`);
  await report(
    `SELECT file_index AS file FROM ${rows} GROUP BY file_index, block_height, tx_id HAVING bool_or(operation = 'send') AND bool_and(spent IS NULL)`,
    (count) => `: ${count} transactions send runes, but spend no output`,
  );
}

/**
 * Reads files of rows or runes. Returns their entries, with their paths. Adds a finding for each file that is missing or damaged, or does
 * not have the columns and order of `form` and the number of rows that the index says, and leaves it out.
 */
async function readEntries(files: readonly (RowFile & FileOfRows)[], form: TableForm, { root, findings, store }: Verification) {
  const inRoot = files.map((file) => ({ ...file, path: join(root, file.path) }));
  const entries = await entriesOf(inRoot, form, store);
  return files.flatMap(({ path, rows }, i) => {
    const entry = entries[i];
    if (typeof entry === 'object' && entry.rows === rows) return [{ ...entry, path }];
    findings.add(`${path}: ${typeof entry === 'object' ? `it has ${entry.rows} rows, but the index says ${rows}` : entry}`);
    return [];
  });
}
