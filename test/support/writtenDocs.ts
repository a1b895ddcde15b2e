/**
 * `npm run docs`: writes everything that is generated from the source: the picture of the folders, the flags, and the
 * JSON schema of the settings file.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { settingsSchema } from '../../src/setup/settingsSchema.ts';
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
writeFileSync(join(ROOT, 'docs/rune-mirror.schema.json'), settingsSchema());
