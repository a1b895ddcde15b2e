/** Builds and folders for tests. */
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Log, SummaryRow } from '../../src/cli/log.ts';
import { CliError } from '../../src/errors.ts';
import type { Dialect, Encoding, Layout } from '../../src/pages/site.ts';
import { build } from '../../src/pipeline/build.ts';
import type { BuildOptions } from '../../src/pipeline/options.ts';
import type { BuildResult } from '../../src/pipeline/report.ts';
import { type Store, text } from '../../src/store/duckdb.ts';

/** The recorded data set; see test/fixtures/README.md. */
export const CONFORMANCE = new URL('../fixtures/conformance/', import.meta.url).pathname;
export const CONFORMANCE_INPUTS = [join(CONFORMANCE, 'ledger.csv'), join(CONFORMANCE, 'runes.csv')];

/** A fresh folder, removed at the end of the run (see globalSetup.ts). */
export const temporaryFolder = (): string => mkdtempSync(join(process.env['MIRROR_TEST_FOLDER'] ?? tmpdir(), 'test-'));

/** A log that keeps what is said. */
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
  error(): void {}
}

export interface TestBuild extends Partial<Omit<BuildOptions, 'inputs' | 'site'>> {
  readonly inputs: readonly string[];
  readonly layout?: Layout;
  readonly dialect?: Dialect;
  readonly pageSizes?: readonly number[];
  readonly operationPages?: boolean;
  readonly compress?: readonly Encoding[];
  readonly parquet?: boolean;
  readonly log?: Log;
}

/** Builds into `out`, with the command's defaults. */
export async function testBuild(out: string, options: TestBuild): Promise<BuildResult> {
  const { inputs, layout = 'files', dialect = 'contract', pageSizes = [20, 60], operationPages = true, ...others } = options;
  const { compress = [], parquet = false, log = new RecordingLog(), ...rest } = others;
  return build(
    {
      inputs,
      blocks: undefined,
      out,
      cache: `${out}.cache`,
      site: { layout, dialect, pageSizes, operationPages, compress, parquet },
      siteUrl: undefined,
      memoryLimit: '1GB',
      threads: 1,
      full: false,
      dryRun: false,
      // A disk that other work writes to takes seconds for it.
      sync: false,
      ...rest,
    },
    log,
  );
}

/** The error of a build that must fail. */
export async function failedBuild(out: string, options: TestBuild): Promise<CliError> {
  try {
    await testBuild(out, options);
  } catch (error) {
    if (error instanceof CliError) return error;
    throw error;
  }
  throw new Error('the build succeeded');
}

/** All rows of a query, in a test that compares whole rows. */
export async function rowsOf(sql: string, store: Store): Promise<Record<string, unknown>[]> {
  const rows = await store.rows(`SELECT to_json(r)::VARCHAR AS row FROM (${sql}) AS r`, { row: text });
  return rows.map(({ row }) => JSON.parse(row) as Record<string, unknown>);
}

/** Every file below a folder: path to the hash of its bytes. */
export function tree(folder: string): Record<string, string> {
  return Object.fromEntries(
    filesBelow(folder).map((path) => [
      path,
      createHash('sha256')
        .update(readFileSync(join(folder, path)))
        .digest('hex')
        .slice(0, 16),
    ]),
  );
}

/** Paths of all files below a folder, sorted. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => statSync(join(folder, path)).isFile())
    .sort();
}

/** Writes files below a folder. */
export function writeFiles(folder: string, files: Readonly<Record<string, string | Uint8Array>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
}
