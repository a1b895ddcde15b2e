/**
 * Verifies published rows: the list of their files, and the bytes and rows of each file. Compares rows with pages by
 * the digests of blocks.
 */
import { join } from 'node:path';
import { rowsIndex } from '../contract/rowsSchemas.ts';
import { readRegularFile } from '../disk/regularFile.ts';
import { readFiles } from '../duckdb/readFilesSql.ts';
import { text } from '../duckdb/store.ts';
import type { Table } from '../duckdb/table.ts';
import type { StateTables } from '../engine/state/state.ts';
import { BuildError, messageOf } from '../errors.ts';
import { rowFilePath } from '../pages/filePaths.ts';
import { blocksOfRows, runesOfRows } from '../rows/blocksOfRows.ts';
import { rowsIndexFile } from '../rows/rowsFolder.ts';
import { contentOf, formFault, ledgerForm, RUNES, stampOf, type TableForm } from '../rows/rowsForm.ts';
import { SPENT } from './publishedChanges.ts';
import { differingRunes } from './publishedEtchings.ts';
import type { Verification } from './verification.ts';

export interface VerifiedRows {
  /** Paths of the files of rows. */
  readonly paths: readonly string[];
  /** Outputs that the rows spend. Undefined if the rows do not have spent outputs. */
  readonly spent: Table<typeof SPENT> | undefined;
}

/**
 * Compares rows with the digests of the blocks. The caller must have compared these digests with the pages. The digests
 * do not cover spent outputs: the caller must compare them if the mirror has outputs. The runes of the rows must be the
 * mirror's `etchings`.
 */
export async function verifyRows(verification: Verification, etchings: StateTables['runes']): Promise<VerifiedRows> {
  const { root, manifest, blocks, findings, own, progress, store } = verification;
  const name = manifest.rows?.index ?? '';
  try {
    const spent = await store.table('rows_spent', SPENT);
    const found = rowsIndex.parse(JSON.parse(readRegularFile(join(root, name)).toString('utf8')));
    const runesPaths = found.runes.map(({ first, last, sha256 }) => rowFilePath(first, last, sha256, true));
    const ownRunes: typeof found.runes = [];
    for (const [i, { first, last }] of found.runes.entries())
      ownRunes.push({ first, last, ...(await factsOf(runesPaths[i] ?? '', RUNES, verification)) });
    const runesFiles = runesPaths.map((path) => join(root, path));
    const wrong = differingRunes(etchings, runesFiles.length === 0 ? `${etchings} WHERE false` : readFiles('parquet', runesFiles));
    for (const { id } of await store.rows(`${wrong} ORDER BY id LIMIT 20`, { id: text }))
      findings.add(`${name}: its rune ${id} differs from the etching`);
    const files: (typeof found.files)[number][] = [];
    const expected = new Map(blocks.map((block) => [block.height, block]));
    let [last, leftOut] = [-1, 0];
    for (const [i, file] of found.files.entries()) {
      progress.show(i, found.files.length, 'files of rows');
      const path = rowFilePath(file.first, file.last, file.sha256);
      if (file.first <= last || file.last < file.first) findings.add(`${path} covers heights of another file`);
      last = file.last;
      const facts = await factsOf(path, ledgerForm(found.spent), verification);
      files.push({ first: file.first, last: file.last, ...facts });
      const outside = await store.number(
        `SELECT count(*) FILTER (NOT coalesce(block_height BETWEEN ${file.first} AND ${file.last}, false)) AS number FROM ${readFiles('parquet', [join(root, path)])}`,
      );
      if (outside > 0) findings.add(`${path} has ${outside} rows of other blocks`);
      leftOut += facts.rows;
      if (found.spent) await addSpent(path, spent, verification);
      const runes = await runesOfRows(join(root, path), runesFiles, store);
      for (const block of await blocksOfRows(join(root, path), runes, store)) {
        leftOut -= block.records;
        if (JSON.stringify(expected.get(block.height)) !== JSON.stringify(block))
          findings.add(`${path}: its rows of block ${block.height} are not the records of the pages`);
        expected.delete(block.height);
      }
      await store.run(`DROP TABLE ${runes}`);
    }
    for (const height of [...expected.keys()].slice(0, 1)) findings.add(`${name}: no file has the rows of block ${height}`);
    if (leftOut !== (manifest.left_out?.rows ?? 0))
      findings.add(`${name}: ${leftOut} rows are of unknown runes, but the manifest says ${manifest.left_out?.rows ?? 0}`);
    const { sources = [], tip } = manifest;
    const index = rowsIndexFile({ ...found, sources, tip, runes: ownRunes, files });
    if (index.path !== name || index.sha256 !== manifest.rows?.sha256)
      findings.add(`${name} is not the list that a build makes of these files`);
    own.file(name, index.content);
    const paths = [...runesPaths, ...files.map((file) => rowFilePath(file.first, file.last, file.sha256))];
    return { paths, spent: found.spent ? spent : undefined };
  } catch (error) {
    // A BuildError means a lack of memory or disk space, which is not a fault of the files.
    if (error instanceof BuildError) throw error;
    findings.add(`${name}: ${messageOf(error).split('\n')[0]}`);
    return { paths: [], spent: undefined };
  } finally {
    progress.end();
  }
}

/**
 * Adds the spent outputs of a file of rows to the table. Adds a finding for a transaction that sends runes but spends no
 * output.
 */
async function addSpent(path: string, spent: Table<typeof SPENT>, { root, findings, store }: Verification): Promise<void> {
  const rows = readFiles('parquet', [join(root, path)]);
  await store.run(`INSERT INTO ${spent}
    SELECT block_height, split_part(one, ':', 1) || ':' || split_part(one, ':', 2), nullif(split_part(one, ':', 3), '')
    FROM (SELECT block_height, unnest(string_split(spent, ',')) AS one FROM ${rows} WHERE spent IS NOT NULL)`);
  const wrong = await store.number(
    `SELECT count(*) AS number FROM (SELECT tx_id FROM ${rows} GROUP BY block_height, tx_id
       HAVING bool_or(operation = 'send') AND bool_and(spent IS NULL))`,
  );
  if (wrong > 0) findings.add(`${path}: ${wrong} transactions send runes, but spend no output`);
}

/** Reads a file of rows or runes. Rejects if the file is missing, or does not have the columns and order of `form`. */
async function factsOf(path: string, form: TableForm, { root, store }: Verification) {
  const stamp = await stampOf(join(root, path));
  if (stamp === undefined) throw new Error(`${path} is missing`);
  const fault = await formFault(join(root, path), form, store);
  if (fault !== undefined) throw new Error(`${path}: ${fault}`);
  const { rows, digest } = await contentOf(join(root, path), form, store);
  return { rows, bytes: stamp.bytes, sha256: stamp.sha256, digest };
}
