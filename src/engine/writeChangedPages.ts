/** Renders blocks and writes their pages. */
import { join } from 'node:path';
import { int, joinedText, nullable, text } from '../duckdb/store.ts';
import type { Loaded } from '../input/loadInput.ts';
import { archivesPages, type BuildOptions, type OpenBuild, throwIfChanged } from './buildOptions.ts';
import { renderBatches } from './render/renderBatches.ts';
import type { BatchBlock } from './render/servedOrder.ts';
import { WriterPool } from './render/writerPool.ts';
import type { NewBlock } from './state/updateState.ts';

/** Opens at most four writers of pages. More would hardly help, because the kernel locks a folder while a thread changes it. */
export function openWriters(options: BuildOptions, scratch: string): WriterPool {
  const { out, site, threads, dryRun, limits } = options;
  const target = (i: number) => ({
    site,
    root: dryRun ? undefined : out,
    spool: archivesPages(options) ? join(scratch, `blocks-${i}`) : undefined,
  });
  const others = Array.from({ length: dryRun ? 0 : Math.min(4, threads) - 1 }, (_, i) => target(i + 1));
  return new WriterPool([target(0), ...others], limits);
}

export interface Rendered {
  /** Blocks that are new or differ from the state. */
  readonly blocks: readonly NewBlock[];
  /** Number of page files of `blocks` that already had the same bytes. */
  readonly kept: number;
}

/** Renders all loaded blocks, and writes the pages of the blocks that differ from the state. */
export async function writePages({ options, store, state, pool, progress }: OpenBuild, loaded: Loaded): Promise<Rendered> {
  // A digest of the outputs that a block spends, in any order, is compared too, because the digest of the records does not cover them.
  const spentDigest = `bit_xor(md5_number(${joinedText(['"output"', 'address'])})) || ' ' || count(*) AS spent_digest`;
  const spentDigests = `SELECT block_height, ${spentDigest} FROM ${loaded.spent} GROUP BY block_height`;
  const rows = await store.rows(
    `SELECT b.*, k.digest, coalesce(s.spent_digest, '') AS spent_digest, k.spent_digest AS known_spent
     FROM ${loaded.blocks} b LEFT JOIN ${state.blocks} k USING (block_height) LEFT JOIN (${spentDigests}) s USING (block_height)
     ORDER BY b.block_height`,
    { block_height: int, block_hash: text, records: int, digest: nullable(text), spent_digest: text, known_spent: nullable(text) },
  );
  const known = new Map(rows.map((row) => [row.block_height, row]));
  const expected = rows.map((row) => ({ height: row.block_height, hash: row.block_hash, records: row.records }));
  const changed = new Map<number, BatchBlock>();
  const all = expected.reduce((sum, { records }) => sum + records, 0);
  let unchanged = 0;
  progress.watch('write', () => ({ done: unchanged + pool.records, all, what: 'records' }));
  for await (const batch of renderBatches(store, options.site, expected, options.limits, loaded.kept, pool.spare)) {
    throwIfChanged(loaded, options);
    const blocks = batch.blocks.filter(({ height, digest }) => {
      const row = known.get(height);
      return row?.digest !== digest || row.known_spent !== row.spent_digest;
    });
    for (const block of blocks) changed.set(block.height, block);
    for (const block of batch.blocks) if (!changed.has(block.height)) unchanged += block.records;
    if (blocks.length > 0) await pool.submit({ ...batch, blocks });
  }
  const written = await pool.finish();
  const blocks = [...changed.values()].map((block) => {
    const pages = written.blocks.get(block.height);
    if (pages === undefined) throw new Error(`block ${block.height} was rendered but not written`);
    return { ...block, ...pages, spentDigest: known.get(block.height)?.spent_digest ?? '' };
  });
  return { blocks, kept: written.kept };
}
