/** `npm run picture`: draws the picture in docs/architecture.md anew, from the imports of the source. */
import { readFileSync, writeFileSync } from 'node:fs';
import { withPicture } from '../test/support/imports.ts';

const path = `${__dirname}/../docs/architecture.md`;
writeFileSync(path, withPicture(readFileSync(path, 'utf8')));
