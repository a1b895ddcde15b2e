/**
 * Tests the cache of bundled scripts. It is used only if no source has changed. Otherwise the scripts are bundled
 * again.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { bundles } from '../../src/site/assets.ts';
import { temporaryFolder } from '../support/build.ts';

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
