/**
 * The files of a build that are the same for all data: scripts and styles of the pages for people, and the page of the API's description. Scripts are bundled
 * from this source when a build asks for them, once in a process.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BuildOptions } from 'esbuild';
import { BuildError, messageOf } from '../errors.ts';
import { docsFiles } from './apiDocsPage.ts';

/** A path in the output, and what it holds. */
export type OwnFile = readonly [path: string, content: Buffer];

/** What is bundled: paths in the output without their endings, and in this source. */
const SCRIPTS: Readonly<Record<string, string>> = {
  client: 'client/index.ts',
  'docs/init': 'site/apiDocs/startSwagger.ts',
  explorer: 'site/explorer/main.ts',
  charts: 'site/explorer/charts.ts',
};
const STYLES: Readonly<Record<string, string>> = { explorer: 'site/explorer/explorer.css' };

/** What is passed on as it is, as paths in this source, and what it is called. */
const COPIES: readonly (readonly [source: string, path: string])[] = [['client/client.d.ts', 'client.d.ts']];

/** Bundling takes a tenth of a second. */
const PATIENCE_MS = 60_000;
const MOST_BYTES = 16 * 1024 * 1024;

let assets: readonly OwnFile[] | undefined;

/** All of them. Throws a BuildError when this program is not whole, or the bundler cannot be run. */
export function siteAssets(): readonly OwnFile[] {
  if (assets !== undefined) return assets;
  try {
    const copies = COPIES.map(([source, path]): OwnFile => [path, readFileSync(inSource(source))]);
    assets = [...bundles([SCRIPTS, STYLES]), ...copies, ...docsFiles()];
    return assets;
  } catch (error) {
    throw new BuildError(`the scripts of the pages for people cannot be made: ${messageOf(error)}`, ['Run npm ci, then build again.']);
  }
}

const inSource = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** Bundles all in one process. */
function bundles(all: readonly Readonly<Record<string, string>>[]): OwnFile[] {
  const folder = join(inSource('.'), 'out');
  const options = all.map(
    (entries): BuildOptions => ({
      entryPoints: Object.fromEntries(Object.entries(entries).map(([path, source]) => [path, inSource(source)])),
      outdir: folder,
      bundle: true,
      // A bundle of its own, which the explorer asks for when there is something to draw.
      external: ['./charts.js'],
      minify: true,
      write: false,
      format: 'esm',
      target: 'es2022',
      charset: 'utf8',
    }),
  );
  const { error, status, stdout, stderr } = spawnSync(process.execPath, [inSource('site/bundle.cjs'), JSON.stringify(options)], {
    encoding: 'utf8',
    timeout: PATIENCE_MS,
    maxBuffer: MOST_BYTES,
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(/^.*(?:Error|error).*$/m.exec(stderr)?.[0] ?? `the bundler ended with exit code ${status}`);
  const files = JSON.parse(stdout) as readonly (readonly [path: string, text: string])[];
  return files.map(([path, text]) => [path.slice(folder.length + 1).replaceAll('\\', '/'), Buffer.from(text)]);
}
