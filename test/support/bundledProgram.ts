/**
 * Replaces src/program.ts in the bundles of tests (bundles.ts). Commands are named as in a checkout (`npm run`), but run from the bundles.
 */
import { fileURLToPath } from 'node:url';
import type { Program, ThreadProgram } from '../../src/program.ts';

const thread = (bundle: string): ThreadProgram => ({ script: new URL(`./${bundle}.cjs`, import.meta.url), argv: [] });

export const program: Program = {
  callOf: (command) => (command === 'serve' ? 'npm start --' : `npm run ${command} --`),
  runner: fileURLToPath(new URL('./rune-mirror.cjs', import.meta.url)),
  threads: { writer: thread('writer'), block: thread('block') },
  upload: fileURLToPath(new URL('./upload.sh', import.meta.url)),
  sample: fileURLToPath(new URL('./sample', import.meta.url)),
  settingsSchema: './docs/rune-mirror.schema.json',
  assets: fileURLToPath(new URL('./assets', import.meta.url)),
};

export const plainCall = (command: string): string => program.callOf(command).replace(/ --$/, '');
