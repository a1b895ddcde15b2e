/**
 * Finds the input files that are new or changed since the last build.
 *
 * If a file's size, times and inode are the same, it is treated as unchanged and not opened. Any other file is compared by the SHA-256 of
 * its content, because a fresh checkout or a restored copy gives every file new times.
 */
import { type BigIntStats, statSync } from 'node:fs';
import { basename } from 'node:path';
import { attempt } from '../attempt.ts';
import { int, type Store, text, type Values } from '../duckdb/store.ts';
import { columns, type TableWith } from '../duckdb/table.ts';
import { InputError } from '../errors.ts';
import { expectedDigits, NAMED_BY_CONTENT, sha256Of } from './checksums.ts';
import type { InputFile } from './discover.ts';
import { readable, unreadable } from './unreadable.ts';

/**
 * Columns of input files in the state. The records of a file have its `id` in the column `source`. Times are in nanoseconds. `digest` is
 * the SHA-256 of the content.
 */
export const FILES = columns(
  'id INTEGER, name VARCHAR, form VARCHAR, size BIGINT, mtime VARCHAR, ctime VARCHAR, inode VARCHAR, digest VARCHAR',
);

const KNOWN_FILE = { id: int, name: text, form: text, size: int, mtime: text, ctime: text, inode: text, digest: text } as const;
type KnownFile = Values<typeof KNOWN_FILE>;
export type FileRow = Omit<KnownFile, 'form'>;

/** File attributes of which at least one changes when a file is written or replaced. */
type Stamp = Pick<KnownFile, 'size' | 'mtime' | 'ctime' | 'inode'>;

export interface NumberedFile {
  /** Number of the file. Its records have this number in the column `source`. */
  readonly id: number;
  readonly file: InputFile;
}

/** File that the last build read and that has not changed since. */
export interface UnchangedFile extends NumberedFile {
  readonly form: string;
}

export interface Selection {
  readonly touched: readonly NumberedFile[];
  readonly unchanged: readonly UnchangedFile[];
  /** Files that were removed, and changed files with their old numbers. */
  readonly gone: readonly Pick<KnownFile, 'id' | 'form'>[];
  /** True if the state's list of files is outdated: a file is new or gone, or has a new name, time or content. */
  readonly isListStale: boolean;
  /** Rows of all files, for the table `files` of the state. Resolves when the digests of new files are computed. */
  readonly rows: Promise<readonly FileRow[]>;
  /**
   * Returns the first of `files` that changed since the build began. Builds read some files several times, so a change after the check of a
   * file's records would put unchecked records into the output.
   */
  changed(files: Iterable<InputFile>): InputFile | undefined;
  /** Throws an InputError for the first new or changed file whose SHA-256 differs from its expected checksum. */
  checkDigests(): Promise<void>;
}

/** Selects new and changed files by comparing `files` with `before`, the files of the last build. */
export async function selectFiles(files: readonly InputFile[], before: TableWith<keyof typeof FILES>, store: Store): Promise<Selection> {
  const known = new Map((await store.rows(`SELECT * FROM ${before}`, KNOWN_FILE)).map((row) => [row.name, row]));
  let lastId = [...known.values()].reduce((most, row) => Math.max(most, row.id), 0);
  const unchanged: UnchangedFile[] = [];
  const touched: (NumberedFile & { stamp: Stamp; digest: string | undefined; expected: string | undefined })[] = [];
  const rows: FileRow[] = [];
  const names = new Set(files.map((file) => file.name));
  /** Files of the last build whose paths no longer exist, for example because they were renamed. */
  const vanished = [...known.values()].filter((row) => !names.has(row.name));
  let isListStale = vanished.length > 0;
  const seen = new Set<number>();
  const stamps = new Map<string, Stamp>();
  for (const file of files) {
    const stamp = stampOf(file);
    stamps.set(file.path, stamp);
    const row = known.get(file.name);
    let same = isSame(stamp, row) ? row : undefined;
    let digest: string | undefined;
    if (same === undefined) {
      isListStale = true;
      const candidates = row === undefined ? vanished.filter((old) => !seen.has(old.id)) : [row];
      const alike = candidates.filter((old) => old.size === stamp.size);
      if (alike.length > 0) digest = await digestOf(file);
      same = alike.find((old) => old.digest === digest);
    }
    if (same === undefined) {
      lastId += 1;
      touched.push({ id: lastId, file, stamp, digest, expected: expectedDigits(file) });
      continue;
    }
    unchanged.push({ id: same.id, file, form: same.form });
    rows.push({ id: same.id, name: file.name, digest: same.digest, ...stamp });
    seen.add(same.id);
  }
  const changed = (some: Iterable<InputFile>) => {
    for (const file of some) if (!isSame(stamps.get(file.path), stampIfThere(file.path))) return file;
    return undefined;
  };
  const digests = (async () => {
    for (const { id, file, stamp, digest } of touched) {
      const found = digest ?? (await digestOf(file));
      // A file that changed meanwhile gets no digest, so the next build reads it again.
      rows.push({ id, name: file.name, digest: changed([file]) === undefined ? found : '', ...stamp });
    }
    return rows;
  })();
  // The build awaits this promise at its end. If the build fails earlier, this handler keeps Node from ending the process because of an
  // unhandled rejection.
  digests.catch(() => undefined);
  const checkDigests = async () => {
    const expected = new Map(touched.map((one) => [one.id, one.expected]));
    if (touched.every((one) => one.expected === undefined)) return;
    for (const { id, name, digest } of await digests) {
      const checksum = expected.get(id);
      if (checksum === undefined || digest.startsWith(checksum)) continue;
      throw new InputError(`${name} is damaged: its SHA-256 is ${digest}, but its checksum file or its name says ${checksum}`, [
        'Fetch or copy it again. If you changed it yourself, remove its checksum file.',
      ]);
    }
  };
  const gone = [...known.values()].filter(({ id }) => !seen.has(id));
  return { touched, unchanged, gone, isListStale, rows: digests, changed, checkDigests };
}

/** Throws an InputError for an unreadable file, and for a pipe, socket or device, because it could block forever. */
function stampOf(file: InputFile): Stamp {
  const stats = readable(file.name, () => statSync(file.path, { bigint: true }));
  if (!stats.isFile())
    throw new InputError(`${file.name} is not a file but ${kindOf(stats)}`, ['Remove it from the input, or write it to a file.']);
  return stampFrom(stats, file.path);
}

const stampIfThere = (path: string): Stamp | undefined => attempt(() => stampFrom(statSync(path, { bigint: true }), path));

/** The time of a change of the inode does not count for files named by content: publishing them makes hard links. */
const stampFrom = ({ size, mtimeNs, ctimeNs, ino }: BigIntStats, path: string): Stamp => ({
  size: Number(size),
  mtime: String(mtimeNs),
  ctime: NAMED_BY_CONTENT.test(basename(path)) ? '' : String(ctimeNs),
  inode: String(ino),
});

const isSame = (a: Stamp | undefined, b: Stamp | undefined): boolean =>
  a !== undefined && a.size === b?.size && a.mtime === b.mtime && a.ctime === b.ctime && a.inode === b.inode;

function kindOf(stats: BigIntStats): string {
  if (stats.isFIFO()) return 'a pipe';
  if (stats.isSocket()) return 'a socket';
  return stats.isDirectory() ? 'a folder' : 'a device';
}

const digestOf = (file: InputFile): Promise<string> =>
  sha256Of(file.path).catch((error: unknown) => {
    throw unreadable(file.name, error);
  });
