/**
 * The Parquet files of a merge: those of ranges that one part holds are brought as they are, and those that several parts share are made again from
 * the parts' files.
 */
import { readFileSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { byRange, type FileStamp, rangesFile, recordsOf, stampOf } from '../bulk/ranges.ts';
import { rowsOfFiles, writeRows } from '../bulk/rows.ts';
import { bulkFiles } from '../contract/bulk.ts';
import { misfitOf } from '../contract/schemas.ts';
import { ACTIVITY_FOLDER, RANGES_PATH, rangePath } from '../pages/paths.ts';
import { pathLiteral, Store } from '../store/duckdb.ts';
import type { DiskSink } from '../write/sinks.ts';
import type { Linker } from './linker.ts';
import { type Part, type PlacedBlock, refuseDamaged } from './parts.ts';

/** What a shared range may take: one file is made at a time. */
const MEMORY = '1GB';

/** A file of the output. */
interface MergedRange {
  readonly first: number;
  readonly stamp: FileStamp;
  /** The part that has it, or where it was made. */
  readonly from: Part | string;
}

/** All files of the output, and the list of them. */
export interface MergedRanges {
  readonly files: readonly MergedRange[];
  readonly list: Buffer;
}

/**
 * Makes the files of shared ranges in `scratch`, and finds all others. Throws an InputError for a part whose files are not those that its own list
 * names; of those that are only brought along the size is looked at. Nothing is written outside of `scratch`.
 */
export async function mergeRanges(parts: readonly Part[], placed: readonly PlacedBlock[], scratch: string): Promise<MergedRanges> {
  const held = new Map(parts.map((part) => [part, readRanges(part)]));
  const files: MergedRange[] = [];
  let store: Store | undefined;
  try {
    for (const [first, blocks] of byRange(placed.map(({ block, part }) => ({ ...block, part })))) {
      const owners = [...new Set(blocks.map(({ part }) => part))];
      const [owner] = owners;
      const stamp = owner === undefined ? undefined : held.get(owner)?.get(first);
      if (owner === undefined || stamp === undefined) throw new Error(`no part has ${rangePath(first)}`);
      if (owners.length === 1) {
        files.push({ first, stamp, from: owner });
        continue;
      }
      for (const part of owners) await checkContent(part, first, held.get(part)?.get(first));
      store ??= await Store.open({ memoryLimit: MEMORY, threads: availableParallelism(), scratch });
      const made = join(scratch, `${first}.parquet`);
      const rows = rowsOfFiles(owners.map(({ dir }) => pathLiteral(resolve(dir, rangePath(first)))));
      await writeRows(rows, recordsOf(blocks), made, store);
      files.push({ first, stamp: (await stampOf(made)) ?? stamp, from: made });
    }
  } finally {
    store?.close();
  }
  const blocks = placed.map(({ block }) => block);
  return { files, list: rangesFile(blocks, new Map(files.map(({ first, stamp }) => [first, stamp]))) };
}

/** Brings the files into the output. */
export function bringRanges({ files, list }: MergedRanges, linker: Linker, sink: DiskSink): void {
  linker.makeFolder(ACTIVITY_FOLDER);
  for (const { first, from } of files) {
    if (typeof from === 'string') sink.take(rangePath(first), from);
    else linker.file(from.dir, rangePath(first));
  }
  sink.file(RANGES_PATH, list);
}

/** What a part's list says of its files, which must be those that follow from its blocks. */
function readRanges(part: Part): Map<number, FileStamp> {
  const stamps = new Map<number, FileStamp>();
  try {
    const text = readFileSync(join(part.dir, RANGES_PATH));
    for (const { file, bytes, sha256 } of bulkFiles.parse(JSON.parse(text.toString())).ranges) {
      stamps.set(Number.parseInt(file, 10), { bytes, sha256 });
    }
    if (!rangesFile(part.blocks, stamps).equals(text)) throw new Error('it is not the list of the files of its blocks');
  } catch (error) {
    return refuseDamaged(part.dir, `${RANGES_PATH} cannot be read (${misfitOf(error)})`);
  }
  for (const [first, { bytes }] of stamps) {
    const there = statSync(join(part.dir, rangePath(first)), { throwIfNoEntry: false });
    if (there?.isFile() !== true || there.size !== bytes)
      refuseDamaged(part.dir, `${rangePath(first)} is not the file that its list names`);
  }
  return stamps;
}

async function checkContent(part: Part, first: number, stamp: FileStamp | undefined): Promise<void> {
  const now = await stampOf(join(part.dir, rangePath(first)));
  if (now === undefined || now.sha256 !== stamp?.sha256) refuseDamaged(part.dir, `${rangePath(first)} is not the file that its list names`);
}
