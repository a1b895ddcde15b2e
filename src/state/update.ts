/**
 * Updates the state's tables with the input that was read and the blocks that were written. Runs between `begin` and
 * `commit` of a State.
 */
import type { Loaded } from '../input/load.ts';
import type { Layout } from '../pages/site.ts';
import type { BatchBlock } from '../render/servedOrder.ts';
import { countWritten } from '../stats/counting.ts';
import { int, literal, type Store } from '../store/duckdb.ts';
import { TABLES } from '../store/tables.ts';
import type { WrittenBlock } from '../write/batchWriter.ts';

/** A block whose pages this build wrote. */
export interface NewBlock extends Pick<BatchBlock, 'hash' | 'records' | 'transactions' | 'operations' | 'digest'>, WrittenBlock {
  /** Digest of the outputs that the block spends; empty if the input does not say. */
  readonly spentDigest: string;
}

/** The blocks that changed in a build. */
export interface BlockChanges {
  /** Heights of the blocks that were written or removed. */
  readonly heights: readonly number[];
  readonly written: number;
  readonly gone: number;
}

/**
 * Replaces the rows of written blocks, and removes the rows of blocks that no input has any more. Creates the relations
 * that store/tables.ts says this file makes.
 */
export async function updateBlocks(written: Iterable<NewBlock>, layout: Layout, store: Store): Promise<BlockChanges> {
  const rows = [...written].map((b) => [
    ...[b.height, b.hash, b.records, b.transactions, b.operations.join(), b.digest, b.spentDigest, b.files, b.bytes],
    b.spooled?.bytes ?? 0,
  ]);
  await store.append('written', TABLES.written.columns, rows);
  const isReplaced = 'block_height IN (SELECT block_height FROM replaced)';
  await store.run(`CREATE TEMP TABLE replaced AS SELECT block_height FROM written
      UNION SELECT block_height FROM affected WHERE block_height NOT IN (SELECT block_height FROM blocks);
    CREATE TEMP TABLE old_blocks AS SELECT * FROM state.blocks WHERE ${isReplaced};
    CREATE TEMP TABLE old_transactions AS SELECT * FROM state.transactions WHERE ${isReplaced};
    DELETE FROM state.blocks WHERE ${isReplaced};
    DELETE FROM state.transactions WHERE ${isReplaced};
    DELETE FROM state.block_runes WHERE ${isReplaced}`);
  await countWritten(store);
  await store.run(`INSERT INTO state.blocks SELECT written.*, "timestamp" FROM written JOIN times USING (block_height);
    INSERT INTO state.block_runes SELECT * EXCLUDE ("timestamp") FROM counted;
    CREATE TEMP VIEW placed_transactions AS SELECT tx_id, block_height, records,
        -- The last transaction of a block is served first.
        (sum(records) OVER (PARTITION BY block_height ORDER BY tx_index DESC) - records)::BIGINT AS first
      FROM transactions WHERE ${isReplaced}`);
  // An archive has a table of all transactions, so the state needs none.
  if (layout === 'files') await store.run('INSERT INTO state.transactions SELECT * FROM placed_transactions');
  const replaced = await store.rows('SELECT block_height FROM replaced ORDER BY block_height', { block_height: int });
  const { gone } = await store.row('SELECT count(*) AS gone FROM old_blocks WHERE block_height NOT IN (SELECT block_height FROM written)', {
    gone: int,
  });
  return { heights: replaced.map((row) => row.block_height), written: rows.length, gone };
}

/** SQL of the last block: the highest of the state, or one without records that the input says was read. */
function tipOf({ tip }: Pick<Loaded, 'tip'>): string {
  const read = tip === undefined ? '' : `UNION ALL SELECT ${tip.height}, ${literal(tip.hash)}, false`;
  // The records of a block decide about its hash.
  return `SELECT block_height, block_hash FROM (SELECT block_height, block_hash, true AS has_records FROM state.blocks ${read})
    ORDER BY block_height DESC, has_records DESC LIMIT 1`;
}

/** Updates the tables of input files, of their blocks and of runes. Call it after `updateBlocks`. */
export async function updateInputs(loaded: Loaded, store: Store): Promise<void> {
  const rows = (await loaded.fileRows()).map((f) => [f.id, f.name, f.form, f.size, f.mtime, f.ctime, f.inode, f.digest]);
  await store.append('present_files', TABLES['state.files'].columns, rows);
  // The blocks of an unchanged ledger may change with the runes.
  const outdated = loaded.outdated.join(', ') || 'NULL';
  await store.run(`DELETE FROM state.files;
    INSERT INTO state.files SELECT * FROM present_files;
    DELETE FROM state.held WHERE source IN (${outdated});
    INSERT INTO state.held SELECT * FROM holds;
    DELETE FROM state.left_out WHERE source IN (${outdated});
    INSERT INTO state.left_out SELECT * FROM left_out`);
  const read = loaded.sources.flatMap(({ blocks }) => blocks.map(([first, last]) => `(${first}, ${last})`));
  await store.run(`DELETE FROM state.read_blocks; ${read.length === 0 ? '' : `INSERT INTO state.read_blocks VALUES ${read.join(', ')}`}`);
  await store.run(`DELETE FROM state.tip; INSERT INTO state.tip ${tipOf(loaded)}`);
  if (!loaded.hasRunes) return;
  // EXCEPT treats NULLs as equal.
  await store.run(`CREATE TEMP TABLE new_runes AS FROM runes EXCEPT FROM state.runes;
    DELETE FROM state.runes WHERE id NOT IN (SELECT id FROM runes) OR id IN (SELECT id FROM new_runes);
    INSERT INTO state.runes FROM new_runes`);
}
