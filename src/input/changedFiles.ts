/**
 * Finds the input files that changed since the last build. A file with the same size, times and inode is unchanged, and not opened. Others
 * are compared by the SHA-256 of their content, because a fresh checkout or a restored copy gives every file new times.
 */
import { createHash } from 'node:crypto';
import { type BigIntStats, createReadStream, existsSync, readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { attempt } from '../attempt.ts';
import { int, type Store, text, type Values } from '../duckdb/store.ts';
import { columns, type TableWith } from '../duckdb/table.ts';
import { InputError } from '../errors.ts';
import { CHECKSUM_ENDING, type InputFile } from './discover.ts';
import { readable, unreadable } from './unreadable.ts';

/** Columns of input files in the state. `id` is the `source` of their records. Times are in nanoseconds. `digest` is the SHA-256. */
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

export interface UnchangedFile extends NumberedFile {
  readonly form: string;
}

export interface Selection {
  readonly touched: readonly NumberedFile[];
  readonly unchanged: readonly UnchangedFile[];
  /** Removed files, and changed files with their old numbers. */
  readonly gone: readonly Pick<KnownFile, 'id' | 'form'>[];
  /** True if the state's list of files is outdated: a file is new or gone, or has a new name, time or content. */
  readonly isListStale: boolean;
  /** Rows of all files, for the table `files` of the state. Resolves when the digests of new files are computed. */
  readonly rows: Promise<readonly FileRow[]>;
  /** Returns the first of `files` that changed since the build began. Read again, it would put unchecked records into the output. */
  changed(files: Iterable<InputFile>): InputFile | undefined;
  /** Throws an InputError for the first new or changed file whose SHA-256 differs from its expected checksum. */
  checkDigests(): Promise<void>;
}

/** Compares `files` with `before`, the files of the last build. */
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
  const changed = (some: Iterable<InputFile>) => [...some].find(({ path }) => !isSame(stamps.get(path), stampIfThere(path)));
  const digests = (async () => {
    for (const { id, file, stamp, digest } of touched) {
      const found = digest ?? (await digestOf(file));
      // A file that changed meanwhile gets no digest, so the next build reads it again.
      rows.push({ id, name: file.name, digest: changed([file]) === undefined ? found : '', ...stamp });
    }
    return rows;
  })();
  // The build awaits this promise at its end. If it fails earlier, this handler keeps Node from ending because of an unhandled rejection.
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

/** Returns the SHA-256 of a file's content, 64 hex digits. */
export async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>) hash.update(chunk);
  return hash.digest('hex');
}

/** Names of files of rows, which end with the first digits of the SHA-256 (pages/filePaths.ts). */
const NAMED_BY_CONTENT = /^(?:[0-9]+-[0-9]+|runes)-([0-9a-f]{16})(?:\.runes)?\.parquet$/;

/**
 * Returns the SHA-256 in the file's checksum file, or its first digits in the name of a published file of rows. DuckDB does not check the
 * checksums of the Parquet format itself. Undefined without either. Throws an InputError for an invalid checksum file.
 */
function expectedDigits(file: InputFile): string | undefined {
  const path = `${file.path}${CHECKSUM_ENDING}`;
  const text = existsSync(path) ? readable(`${file.name}${CHECKSUM_ENDING}`, () => readFileSync(path, 'utf8')) : undefined;
  if (text === undefined) return NAMED_BY_CONTENT.exec(basename(file.path))?.[1];
  const [, sha256] = /^([0-9a-f]{64})(?:[ \t].*)?\s*$/.exec(text) ?? [];
  if (sha256 !== undefined) return sha256;
  throw new InputError(`${file.name}${CHECKSUM_ENDING} is not a valid checksum file`, [
    `It must contain 64 hex digits, two spaces and the name ${basename(file.path)}, as sha256sum writes them.`,
  ]);
}
