/**
 * What is in folders, which have nothing in them when they do not exist.
 */
import { type Dirent, opendirSync, readdirSync } from 'node:fs';
import { codeOf } from '../errors.ts';

/** The names in a folder, all at once: some of them may be removed meanwhile. */
export function namesIn(folder: string): string[] {
  return ifThere(() => readdirSync(folder)) ?? [];
}

/** The entries of a folder that may hold millions, one by one. */
export function* entriesOf(folder: string): Generator<Dirent> {
  const dir = ifThere(() => opendirSync(folder, { bufferSize: 1024 }));
  if (dir === undefined) return;
  try {
    for (let entry = dir.readSync(); entry !== null; entry = dir.readSync()) yield entry;
  } finally {
    dir.closeSync();
  }
}

function ifThere<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
