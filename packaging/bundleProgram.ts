/** Bundles the program: one file for each command and each kind of thread, with all packages except DuckDB. */
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Packages with native libraries, on which the package depends instead. */
export const NATIVE = ['@duckdb/node-api', '@duckdb/node-bindings'];

/** Commands that have a bundle: all in `scripts/` but those that need tests or benchmarks. */
const COMMANDS = ['build', 'export', 'init', 'keygen', 'pull', 'readRows', 'sample', 'serve', 'update', 'verify'];

/** Maps each bundle of the program to its entry point. */
const BUNDLES: Readonly<Record<string, string>> = {
  'rune-mirror': 'packaging/main.ts',
  ...Object.fromEntries(COMMANDS.map((name) => [name, `scripts/${name}.ts`])),
  writer: 'src/engine/render/writerThread.ts',
  block: 'src/pull/node/blockThread.ts',
};

/** Bundles into `folder`, with the module at `program` for src/program.ts. Returns the paths of all sources in the project. */
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
    // Keeps identifiers, which messages and stack traces contain.
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
