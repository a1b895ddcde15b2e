/** Replaces src/program.ts in a package. */
import { fileURLToPath } from 'node:url';
import type { Program, ThreadProgram } from '../src/program.ts';

const thread = (bundle: string): ThreadProgram => ({ script: new URL(`./${bundle}.cjs`, import.meta.url), argv: [] });

export const program: Program = {
  callOf: (command) => `rune-mirror ${command}`,
  runner: fileURLToPath(new URL('./rune-mirror.cjs', import.meta.url)),
  threads: { writer: thread('writer'), block: thread('block') },
  upload: fileURLToPath(new URL('./upload.sh', import.meta.url)),
  sample: fileURLToPath(new URL('./sample', import.meta.url)),
  settingsSchema: './node_modules/rune-activity-mirror/rune-mirror.schema.json',
  assets: fileURLToPath(new URL('./assets', import.meta.url)),
};

export const plainCall = (command: string): string => program.callOf(command);
