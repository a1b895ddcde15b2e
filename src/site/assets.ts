/**
 * Files of a build that do not depend on the data: scripts and styles of the explorer, the client and the API page. The
 * first call in a process bundles the scripts from source; an installed package has them already.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BuildOptions } from 'esbuild';
import { BuildError, messageOf } from '../errors.ts';
import { program } from '../program.ts';
import { docsFiles } from './apiDocsPage.ts';

/** Path in the output, and content of the file. */
export type OwnFile = readonly [path: string, content: Buffer];

/** Bundled scripts: path in the output without extension, and path below `src`. */
const SCRIPTS: Readonly<Record<string, string>> = {
  client: 'serve/client/mirrorClient.ts',
  lists: 'serve/client/lists.ts',
  proofs: 'serve/client/proofs.ts',
  pending: 'serve/client/pending.ts',
  'docs/init': 'site/apiDocs/apiPage.ts',
  explorer: 'site/explorer/main.ts',
  charts: 'site/explorer/charts.ts',
  details: 'site/explorer/details.ts',
  download: 'site/explorer/saveCsv.ts',
};
const STYLES: Readonly<Record<string, string>> = { explorer: 'site/explorer/explorer.css' };

/** Time limit for the bundler, which normally takes 0.1 seconds. */
const TIMEOUT_MS = 60_000;
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

let assets: readonly OwnFile[] | undefined;

/** Returns all site assets. Throws a BuildError if a source file or package is missing, or if the bundler fails. */
export function siteAssets(): readonly OwnFile[] {
  assets ??= program.assets === undefined ? made() : filesIn(program.assets);
  return assets;
}

function made(): OwnFile[] {
  try {
    return [...bundles(), ['client.d.ts', readFileSync(inSource('serve/client/client.d.ts'))], ...docsFiles()];
  } catch (error) {
    throw new BuildError(`the scripts of the explorer cannot be bundled: ${messageOf(error)}`, ['Run npm ci, then build again.']);
  }
}

/** Reads all files of a folder. Returns paths relative to the folder. Throws a BuildError if a file cannot be read. */
function filesIn(folder: string): OwnFile[] {
  try {
    const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
    const files = paths.filter((path) => statSync(join(folder, path)).isFile());
    return files.map((path) => [path.replaceAll('\\', '/'), readFileSync(join(folder, path))]);
  } catch (error) {
    throw new BuildError(`the scripts of the explorer cannot be read: ${messageOf(error)}`, ['Install the package again.']);
  }
}

const inSource = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** Bundles all scripts and styles in one child process. */
function bundles(): OwnFile[] {
  const folder = join(inSource('.'), 'out');
  const options = [SCRIPTS, STYLES].map(
    (entries): BuildOptions => ({
      entryPoints: Object.fromEntries(Object.entries(entries).map(([path, source]) => [path, inSource(source)])),
      outdir: folder,
      bundle: true,
      // Separate bundles: the explorer loads charts.js, details.js and download.js later, and the client loads
      // lists.js, proofs.js and pending.js later.
      external: ['./charts.js', './details.js', './download.js', './lists.js', './proofs.js', './pending.js'],
      minify: true,
      write: false,
      format: 'esm',
      target: 'es2022',
      charset: 'utf8',
    }),
  );
  const { error, status, stdout, stderr } = spawnSync(process.execPath, [inSource('site/bundle.cjs'), JSON.stringify(options)], {
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
    maxBuffer: MAX_OUTPUT_BYTES,
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(/^.*(?:Error|error).*$/m.exec(stderr)?.[0] ?? `the bundler ended with exit code ${status}`);
  const files = JSON.parse(stdout) as readonly (readonly [path: string, text: string])[];
  return files.map(([path, text]) => [path.slice(folder.length + 1).replaceAll('\\', '/'), Buffer.from(text)]);
}
