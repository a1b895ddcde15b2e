/** Paths of the program, and command lines that messages show. In the npm packages, packaging/program.ts replaces this module. */
import { fileURLToPath } from 'node:url';

export interface ThreadProgram {
  readonly script: URL;
  readonly argv: readonly string[];
}

export interface Program {
  /** Returns the command line of a command, ready for flags: `npm run build --`. */
  callOf(command: string): string;
  /** Script that runs a command in its own process. Its first argument is the name of the command. */
  readonly runner: string;
  /** Programs of the threads that render pages, and parse blocks (pull/node/blockParser.ts). */
  readonly threads: Readonly<Record<'writer' | 'block', ThreadProgram>>;
  readonly upload: string;
  readonly sample: string;
  /** Path or URL of the JSON schema of settings files, for their field `$schema`. */
  readonly settingsSchema: string;
  /** Folder with the site's scripts and styles, ready to copy. Undefined if builds bundle them from source. */
  readonly assets: string | undefined;
}

const thread = (path: string): ThreadProgram => ({ script: new URL('./loadThread.cjs', import.meta.url), argv: [path] });

export const program: Program = {
  callOf: (command) => (command === 'serve' ? 'npm start --' : `npm run ${command} --`),
  runner: fileURLToPath(new URL('../scripts/run.cjs', import.meta.url)),
  threads: { writer: thread('./engine/render/writerThread.ts'), block: thread('./pull/node/blockThread.ts') },
  upload: fileURLToPath(new URL('../hosting/upload.sh', import.meta.url)),
  sample: fileURLToPath(new URL('../sample', import.meta.url)),
  settingsSchema: './docs/rune-mirror.schema.json',
  assets: undefined,
};

/** Returns the command line of a command without flags: `npm run build`. */
export const plainCall = (command: string): string => program.callOf(command).replace(/ --$/, '');
