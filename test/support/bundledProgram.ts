/**
 * Replaces src/program.ts in the bundles of tests (bundles.ts). Commands are named as in a checkout (`npm run`), but
 * run from the bundles.
 */
import { fileURLToPath } from 'node:url';
import type { Program } from '../../src/program.ts';

export const program: Program = {
  callOf: (command) => (command === 'serve' ? 'npm start --' : `npm run ${command} --`),
  runner: fileURLToPath(new URL('./rune-mirror.cjs', import.meta.url)),
  writer: { script: new URL('./writer.cjs', import.meta.url), argv: [] },
  upload: fileURLToPath(new URL('./upload.sh', import.meta.url)),
  sample: fileURLToPath(new URL('./sample', import.meta.url)),
  settingsSchema: './docs/rune-mirror.schema.json',
  assets: fileURLToPath(new URL('./assets', import.meta.url)),
};

export const plainCall = (command: string): string => program.callOf(command).replace(/ --$/, '');
