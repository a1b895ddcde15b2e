/**
 * Joins the files of single settled blocks into files of up to a hundred blocks. Splits a joined file again if one of
 * its blocks changed.
 *
 * A joined file is complete once its checksum file exists. Until then, the files of its single blocks stay, so that the
 * next pull can finish the work of a killed pull.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Progress } from '../cli/progress.ts';
import { hundredOf } from '../rows/rowsForm.ts';
import { EMPTY, isJoined, joinedDigest, joinedFile, listPulledFiles, type PulledFile, readBlocks } from './pulledFiles.ts';
import { hasChecksum, putInPlace, removeFiles, workFile, writeBlock } from './writePulled.ts';

/** Joins the files of adjacent single blocks, in each hundred of heights that ends at or below `settled`. */
export async function joinSettled(folder: string, settled: number, signal: AbortSignal, progress: Progress): Promise<void> {
  const runs: PulledFile[][] = [];
  for (const file of listPulledFiles(folder)) {
    const hundred = hundredOf(file.first);
    if (file.digest === undefined || isJoined(file) || hundred.last > settled) continue;
    const run = runs.at(-1);
    const before = run?.at(-1);
    if (before !== undefined && file.first === before.first + 1 && hundred.first <= before.first) run?.push(file);
    else runs.push([file]);
  }
  progress.begin('join');
  for (const [i, run] of runs.entries()) {
    signal.throwIfAborted();
    if (run.length > 1) await joinFiles(folder, run);
    progress.show(i, runs.length, 'files');
  }
}

/** Joins files of one block each. Concatenates their bytes, because a gzip file may have several members. */
async function joinFiles(folder: string, files: readonly PulledFile[]): Promise<void> {
  const blocks = files.map(({ path, first, digest = '' }) => ({ path, height: first, digest }));
  // Leaves out blocks without records: their files contain `[]`, which is not valid between records.
  const full = blocks.filter(({ digest }) => digest !== EMPTY);
  const temporary = workFile(folder, '.gz');
  for (const { path } of full.length > 0 ? full : blocks.slice(0, 1)) appendFileSync(temporary, readFileSync(join(folder, path)));
  const [first = 0, last = 0] = [blocks[0]?.height, blocks.at(-1)?.height];
  await putInPlace(folder, temporary, joinedFile(first, last, joinedDigest(blocks)));
  removeFiles(folder, files);
}

export async function splitFile(folder: string, file: PulledFile): Promise<void> {
  for await (const { height, activity } of readBlocks(folder, file)) await writeBlock(folder, height, (add) => add(activity));
  removeFiles(folder, [file]);
}

/**
 * Cleans up after a pull that was killed while it joined or split files. Removes an incomplete joined file, or the
 * parts of a complete one.
 */
export function finishJoins(folder: string): void {
  const files = listPulledFiles(folder);
  for (const file of files.filter(isJoined)) {
    const parts = files.filter(
      ({ first, last, digest }) => digest !== undefined && first === last && file.first <= first && last <= file.last,
    );
    const isComplete = hasChecksum(join(folder, file.path));
    if (parts.length > 0) removeFiles(folder, isComplete ? parts : [file]);
  }
}
