// Bundles, in a process of its own: a bundler that cannot start its helper ends the process that asked for it, or never answers it.
// Takes a list of esbuild's options as JSON, and writes what came of all as JSON: paths and contents.
const { build } = require('esbuild');

Promise.all(JSON.parse(process.argv[2]).map((options) => build(options))).then(
  (results) =>
    process.stdout.write(JSON.stringify(results.flatMap(({ outputFiles }) => outputFiles.map(({ path, text }) => [path, text])))),
  (error) => {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  },
);
