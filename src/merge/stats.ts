/**
 * The figures of the whole from those of the parts: a file of heights that are all in one part is that part's, and those of heights that parts share
 * are added up.
 */
import { readFileSync } from 'node:fs';
import type { BlockDigest } from '../build/digests.ts';
import type { Progress } from '../cli/progress.ts';
import { misfitOf } from '../contract/schemas.ts';
import type { BlockFigures, StatsFile } from '../contract/stats.ts';
import { OPERATIONS, spellHex } from '../pages/lists.ts';
import { STATS_FOLDER, statsFilePath } from '../pages/paths.ts';
import { addCounts, type Counts, type Figures, mostActive, noCounts, RuneTotals } from '../stats/figures.ts';
import { readStats, statsBytes } from '../stats/files.ts';
import type { DiskSink } from '../write/sinks.ts';
import { changedError, type Linker } from './linker.ts';
import { type Part, type PlacedBlock, refuseDamaged } from './parts.ts';

/** The files of figures of the whole, heights ascending, each with the parts that have blocks in it, and these. */
type Files = ReadonlyMap<string, ReadonlyMap<Part, readonly BlockDigest[]>>;

function filesOf(placed: readonly PlacedBlock[]): Files {
  const files = new Map<string, Map<Part, BlockDigest[]>>();
  for (const { block, part } of placed) {
    const path = statsFilePath(block.height);
    const parts = files.get(path) ?? new Map<Part, BlockDigest[]>();
    parts.set(part, [...(parts.get(part) ?? []), block]);
    files.set(path, parts);
  }
  return files;
}

/** The figures of these blocks, heights ascending. Throws an InputError when a part's files do not fit its blocks. */
export function readFigures(placed: readonly PlacedBlock[], progress: Progress): Figures {
  const all: BlockFigures[] = [];
  const totals = new RuneTotals();
  const transactions = new Map<Part, number>();
  const files = filesOf(placed);
  let read = 0;
  for (const [path, parts] of files) {
    for (const [part, blocks] of parts) {
      const file = readOrRefuse(part, path, blocks);
      for (const block of file.blocks) transactions.set(part, (transactions.get(part) ?? 0) + block.transactions);
      for (const rune of file.runes) totals.add(rune);
      all.push(...file.blocks);
    }
    read += 1;
    progress.show(read, files.size, 'files of figures');
  }
  progress.end();
  for (const [part, count] of transactions) {
    const said = part.manifest.transactions;
    if (count !== said) refuseDamaged(part.dir, `its files of figures count ${count} transactions, and its manifest says ${said}`);
  }
  return { blocks: all.sort((a, b) => a.height - b.height), runes: mostActive(totals.all) };
}

const readPart = (part: Part, path: string): StatsFile => readStats(readFileSync(`${part.dir}/${path}`), path);

function readOrRefuse(part: Part, path: string, blocks: readonly BlockDigest[]): StatsFile {
  try {
    const file = readPart(part, path);
    checkFile(file, part, blocks);
    return file;
  } catch (error) {
    return refuseDamaged(part.dir, `${path} cannot be used (${misfitOf(error)})`);
  }
}

/** Throws when a file is not about these blocks, or contradicts itself. */
function checkFile(file: StatsFile, { site }: Part, blocks: readonly BlockDigest[]): void {
  const held = file.blocks.map(({ height, hash, records }) => [height, hash, records]);
  const expected = blocks.map(({ height, hash, records }) => [height, spellHex(hash, site.dialect), records]);
  if (JSON.stringify(held) !== JSON.stringify(expected)) throw new Error('it has other blocks than the files of digests');
  const odd = [...file.blocks, ...file.runes].find((counts) => OPERATIONS.reduce((sum, name) => sum + counts[name], 0) !== counts.records);
  if (odd !== undefined) throw new Error(`${'height' in odd ? `block ${odd.height}` : `rune ${odd.id}`} has other records than operations`);
  if (JSON.stringify(sumOf(file.blocks)) !== JSON.stringify(sumOf(file.runes)))
    throw new Error('its runes have other records than its blocks');
}

function sumOf(all: readonly Counts[]): Counts {
  const sum = noCounts();
  for (const counts of all) addCounts(sum, counts);
  return sum;
}

/** Brings the files of figures into the output. Throws a BuildError when a part's are not as they were. */
export function bringStats(placed: readonly PlacedBlock[], linker: Linker, sink: DiskSink): void {
  linker.makeFolder(STATS_FOLDER);
  for (const [path, parts] of filesOf(placed)) {
    const [only, ...others] = parts.keys();
    if (only !== undefined && others.length === 0) linker.file(only.dir, path);
    else sink.file(path, joinFiles([...parts.keys()], path));
  }
}

/** The file of all blocks of some parts at these heights. */
function joinFiles(parts: readonly Part[], path: string): Buffer {
  const blocks: BlockFigures[] = [];
  const totals = new RuneTotals();
  for (const part of parts) {
    try {
      const file = readPart(part, path);
      blocks.push(...file.blocks);
      for (const rune of file.runes) totals.add(rune);
    } catch (error) {
      throw changedError(part.dir, `${path} cannot be used (${misfitOf(error)})`);
    }
  }
  return statsBytes({ blocks: blocks.sort((a, b) => a.height - b.height), runes: totals.sorted });
}
