/**
 * Which input files have to be read: those that are new or changed since the last build.
 *
 * A file counts as unchanged without being opened when its size, times and inode are as they were. Otherwise its content decides, by SHA-256: a fresh
 * checkout or a restored copy gives every file new times.
 */
import { type BigIntStats, statSync } from 'node:fs';
import { InputError } from '../errors.ts';
import { type Row, type Store, toNumber, toText } from '../store/duckdb.ts';
import { Checksums, sha256Of } from './checksums.ts';
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
  /** What each file was when it was looked at first. */
  readonly pins: Pins;
  /** Resolves when every new file has the checksum that stands beside it. Throws an InputError for the first that has not. */
  checkDigests(): Promise<void>;
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
  const pins = new Pins();
  const checksums = new Checksums();
  const expected = new Map<number, string>();
  for (const file of files) {
    const stamp = pins.pin(file);
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
    const checksum = checksums.expected(file);
    if (checksum !== undefined) expected.set(nextId, checksum);
    if (digest === undefined) pending.push({ id: nextId, file, stamp });
    else rows.push({ id: nextId, name: file.name, digest, ...stamp });
    nextId += 1;
  }
  const gone = [...known.values()].map((row) => toNumber(row['id'])).filter((id) => !seen.has(id));
  const digests = (async () => {
    for (const { id, file, stamp } of pending) {
      const digest = await digestOf(file);
      // Were it replaced after it was read, the digest would be of something else: none will do.
      rows.push({ id, name: file.name, digest: pins.changed([file]) === undefined ? digest : '', ...stamp });
    }
    return rows;
  })();
  // Awaited at the end of the build; a build that fails before must not end with an unhandled rejection.
  digests.catch(() => undefined);
  const checkDigests = async () => {
    if (expected.size === 0) return;
    for (const { id, name, digest } of await digests) {
      const checksum = expected.get(id);
      if (checksum === undefined || checksum === digest) continue;
      throw new InputError(`${name} is damaged: its SHA-256 is ${digest}, and the checksum beside it says ${checksum}`, [
        'Fetch or copy it again. If you changed it yourself, remove its checksum.',
      ]);
    }
  };
  return { touched, unchanged, gone, isListStale, rows: digests, pins, checkDigests };
}

/** The stamps of files as they were when a build began to read. A file that is read again later must still be the one that was checked. */
class Pins {
  readonly #stamps = new Map<string, Stamp>();

  pin(file: InputFile): Stamp {
    const stamp = stampOf(file);
    this.#stamps.set(file.path, stamp);
    return stamp;
  }

  /** The first of these files that is not as it was when it was pinned. */
  changed(files: Iterable<InputFile>): InputFile | undefined {
    for (const file of files) {
      const before = this.#stamps.get(file.path);
      const now = stampIfThere(file.path);
      if (before === undefined || now === undefined || Object.entries(now).some(([key, value]) => before[key as keyof Stamp] !== value)) {
        return file;
      }
    }
    return undefined;
  }
}

/** Throws an InputError for a file that cannot be read, and for what is no file: a pipe would be waited for without end. */
function stampOf(file: InputFile): Stamp {
  let stats: BigIntStats;
  try {
    stats = statSync(file.path, { bigint: true });
  } catch (error) {
    throw unreadable(file.name, error);
  }
  if (!stats.isFile())
    throw new InputError(`${file.name} is not a file but ${kindOf(stats)}`, ['Remove it from the input, or write it to a file.']);
  return stampFrom(stats);
}

function stampIfThere(path: string): Stamp | undefined {
  try {
    return stampFrom(statSync(path, { bigint: true }));
  } catch {
    return undefined;
  }
}

const stampFrom = ({ size, mtimeNs, ctimeNs, ino }: BigIntStats): Stamp => ({ size, mtime: mtimeNs, ctime: ctimeNs, inode: String(ino) });

function kindOf(stats: BigIntStats): string {
  if (stats.isFIFO()) return 'a pipe';
  if (stats.isSocket()) return 'a socket';
  return stats.isDirectory() ? 'a folder' : 'a device';
}

const isSame = (stamp: Stamp, row: Row): boolean =>
  toText(row['size']) === String(stamp.size) &&
  toText(row['mtime']) === String(stamp.mtime) &&
  toText(row['ctime']) === String(stamp.ctime) &&
  row['inode'] === stamp.inode;

async function digestOf(file: InputFile): Promise<string> {
  try {
    return await sha256Of(file.path);
  } catch (error) {
    throw unreadable(file.name, error);
  }
}
