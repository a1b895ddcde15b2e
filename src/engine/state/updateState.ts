/** Updates the state with the input and the written blocks, before `commit` of a State. */
import { flag, int, literal, type Store } from '../../duckdb/store.ts';
import { type Columns, columns, type Table } from '../../duckdb/table.ts';
import type { Loaded } from '../../input/loadInput.ts';
import { RUNES } from '../../input/rawSource.ts';
import type { WorkLimits } from '../../limits.ts';
import type { Layout } from '../../pages/mirrorOptions.ts';
import type { WrittenBlock } from '../render/batchWriter.ts';
import type { BatchBlock } from '../render/servedOrder.ts';
import { asCounts, countWritten, RUNE_COUNTS, summedChanges, summedCounts } from './countBlocks.ts';
import { ETCHING_ORDER } from './knownEtchings.ts';
import { BLOCKS, type StateTables, TRANSACTIONS, WRITTEN } from './state.ts';

export interface NewBlock extends Pick<BatchBlock, 'hash' | 'records' | 'transactions' | 'operations' | 'digest'>, WrittenBlock {
  /** Digest of the outputs that the block spends; empty if the input does not list them. */
  readonly spentDigest: string;
}

export interface BlockChanges {
  /** Heights of the blocks that were written or removed. */
  readonly heights: readonly number[];
  /** Number of written blocks, and of blocks that no longer exist. */
  readonly counts: { readonly written: number; readonly gone: number };
  readonly written: Table<typeof WRITTEN>;
  /** Blocks whose rows in the state change, because they were written or removed. */
  readonly replaced: Table<Columns<'block_height BIGINT'>>;
  /** Rows of replaced blocks from the state of the last build. */
  readonly old: { readonly blocks: Table<typeof BLOCKS>; readonly transactions: Table<typeof TRANSACTIONS> };
  readonly transactions: Table<typeof TRANSACTIONS>;
}

/** Replaces the state's rows of the blocks that this build wrote. Removes the rows of blocks that no input file has any more. */
export async function updateBlocks(
  newBlocks: readonly NewBlock[],
  { affected, blocks, transactions, kept }: Pick<Loaded, 'affected' | 'blocks' | 'transactions' | 'kept'>,
  layout: Layout,
  limits: Pick<WorkLimits, 'listedAtOnce'>,
  state: StateTables,
  store: Store,
): Promise<BlockChanges> {
  const rows = newBlocks.map((b) => [
    ...[b.height, b.hash, b.records, b.transactions, b.operations.join(), b.digest, b.spentDigest, b.files, b.bytes],
    b.spooled?.bytes ?? 0,
  ]);
  const written = await store.append('written', WRITTEN, rows);
  const replaced = await store.table(
    'replaced',
    columns('block_height BIGINT'),
    `SELECT block_height FROM ${written}
     UNION SELECT block_height FROM ${affected} WHERE block_height NOT IN (SELECT block_height FROM ${blocks})`,
  );
  const isReplaced = `block_height IN (SELECT block_height FROM ${replaced})`;
  const old = {
    blocks: await store.table('old_blocks', BLOCKS, `SELECT * FROM ${state.blocks} WHERE ${isReplaced}`),
    transactions: await store.table('old_transactions', TRANSACTIONS, `SELECT * FROM ${state.transactions} WHERE ${isReplaced}`),
  };
  const replacedRunes = `${state.blockRunes} WHERE ${isReplaced}`;
  const oldCounts = await store.table('old_counts', RUNE_COUNTS, asCounts(replacedRunes, -1));
  await store.run(
    [state.blocks, state.transactions, state.blockRunes].map((table) => `DELETE FROM ${table} WHERE ${isReplaced}`).join('; '),
  );
  const counted = await countWritten(kept, written, limits, store);
  // If the records of a block have several timestamps (wrong data), the lowest counts.
  const times = `SELECT block_height, min("timestamp") AS "timestamp" FROM ${counted} GROUP BY block_height`;
  await store.run(`INSERT INTO ${state.blocks} SELECT w.*, "timestamp" FROM ${written} AS w JOIN (${times}) USING (block_height);
    INSERT INTO ${state.blockRunes} SELECT * EXCLUDE ("timestamp") FROM ${counted}`);
  await updateRuneCounts(`FROM ${oldCounts} UNION ALL ${asCounts(replacedRunes, 1)}`, state, store);
  const placed = await store.view(
    'placed_transactions',
    TRANSACTIONS,
    `SELECT tx_id, block_height, records, first FROM ${transactions} WHERE ${isReplaced}`,
  );
  // An archive has a table of all transactions, so the state needs none.
  if (layout === 'files') await store.run(`INSERT INTO ${state.transactions} SELECT * FROM ${placed}`);
  const heights = await store.rows(
    `SELECT block_height, block_height IN (SELECT block_height FROM ${old.blocks}) AND block_height NOT IN (SELECT block_height FROM ${written}) AS gone
     FROM ${replaced} ORDER BY block_height`,
    { block_height: int, gone: flag },
  );
  const counts = { written: rows.length, gone: heights.filter(({ gone }) => gone).length };
  return { heights: heights.map((row) => row.block_height), counts, written, replaced, old, transactions: placed };
}

