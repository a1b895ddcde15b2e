/** Takes the screenshots in docs/screenshots from the sample, with the current version of the pages. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContextOptions } from 'playwright-core';
import { testBuild } from '../support/build.ts';
import { ROOT } from '../support/cli.ts';
import { startServer } from '../support/server.ts';
import { closeBrowser, openPage, revisit } from './support.ts';

/** Time that the page shows as the current time: a few minutes after the sample's last block. */
const NOW = new Date((1_713_691_167 + 240) * 1000);

const PICTURES: readonly (readonly [name: string, options: BrowserContextOptions])[] = [
  ['overview', { viewport: { width: 1280, height: 1180 } }],
  ['overview-dark', { viewport: { width: 1280, height: 1180 }, colorScheme: 'dark' }],
];

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'screenshots-'));
  const to = join(ROOT, 'docs/screenshots');
  mkdirSync(to, { recursive: true });
  await testBuild(folder, { inputs: [join(ROOT, 'sample')], layout: 'archive', lists: true });
  const host = await startServer(folder);
  for (const [name, options] of PICTURES) {
    const { page, close } = await openPage(`http://127.0.0.1:${host.port}/`, { ...options, reducedMotion: 'reduce' });
    // With a fixed clock, every run shows the same relative times.
    await page.clock.setFixedTime(NOW);
    await revisit(page);
    await page.screenshot({ path: join(to, `${name}.png`) });
    await close();
  }
  await closeBrowser();
  await host.close();
  rmSync(folder, { recursive: true });
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
