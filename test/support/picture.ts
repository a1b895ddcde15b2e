/** `npm run picture`: draws the picture in docs/architecture.md anew, from the imports of the source. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './cli.ts';
import { withPicture } from './imports.ts';

const path = join(ROOT, 'docs/architecture.md');
writeFileSync(path, withPicture(readFileSync(path, 'utf8')));
