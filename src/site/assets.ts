/**
 * The files of a build that are the same for all data: scripts and styles of the pages for people, and the page of the API's description. Scripts are bundled
 * from this source when a build asks for them, once in a process.
 */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { docsFiles } from './docsPage.ts';

/** A path in the output, and what it holds. */
export type OwnFile = readonly [path: string, content: Buffer];

/** What is bundled, as paths in this source, and what comes of it. */
const BUNDLES: readonly (readonly [entry: string, path: string])[] = [
  ['client/index.ts', 'client.js'],
  ['docs/init.ts', 'docs/init.js'],
  ['explorer/main.ts', 'explorer.js'],
  ['explorer/charts.ts', 'charts.js'],
  ['explorer/explorer.css', 'explorer.css'],
];

/** What is passed on as it is, as paths in this source, and what it is called. */
const COPIES: readonly (readonly [source: string, path: string])[] = [['client/client.d.ts', 'client.d.ts']];

let assets: Promise<readonly OwnFile[]> | undefined;

/** All of them. Rejects when this program is not whole. */
export function siteAssets(): Promise<readonly OwnFile[]> {
  assets ??= Promise.all([
    ...BUNDLES.map(([entry, path]) => bundle(entry, path)),
    ...COPIES.map(([source, path]) => copy(source, path)),
  ]).then((files) => [...files, ...docsFiles()]);
  return assets;
}

const inSource = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));

const copy = async (source: string, path: string): Promise<OwnFile> => [path, await readFile(inSource(source))];

async function bundle(entry: string, path: string): Promise<OwnFile> {
  const { outputFiles } = await build({
    entryPoints: [inSource(entry)],
    bundle: true,
    // A bundle of its own, which the explorer asks for when there is something to draw.
    external: ['./charts.js'],
    minify: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    charset: 'utf8',
  });
  const [output] = outputFiles;
  if (output === undefined) throw new Error(`${entry} cannot be bundled`);
  return [path, Buffer.from(output.contents)];
}
