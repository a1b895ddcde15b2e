/**
 * `npm run docs`: writes the parts of documents that are generated from the source: the picture of the folders, and the
 * flags.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './cli.ts';
import { withFlags } from './flagTables.ts';
import { withPicture } from './imports.ts';

for (const [page, write] of [
  ['docs/architecture.md', withPicture],
  ['docs/commands.md', withFlags],
] as const) {
  const path = join(ROOT, page);
  writeFileSync(path, write(readFileSync(path, 'utf8')));
}
