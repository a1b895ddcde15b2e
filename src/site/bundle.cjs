// Bundles, in a process of its own: a bundler that cannot start its helper ends the process that asked for it, or never answers it.
// Takes esbuild's options as JSON, and writes what came of them as JSON: paths and contents.
const { build } = require('esbuild');

build(JSON.parse(process.argv[2])).then(
  ({ outputFiles }) => process.stdout.write(JSON.stringify(outputFiles.map(({ path, text }) => [path, text]))),
  (error) => {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  },
);
