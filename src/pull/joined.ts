/**
 * Joins files of one settled block to files of up to a hundred, and splits these when one of their blocks changed.
 *
 * A joined file is complete once its checksum is beside it. Until then all files of its blocks stay, so a pull that is
 * killed at any moment can be finished by the next one.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Progress } from '../cli/progress.ts';
import { EMPTY, hundredOf, isJoined, joinedDigest, joinedFile, listPulledFiles, type PulledFile, readBlocks } from './pulledFiles.ts';
import { hasChecksum, putInPlace, removeFiles, workFile, writeBlock } from './write.ts';

/** Joins files of one block with neighbours of the same hundred, if all heights of this hundred are settled. */
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

/** Joins files of one block each. Compressed files can be concatenated. */
async function joinFiles(folder: string, files: readonly PulledFile[]): Promise<void> {
  const blocks = files.map(({ path, first, digest = '' }) => ({ path, height: first, digest }));
  // The `[]` of an empty block cannot stand between records.
  const full = blocks.filter(({ digest }) => digest !== EMPTY);
  const temporary = workFile(folder, '.gz');
  for (const { path } of full.length > 0 ? full : blocks.slice(0, 1)) appendFileSync(temporary, readFileSync(join(folder, path)));
  const [first = 0, last = 0] = [blocks[0]?.height, blocks.at(-1)?.height];
  await putInPlace(folder, temporary, joinedFile(first, last, joinedDigest(blocks)));
  removeFiles(folder, files);
}

/** Writes the blocks of a joined file to a file each. */
export async function splitFile(folder: string, file: PulledFile): Promise<void> {
  for await (const { height, activity } of readBlocks(folder, file)) await writeBlock(folder, height, (add) => add(activity));
  removeFiles(folder, [file]);
}

/** Finishes or takes back what a pull did that was killed while it joined or split files. */
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
