/**
 * Files of a build that do not depend on the data: scripts and styles. An installed package has the bundled scripts already. Otherwise the
 * first build after a change of their sources bundles them, and later processes read the bundles from a cache.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import type { BuildOptions } from 'esbuild';
import { replaceFile, writeNew } from '../disk/replaceFile.ts';
import { BuildError, messageOf } from '../errors.ts';
import { program } from '../program.ts';
import { clientTypes } from './clientTypes.ts';

export type OwnFile = readonly [path: string, content: Buffer];

/** Bundled scripts and styles: path in the output without extension, and path below `src`. */
const BUNDLES: readonly (readonly [out: string, source: string])[] = [
  ['client', 'serve/client/mirrorClient.ts'],
  ['lists', 'serve/client/lists.ts'],
  ['proofs', 'serve/client/proofs.ts'],
  ['pending', 'serve/client/pending.ts'],
  ['docs/init', 'site/apiDocs/apiPage.ts'],
  ['explorer', 'site/explorer/main.ts'],
  ['details', 'site/explorer/details.ts'],
  ['listPage', 'site/explorer/listPage.ts'],
  ['download', 'site/explorer/download.ts'],
  ['explorer', 'site/explorer/explorer.css'],
];

/** Time limit for the bundler, which normally takes 0.1 seconds. */
const TIMEOUT_MS = 60_000;
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

let assets: readonly OwnFile[] | undefined;

/** Returns all site assets. Throws a BuildError if a source file or package is missing, or if the bundler fails. */
export function siteAssets(): readonly OwnFile[] {
  const folder = program.assets;
  try {
    assets ??= folder === undefined ? bundles(join(PROJECT, 'node_modules/.cache/rune-activity-mirror/bundles.json')) : filesIn(folder);
    return assets;
  } catch (error) {
    const [verb, advice] = folder === undefined ? ['bundled', 'Run npm ci, then build again.'] : ['read', 'Install the package again.'];
    throw new BuildError(`the scripts of the explorer cannot be ${verb}: ${messageOf(error)}`, [advice]);
  }
}

function filesIn(folder: string): OwnFile[] {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  const files = paths.filter((path) => statSync(join(folder, path)).isFile());
  return files.map((path) => [path.replaceAll('\\', '/'), readFileSync(join(folder, path))]);
}

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const inSource = (path: string): string => join(PROJECT, 'src', path);

const CLIENT_TYPES = 'src/serve/client/client.d.ts';

/** Files on which bundles depend, but which esbuild does not report: options, bundler, versions of packages, types. */
const OTHER_SOURCES = [
  ...['src/site/assets.ts', 'src/site/bundle.cjs', 'tsconfig.json', 'package-lock.json'],
  ...[CLIENT_TYPES, 'src/site/clientTypes.ts'],
  ...['src/format/formatVersion.ts', 'src/pages/blockAndTransactionLists.ts', 'src/pages/mirrorOptions.ts'],
];

type Bundles = readonly (readonly [path: string, text: string])[];

/** Content of the cache: bundles, and the SHA-256 of each file on which they depend. */
interface Cached {
  readonly files: Bundles;
  readonly sources: readonly (readonly [path: string, sha256: string])[];
}

/** Returns all scripts and styles. Bundles them again unless the file `cache` was made from the current sources. */
export function bundles(cache: string): OwnFile[] {
  const files = readCache(cache) ?? bundle(cache);
  return files.map(([path, text]) => [path, Buffer.from(text)]);
}

/** Reads the cache. Returns undefined if there is none, if it is damaged, or if a source has changed. */
function readCache(path: string): Bundles | undefined {
  try {
    const { sources, files } = JSON.parse(readFileSync(path, 'utf8')) as Cached;
    return sources.every(([source, sha256]) => sha256Of(source) === sha256) ? files : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Writes the cache, unless a source has changed since `begin`, when the bundler was started. `inputs` are paths below the project. Without
 * the cache, each process bundles for itself, so an error does no harm.
 */
function writeCache(path: string, files: Bundles, inputs: readonly string[], begin: number): void {
  try {
    const paths = [...inputs, ...OTHER_SOURCES];
    if (paths.some((source) => statSync(join(PROJECT, source)).mtimeMs >= begin)) return;
    const cached: Cached = { sources: paths.map((source) => [source, sha256Of(source)]), files };
    mkdirSync(dirname(path), { recursive: true });
    replaceFile(path, (temporary) => writeNew(temporary, Buffer.from(JSON.stringify(cached))), `${path}.${process.pid}`);
  } catch {
    // Stays without a cache: the folder of the package may be read-only, or one of OTHER_SOURCES may be missing.
  }
}

const sha256Of = (source: string): string =>
  createHash('sha256')
    .update(readFileSync(join(PROJECT, source)))
    .digest('hex');

/** Bundles all scripts and styles in one child process. Writes the cache. */
function bundle(cache: string): Bundles {
  const begin = Date.now();
  const folder = join(inSource('.'), 'out');
  const options: BuildOptions = {
    absWorkingDir: PROJECT,
    entryPoints: BUNDLES.map(([out, source]) => ({ out, in: inSource(source) })),
    outdir: folder,
    bundle: true,
    // Separate bundles: the explorer loads the first three later, and the client the others.
    external: ['./details.js', './listPage.js', './download.js', './lists.js', './proofs.js', './pending.js'],
    minify: true,
    write: false,
    metafile: true,
    format: 'esm',
    target: 'es2022',
    charset: 'utf8',
  };
  const { error, status, stdout, stderr } = spawnSync(process.execPath, [inSource('site/bundle.cjs'), JSON.stringify(options)], {
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
    maxBuffer: MAX_OUTPUT_BYTES,
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(/^.*(?:Error|error).*$/m.exec(stderr)?.[0] ?? `the bundler ended with exit code ${status}`);
  const { files, inputs } = JSON.parse(stdout) as { readonly files: Bundles; readonly inputs: readonly string[] };
  const named: Bundles = [
    ...files.map(([path, text]) => [path.slice(folder.length + 1).replaceAll('\\', '/'), text] as const),
    ['client.d.ts', clientTypes(readFileSync(join(PROJECT, CLIENT_TYPES), 'utf8'))],
  ];
  const schemas = readdirSync(inSource('contract')).map((name) => `src/contract/${name}`);
  writeCache(cache, named, [...inputs, ...schemas], begin);
  return named;
}
