/** Bundles the program: one file for each command and each kind of thread, with all packages but DuckDB, whose library is native. */
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Packages with native libraries: dependencies of the package, not part of its bundles. */
export const NATIVE = ['@duckdb/node-api', '@duckdb/node-bindings'];

/** Bundles of the program, and their entry points. */
const BUNDLES: Readonly<Record<string, string>> = {
  'rune-mirror': 'packaging/main.ts',
  build: 'packaging/build.ts',
  pull: 'scripts/pull.ts',
  init: 'scripts/init.ts',
  update: 'scripts/update.ts',
  keygen: 'scripts/keygen.ts',
  export: 'scripts/export.ts',
  readRows: 'scripts/readRows.ts',
  sample: 'scripts/sample.ts',
  serve: 'scripts/serve.ts',
  verify: 'scripts/verify.ts',
  writer: 'src/engine/render/writerThread.ts',
  digest: 'src/engine/archive/digestThread.ts',
  start: 'src/pull/node/startThread.ts',
};

/**
 * Bundles the program into `folder`, with the module at `program` in the place of src/program.ts. Returns the paths of
 * all sources, relative to the project.
 */
export async function bundleProgram(folder: string, program: string): Promise<string[]> {
  const ownProgram: Plugin = {
    name: 'program',
    setup({ onResolve }) {
      onResolve({ filter: /\/program\.ts$/ }, () => ({ path: program }));
    },
  };
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: BUNDLES,
    outdir: folder,
    outExtension: { '.js': '.cjs' },
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    // Names of functions and classes are part of messages and stacks.
    minifySyntax: true,
    minifyWhitespace: true,
    charset: 'utf8',
    legalComments: 'none',
    external: [...NATIVE, 'pg-native'],
    plugins: [ownProgram],
    // CommonJS has no import.meta.
    banner: { js: "const bundleUrl=require('node:url').pathToFileURL(__filename).href;" },
    define: { 'import.meta.url': 'bundleUrl' },
    metafile: true,
  });
  return Object.keys(metafile.inputs);
}
