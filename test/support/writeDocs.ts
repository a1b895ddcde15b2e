import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './cli.ts';
import { WRITTEN } from './writtenDocs.ts';

for (const [name, written] of Object.entries(WRITTEN)) {
  const path = join(ROOT, name);
  writeFileSync(path, written(readFileSync(path, 'utf8')));
}
