/**
 * Paths of the program's files, and the command lines that messages show. In the npm packages, packaging/program.ts
 * replaces this module.
 */
import { fileURLToPath } from 'node:url';

interface ThreadProgram {
  readonly script: URL;
  readonly argv: readonly string[];
}

export interface Program {
  /** Returns the command line of a command, ready for flags: `npm run build --`. */
  callOf(command: string): string;
  /** Script that runs a command in its own process. Its first argument is the name of the command. */
  readonly runner: string;
  /** Program of the threads that render pages. */
  readonly writer: ThreadProgram;
  readonly upload: string;
  /** Folder of the sample. */
  readonly sample: string;
  /** Path or URL of the JSON schema of settings files, for their field `$schema`. */
  readonly settingsSchema: string;
  /** Folder with the site's scripts and styles, ready to copy. Undefined if builds bundle them from source. */
  readonly assets: string | undefined;
}

export const program: Program = {
  callOf: (command) => (command === 'serve' ? 'npm start --' : `npm run ${command} --`),
  runner: fileURLToPath(new URL('../scripts/run.cjs', import.meta.url)),
  writer: { script: new URL('./loadThread.cjs', import.meta.url), argv: ['./engine/render/writerThread.ts'] },
  upload: fileURLToPath(new URL('../hosting/upload.sh', import.meta.url)),
  sample: fileURLToPath(new URL('../sample', import.meta.url)),
  settingsSchema: './docs/rune-mirror.schema.json',
  assets: undefined,
};

/** Returns the command line of a command without flags: `npm run build`. */
export const plainCall = (command: string): string => program.callOf(command).replace(/ --$/, '');
