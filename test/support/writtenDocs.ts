/**
 * `npm run docs`: writes everything that is generated from the source: the picture of the folders, and the JSON schema of
 * the settings file.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { settingsSchema } from '../../src/setup/settingsSchema.ts';
import { ROOT } from './cli.ts';
import { withPicture } from './imports.ts';

const path = join(ROOT, 'docs/architecture.md');
writeFileSync(path, withPicture(readFileSync(path, 'utf8')));
writeFileSync(join(ROOT, 'docs/rune-mirror.schema.json'), settingsSchema());
