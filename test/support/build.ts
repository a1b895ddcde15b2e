/** Runs builds for tests, and makes their folders. */
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { Log, SummaryRow } from '../../src/cli/log.ts';
import { type Store, text } from '../../src/duckdb/store.ts';
import { build } from '../../src/engine/build.ts';
import type { BuildOptions } from '../../src/engine/buildOptions.ts';
import type { BuildResult } from '../../src/engine/buildReport.ts';
import { CliError } from '../../src/errors.ts';
import { ARCHIVE_FOLDER, MANIFEST_PATH, SEARCH_FOLDER } from '../../src/pages/filePaths.ts';
import type { Dialect, Layout } from '../../src/pages/mirrorOptions.ts';
import { TEST_LIMITS } from './limits.ts';

/** The recorded data set; see test/fixtures/README.md. */
export const CONFORMANCE = new URL('../fixtures/conformance/', import.meta.url).pathname;
export const CONFORMANCE_INPUTS = [join(CONFORMANCE, 'ledger.csv'), join(CONFORMANCE, 'runes.csv')];

/** Returns a new folder, which is removed at the end of the run (see globalSetup.ts). */
export const temporaryFolder = (): string => mkdtempSync(join(process.env['MIRROR_TEST_FOLDER'] ?? tmpdir(), 'test-'));

/** Returns a new folder on the disk, for programs that do not read below /dev, and for images of a gigabyte. */
export const folderOnDisk = (): string => mkdtempSync(join(process.env['MIRROR_TEST_DISK'] ?? tmpdir(), 'test-'));

/** A log that stores its messages. */
export class RecordingLog implements Log {
  readonly notices: string[] = [];
  readonly summaryRows = new Map<string, string>();
  readonly infos: { event: string; message: string; figures: Readonly<Record<string, unknown>> | undefined }[] = [];
  info(event: string, message: string, figures?: Readonly<Record<string, unknown>>): void {
    this.infos.push({ event, message, figures });
  }
  summary(rows: readonly SummaryRow[]): void {
    for (const [label, text] of rows) this.summaryRows.set(label, text);
  }
  notice(message: string): void {
    this.notices.push(message);
  }
  failure(message: string): void {
    this.notices.push(message);
  }
  error(): void {}
}

export interface TestBuild extends Partial<Omit<BuildOptions, 'inputs' | 'site'>> {
  readonly inputs: readonly string[];
  readonly layout?: Layout;
  readonly dialect?: Dialect;
  readonly pageSizes?: readonly number[];
  readonly operationPages?: boolean;
  readonly parquet?: boolean;
  readonly log?: Log;
}

/** Builds into `out`, with the defaults of the build command. */
export async function testBuild(out: string, options: TestBuild): Promise<BuildResult> {
  const { inputs, layout = 'files', dialect = 'contract', pageSizes = [20, 60], operationPages = true, ...others } = options;
  const { parquet = false, log = new RecordingLog(), ...rest } = others;
  return build(
    {
      inputs,
      blocks: undefined,
      out,
      cache: `${out}.cache`,
      site: { layout, dialect, pageSizes, operationPages, parquet },
      siteUrl: undefined,
      memoryLimit: '1GB',
      threads: 1,
      full: false,
      dryRun: false,
      // Skips sync, which takes seconds on a busy disk.
      sync: false,
      changesDialect: true,
      objectSize: (layout === 'files' ? 0.125 : 8) * 1024 * 1024,
      // Omits the archive's lists: few tests need them, and they take a quarter of a build's time.
      lists: false,
      limits: TEST_LIMITS,
      keys: [],
      clock: () => new Date(),
      ...rest,
    },
    log,
  );
}

/** Returns the error of a build that must fail. */
export async function failedBuild(out: string, options: TestBuild): Promise<CliError> {
  try {
    await testBuild(out, options);
  } catch (error) {
    if (error instanceof CliError) return error;
    throw error;
  }
  throw new Error('the build succeeded');
}

/** Returns all rows of a query, for tests that compare complete rows. */
export async function rowsOf(sql: string, store: Store): Promise<Record<string, unknown>[]> {
  const rows = await store.rows(`SELECT to_json(r)::VARCHAR AS row FROM (${sql}) AS r`, { row: text });
  return rows.map(({ row }) => JSON.parse(row) as Record<string, unknown>);
}

/** Maps the path of every file below a folder to the hash of its bytes. */
export function tree(folder: string): Record<string, string> {
  return Object.fromEntries(filesBelow(folder).map((path) => [path, hashOf(path, readFileSync(join(folder, path)))]));
}

/**
 * Returns the tree of an output, without the files that depend on the runes table: etchings, and the search files, which contain symbols.
 */
export function treeOfRecords(out: string): Record<string, string> {
  const {
    lists: _,
    list_root: __,
    files: ___,
    bytes: ____,
    ...manifest
  } = JSON.parse(readFileSync(join(out, MANIFEST_PATH), 'utf8')) as Record<string, unknown>;
  const files = Object.entries(tree(out)).filter(([path]) => !path.startsWith(`${ARCHIVE_FOLDER}/`) && !path.startsWith(SEARCH_FOLDER));
  return { ...Object.fromEntries(files), [MANIFEST_PATH]: JSON.stringify(manifest) };
}

/** Caches the last file of each path, because tests compare similar trees, and comparing bytes is faster than hashing them. */
const last = new Map<string, { readonly bytes: Buffer; readonly hash: string }>();
const MOST_FILES = 20_000;

function hashOf(path: string, bytes: Buffer): string {
  const known = last.get(path);
  if (known?.bytes.equals(bytes) === true) return known.hash;
  const hash = createHash('sha256').update(bytes).digest('hex').slice(0, 16);
  if (last.size >= MOST_FILES) last.clear();
  last.set(path, { bytes, hash });
  return hash;
}

/** Returns the paths of all files below a folder, sorted. */
export function filesBelow(folder: string): string[] {
  const root = resolve(folder);
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .map((entry) => ({ entry, path: join(entry.parentPath, entry.name) }))
    .filter(({ entry, path }) => entry.isFile() || (entry.isSymbolicLink() && statSync(path).isFile()))
    .map(({ path }) => path.slice(root.length + 1))
    .sort();
}

/** Writes files below a folder. */
export function writeFiles(folder: string, files: Readonly<Record<string, string | Uint8Array>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
}
