/** Figures of a build: they are what anyone counts in the pages that it serves, however it was made. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { feed, latestBlocks, stats, statsFile } from '../src/contract/stats.ts';
import { DIALECTS, LAYOUTS } from '../src/pages/lists.ts';
import { CONFORMANCE_INPUTS, filesBelow, temporaryFolder, testBuild } from './support/build.ts';
import { SAMPLE_INPUT } from './support/cases.ts';
import type { Activity } from './support/records.ts';

const OPERATIONS = ['etching', 'mint', 'burn', 'send', 'receive'] as const;
const read = (out: string, path: string): unknown => JSON.parse(readFileSync(join(out, 'runes/v1', path), 'utf8'));
const statsOf = (out: string) => stats.parse(read(out, 'stats.json'));
const blocksOf = (out: string) => latestBlocks.parse(read(out, 'blocks.json'));
const feedOf = (out: string) => feed.parse(read(out, 'feed.json'));
const filesOf = (out: string) =>
  Object.fromEntries(filesBelow(join(out, 'runes/v1/stats')).map((name) => [name, statsFile.parse(read(out, `stats/${name}`))]));

/** All records of an output, from the largest pages of its blocks: each once, whatever the layout. */
function recordsOf(out: string): Activity[] {
  const blocks = new Map<string, { total: number; pages: Map<number, Activity[]> }>();
  for (const path of filesBelow(join(out, 'runes/v1/blocks'))) {
    // No lists by operation, and of the two names of a block the height.
    const [, height] = /^([0-9]{1,15})(?:-(?:0x)?[0-9a-f]{8})?(?:[.]json|[/][0-9]+[/][0-9]+[.]json)$/.exec(path) ?? [];
    if (height === undefined) continue;
    const page = read(out, `blocks/${path}`) as { total: number; limit: number; offset: number; results: Activity[] };
    const block = blocks.get(height) ?? { total: page.total, pages: new Map() };
    for (const [i, record] of page.results.entries()) block.pages.set(page.offset + i, [record]);
    blocks.set(height, block);
  }
  return [...blocks.values()].flatMap(({ total, pages }) => {
    expect(pages.size).toBe(total);
    return [...pages.entries()].sort(([a], [b]) => a - b).flatMap(([, records]) => records);
  });
}

const tally = (records: readonly Activity[]) =>
  Object.fromEntries(OPERATIONS.map((name) => [name, records.filter(({ operation }) => operation === name).length]));

const groupBy = <K>(records: readonly Activity[], key: (record: Activity) => K): [K, Activity[]][] => {
  const groups = new Map<K, Activity[]>();
  for (const record of records) groups.set(key(record), [...(groups.get(key(record)) ?? []), record]);
  return [...groups];
};

const idOf = (id: string) => id.split(':').map(Number) as [number, number];
const byId = (a: { id: string }, b: { id: string }) => idOf(a.id)[0] - idOf(b.id)[0] || idOf(a.id)[1] - idOf(b.id)[1];

const blockFigures = (records: readonly Activity[]) =>
  groupBy(records, ({ location }) => location.block_height)
    .sort(([a], [b]) => a - b)
    .map(([height, of]) => ({
      height,
      hash: of[0]?.location.block_hash,
      timestamp: of[0]?.location.timestamp,
      transactions: new Set(of.map(({ location }) => location.tx_id)).size,
      records: of.length,
      ...tally(of),
    }));
const runeFigures = (records: readonly Activity[]) =>
  groupBy(records, ({ rune }) => rune.id)
    .map(([, of]) => ({ ...(of[0] as Activity).rune, records: of.length, ...tally(of) }))
    .sort(byId);

describe.each(DIALECTS)('in dialect %s', (dialect) => {
  it.each(LAYOUTS)('and layout %s figures are those of the records served', async (layout) => {
    for (const inputs of [[SAMPLE_INPUT], CONFORMANCE_INPUTS]) {
      const out = join(temporaryFolder(), 'out');
      await testBuild(out, { inputs, dialect, layout });
      const records = recordsOf(out);
      expect(records.length).toBeGreaterThan(100);
      const [blocks, runes] = [blockFigures(records), runeFigures(records)];
      const firstOf = (height: number) => height - (height % 100);
      const expected = Object.fromEntries(
        groupBy(records, ({ location }) => firstOf(location.block_height)).map(([first, of]) => [
          `${first}.json`,
          { blocks: blocks.filter(({ height }) => firstOf(height) === first), runes: runeFigures(of) },
        ]),
      );
      expect(filesOf(out)).toEqual(expected);

      expect(statsOf(out)).toEqual({
        first: blocks[0]?.height,
        last: blocks.at(-1)?.height,
        blocks: blocks.length,
        transactions: new Set(records.map(({ location }) => location.tx_id)).size,
        records: records.length,
        operations: tally(records),
        bucket: 1,
        activity: blocks.map(({ hash: _hash, records: _records, transactions: _transactions, ...entry }) => ({ ...entry, blocks: 1 })),
        runes: [...runes].sort((a, b) => b.records - a.records || byId(a, b)).slice(0, 20),
      });
      const newest = [...blocks].reverse();
      expect(blocksOf(out)).toEqual({
        tip: newest[0]?.height,
        blocks: newest.slice(0, 100).map(({ height, hash, timestamp, records: count, transactions }) => {
          const of = records.filter(({ location }) => location.block_height === height);
          return { height, hash, timestamp, records: count, transactions, operations: tally(of) };
        }),
      });
      expect(feedOf(out).items.map(({ id }) => id)).toEqual(newest.slice(0, 30).map(({ hash }) => hash?.slice(-64)));
    }
  });
});
