/** Tests the bundled scripts and their cache. The cache is used only if no source has changed. Otherwise the scripts are bundled again. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { expect, it } from 'vitest';
import { bundles } from '../../src/site/assets.ts';
import { temporaryFolder } from '../support/build.ts';
import { ROOT } from '../support/cli.ts';

it('reads bundles from the cache unless a source has changed or the cache is damaged', () => {
  const cache = join(temporaryFolder(), 'folder/bundles.json');
  const made = bundles(cache);
  expect(made.map(([path]) => path)).toContain('explorer.js');
  const text = readFileSync(cache, 'utf8');
  const cached = JSON.parse(text) as { sources: [string, string][]; files: [string, string][] };
  expect(cached.sources.map(([path]) => path)).toEqual(
    expect.arrayContaining(['src/site/explorer/main.ts', 'src/site/explorer/explorer.css', 'src/site/assets.ts']),
  );
  const marked = { ...cached, files: [['explorer.js', 'from the cache']] };
  writeFileSync(cache, JSON.stringify(marked));
  expect(bundles(cache)).toEqual([['explorer.js', Buffer.from('from the cache')]]);
  const [[source, sha256] = ['', ''], ...others] = cached.sources;
  const changed = { ...marked, sources: [[source, sha256.replace(/^./, (digit) => (digit === '0' ? '1' : '0'))], ...others] };
  const missing = { ...marked, sources: [...cached.sources, ['src/site/none.ts', sha256]] };
  for (const other of [JSON.stringify(changed), JSON.stringify(missing), text.slice(0, 1000), '[]']) {
    writeFileSync(cache, other);
    expect(bundles(cache)).toEqual(made);
    expect(readFileSync(cache, 'utf8')).toBe(text);
  }
  // The cache cannot be written at this path. The scripts must be bundled all the same.
  expect(bundles(join(cache, 'bundles.json'))).toEqual(made);
});

/** Uses of `instanceof` whose class several bundles have, but whose errors never come from another bundle. */
const OWN_ERRORS = ['src/format/root.ts FormatError', 'src/pages/respond.ts PageFormatError'];

it.each(['serve/client/mirrorClient', 'site/explorer/main'])(
  'no class that %s shares with a bundle that it loads is recognised by its identity',
  async (first) => {
    const later = ['serve/client/lists', 'serve/client/proofs', 'serve/client/pending'];
    const parts = first.startsWith('site') ? ['details', 'listPage', 'download'].map((name) => `site/explorer/${name}`) : [];
    const entries = [first, ...later, ...parts];
    const { metafile } = await build({
      absWorkingDir: ROOT,
      entryPoints: entries.map((path) => `src/${path}.ts`),
      outdir: temporaryFolder(),
      bundle: true,
      write: false,
      metafile: true,
      format: 'esm',
      external: entries.map((path) => `./${path.split('/').at(-1)}.js`),
    });
    const files = Object.values(metafile.outputs).flatMap(({ inputs }) =>
      Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
    );
    const texts = new Map(files.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]));
    const shared = [...texts].filter(([path]) => files.indexOf(path) !== files.lastIndexOf(path));
    const byIdentity = shared.flatMap(([, text]) =>
      [...text.matchAll(/^export class (\w+)(.*?)^}$/gms)].filter(([, , body = '']) => !body.includes('[Symbol.hasInstance]')),
    );
    const names = new Set(byIdentity.map(([, name]) => name));
    expect(names.has('ArchiveError') && !names.has('MissingFileError')).toBe(true);
    const found = [...texts].flatMap(([path, text]) =>
      [...text.matchAll(/instanceof (\w+)/g)].flatMap(([, name = '']) => (names.has(name) ? [`${path} ${name}`] : [])),
    );
    expect(found.sort()).toEqual(OWN_ERRORS);
  },
);