/** Adds counts to the state's sums. `changes` selects rows of RUNE_COUNTS, whose counts may be negative. */
async function updateRuneCounts(changes: string, { runeCounts }: StateTables, store: Store): Promise<void> {
  const changed = await store.table('changed_counts', RUNE_COUNTS, summedChanges(changes));
  const isChanged = `rune_id IN (SELECT rune_id FROM ${changed})`;
  const sums = await store.table(
    'summed_counts',
    RUNE_COUNTS,
    summedCounts(`FROM ${runeCounts} WHERE ${isChanged} UNION ALL FROM ${changed}`),
  );
  await store.run(
    `DELETE FROM ${runeCounts} WHERE ${isChanged}; INSERT INTO ${runeCounts} FROM ${sums}; DROP TABLE ${changed}; DROP TABLE ${sums}`,
  );
}

/** Updates the state's tables `files`, `held`, `leftOut`, `readBlocks` and `tip`. Call it after `updateBlocks`. */
export async function updateInputs(loaded: Loaded, state: StateTables, store: Store): Promise<void> {
  const rows = (await loaded.fileRows()).map((f) => [f.id, f.name, f.form, f.size, f.mtime, f.ctime, f.inode, f.digest]);
  const present = await store.append('present_files', state.files.columns, rows);
  // `outdated` also has unchanged ledgers that this build read again, because a changed rune may change their blocks.
  const outdated = loaded.outdated.join(', ') || 'NULL';
  await store.run(`DELETE FROM ${state.files};
    INSERT INTO ${state.files} SELECT * FROM ${present};
    DELETE FROM ${state.held} WHERE source IN (${outdated});
    INSERT INTO ${state.held} SELECT * FROM ${loaded.holds};
    DELETE FROM ${state.leftOut} WHERE source IN (${outdated});
    INSERT INTO ${state.leftOut} SELECT * FROM ${loaded.leftOut}`);
  await updateRead(loaded, state, store);
}

/** Updates the state's tables `readBlocks` and `tip`. Call it after `updateBlocks`. */
export async function updateRead({ sources, tip }: Pick<Loaded, 'sources' | 'tip'>, state: StateTables, store: Store): Promise<void> {
  const read = sources.flatMap(({ blocks }) => blocks.map(([first, last]) => `(${first}, ${last})`));
  // If the state has this height, it has the same hash: input that contradicts its records has no `tip` (input/loadInput.ts).
  const higher = tip === undefined ? '' : `UNION ALL SELECT ${tip.height}, ${literal(tip.hash)}`;
  await store.run(
    `DELETE FROM ${state.readBlocks}; ${read.length === 0 ? '' : `INSERT INTO ${state.readBlocks} VALUES ${read.join(', ')}`};
     DELETE FROM ${state.tip}; INSERT INTO ${state.tip} FROM (SELECT block_height, block_hash FROM ${state.blocks} ${higher})
     ORDER BY block_height DESC LIMIT 1`,
  );
}

/** Runes that a build added or removed. A rune whose row in the runes table changed is both removed and added. */
const CHANGED_RUNES = columns('id VARCHAR, name VARCHAR, block_height BIGINT, is_new BOOLEAN');
export type ChangedRunes = Table<typeof CHANGED_RUNES>;

/** Replaces the runes of read and removed files. Numbers the etchings again from the lowest changed one up. Returns the changed runes. */
export async function updateRunes({ runes }: Pick<Loaded, 'runes'>, state: StateTables, store: Store): Promise<ChangedRunes> {
  if (runes === undefined) return store.table('changed_runes', CHANGED_RUNES);
  const { read, isKept } = runes;
  const all = Object.keys(RUNES).join(', ');
  const compared = Object.keys(RUNES).filter((name) => name !== 'id' && name !== 'source');
  const isChanged = ['n.id IS NULL', 'o.id IS NULL', ...compared.map((name) => `n.${name} IS DISTINCT FROM o.${name}`)].join(' OR ');
  const row = (side: string, isNew: boolean) =>
    `{id: ${side}.id, name: ${side}.name, block_height: ${side}.block_height, is_new: ${isNew}}`;
  // Joins the tables by id, which takes a third of the time that comparing complete rows with EXCEPT takes.
  const changed = await store.table(
    'changed_runes',
    CHANGED_RUNES,
    `SELECT id, name, block_height, is_new FROM (
       SELECT unnest([${row('n', true)}, ${row('o', false)}], recursive := true)
       FROM (FROM ${read}) AS n FULL JOIN (FROM ${state.runes} WHERE NOT ${isKept}) AS o ON n.id = o.id WHERE ${isChanged})
     WHERE id IS NOT NULL`,
  );
  const { lowest } = await store.row(
    `SELECT coalesce(min(coalesce(block_height, 0)), ${Number.MAX_SAFE_INTEGER}) AS lowest FROM ${changed}`,
    { lowest: int },
  );
  const isAbove = `coalesce(block_height, 0) >= ${lowest}`;
  const above = await store.table(
    'runes_above',
    RUNES,
    `SELECT ${all} FROM ${state.runes} WHERE ${isAbove} AND ${isKept} UNION ALL SELECT ${all} FROM ${read} WHERE ${isAbove}`,
  );
  await store.run(`DELETE FROM ${state.runes} WHERE ${isAbove};
    INSERT INTO ${state.runes} SELECT *, (SELECT count(*) FROM ${state.runes}) + row_number() OVER (ORDER BY ${ETCHING_ORDER}) - 1 FROM ${above};
    UPDATE ${state.runes} AS r SET source = n.source FROM ${read} AS n WHERE n.id = r.id AND n.source IS DISTINCT FROM r.source;
    DROP TABLE ${above}`);
  return changed;
}
