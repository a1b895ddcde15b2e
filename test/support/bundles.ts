/**
 * Bundles the program once for all files of a test run that start many processes. A bundle starts in half of the CPU time that a checkout
 * needs, because it compiles no TypeScript, and because its site assets are ready.
 */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleProgram } from '../../packaging/bundleProgram.ts';
import { siteAssets } from '../../src/site/assets.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export default async function setup(): Promise<(() => void) | undefined> {
  // Each project of a run calls this function, but only the first call makes the bundles.
  if (process.env['MIRROR_TEST_BUNDLES'] !== undefined) return undefined;
  const folder = mkdtempSync(join(process.env['MIRROR_TEST_FOLDER'] ?? tmpdir(), 'program-'));
  await bundleProgram(folder, join(ROOT, 'test/support/bundledProgram.ts'));
  for (const [path, content] of siteAssets()) {
    mkdirSync(dirname(join(folder, 'assets', path)), { recursive: true });
    writeFileSync(join(folder, 'assets', path), content);
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  symlinkSync(join(ROOT, 'hosting/upload.sh'), join(folder, 'upload.sh'));
  symlinkSync(join(ROOT, 'sample'), join(folder, 'sample'));
  process.env['MIRROR_TEST_BUNDLES'] = join(folder, 'rune-mirror.cjs');
  return () => rmSync(folder, { recursive: true, force: true });
}
