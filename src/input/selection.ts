/**
 * Which input files have to be read: those that are new or changed since the last build.
 *
 * A file counts as unchanged without being opened when its size, times and inode are as they were. Otherwise its content decides, by SHA-256: a fresh
 * checkout or a restored copy gives every file new times.
 */
import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { type Row, type Store, toNumber, toText } from '../store/duckdb.ts';
import type { InputFile } from './discover.ts';
import { unreadable } from './unreadable.ts';

/** What tells a file from its earlier self. Times in nanoseconds. */
interface Stamp {
  readonly size: bigint;
  readonly mtime: bigint;
  readonly ctime: bigint;
  readonly inode: string;
}

export interface NumberedFile {
  /** What its records carry as `source`. */
  readonly id: number;
  readonly file: InputFile;
}

/** A file that the last build read, and that has not changed. */
export interface UnchangedFile extends NumberedFile {
  readonly form: string;
}

export interface Selection {
  readonly touched: readonly NumberedFile[];
  readonly unchanged: readonly UnchangedFile[];
  /** Numbers of files that are gone, and of changed files as they were. */
  readonly gone: readonly number[];
  /** Whether the last build's list of files has to be written anew, though no content changed. */
  readonly isListStale: boolean;
  /** Every file's row for the state, without its form; resolves when the new files' digests are made. */
  readonly rows: Promise<readonly FileRow[]>;
}

export interface FileRow extends Stamp {
  readonly id: number;
  readonly name: string;
  readonly digest: string;
}

/** Compares the files with those of the last build (the view `known_files`). */
export async function selectFiles(files: readonly InputFile[], store: Store): Promise<Selection> {
  const known = new Map((await store.rows('SELECT * FROM known_files')).map((row) => [toText(row['name']), row]));
  let nextId = [...known.values()].reduce((most, row) => Math.max(most, toNumber(row['id'])), 0) + 1;
  const unchanged: UnchangedFile[] = [];
  const touched: NumberedFile[] = [];
  const rows: FileRow[] = [];
  const pending: { id: number; file: InputFile; stamp: Stamp }[] = [];
  const names = new Set(files.map((file) => file.name));
  /** Rows of files that are not where they were, which may have been renamed. */
  const vanished = [...known.values()].filter((row) => !names.has(toText(row['name'])));
  let isListStale = vanished.length > 0;
  const seen = new Set<number>();
  const keep = (file: InputFile, stamp: Stamp, row: Row) => {
    const [id, digest] = [toNumber(row['id']), toText(row['digest'])];
    unchanged.push({ id, file, form: toText(row['form']) });
    rows.push({ id, name: file.name, digest, ...stamp });
    seen.add(id);
  };
  for (const file of files) {
    const stamp = stampOf(file);
    const row = known.get(file.name);
    if (row !== undefined && isSame(stamp, row)) {
      keep(file, stamp, row);
      continue;
    }
    isListStale = true;
    const candidates = row === undefined ? vanished.filter((old) => !seen.has(toNumber(old['id']))) : [row];
    const alike = candidates.filter((old) => toNumber(old['size']) === Number(stamp.size));
    const digest = alike.length === 0 ? undefined : await digestOf(file);
    const same = alike.find((old) => toText(old['digest']) === digest);
    if (same !== undefined) {
      keep(file, stamp, same);
      continue;
    }
    touched.push({ id: nextId, file });
    if (digest === undefined) pending.push({ id: nextId, file, stamp });
    else rows.push({ id: nextId, name: file.name, digest, ...stamp });
    nextId += 1;
  }
  const gone = [...known.values()].map((row) => toNumber(row['id'])).filter((id) => !seen.has(id));
  const digests = (async () => {
    for (const { id, file, stamp } of pending) {
      const digest = await digestOf(file);
      // Were it replaced after it was read, the digest would be of something else: none will do.
      const isSteady = Object.entries(stampOf(file)).every(([key, value]) => stamp[key as keyof Stamp] === value);
      rows.push({ id, name: file.name, digest: isSteady ? digest : '', ...stamp });
    }
    return rows;
  })();
  // Awaited at the end of the build; a build that fails before must not end with an unhandled rejection.
  digests.catch(() => undefined);
  return { touched, unchanged, gone, isListStale, rows: digests };
}

function stampOf(file: InputFile): Stamp {
  try {
    const { size, mtimeNs, ctimeNs, ino } = statSync(file.path, { bigint: true });
    return { size, mtime: mtimeNs, ctime: ctimeNs, inode: String(ino) };
  } catch (error) {
    throw unreadable(file.name, error);
  }
}

const isSame = (stamp: Stamp, row: Row): boolean =>
  toText(row['size']) === String(stamp.size) &&
  toText(row['mtime']) === String(stamp.mtime) &&
  toText(row['ctime']) === String(stamp.ctime) &&
  row['inode'] === stamp.inode;

const PORTION = 1 << 20;

async function digestOf(file: InputFile): Promise<string> {
  const hash = createHash('sha256');
  try {
    const handle = await open(file.path);
    try {
      const buffer = Buffer.allocUnsafe(PORTION);
      for (;;) {
        const { bytesRead } = await handle.read(buffer, 0, PORTION);
        if (bytesRead === 0) return hash.digest('hex');
        hash.update(buffer.subarray(0, bytesRead));
      }
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw unreadable(file.name, error);
  }
}
