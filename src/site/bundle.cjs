// Runs esbuild in a child process of the build: if esbuild cannot start its helper program, it ends the process that
// calls it, or never answers. Takes a JSON list of esbuild options as its argument. Writes JSON: `files` is a list of
// [path, content], and `inputs` a list of the paths of all sources.
const { build } = require('esbuild');

Promise.all(JSON.parse(process.argv[2]).map((options) => build(options))).then(
  (results) => {
    const files = results.flatMap(({ outputFiles }) => outputFiles.map(({ path, text }) => [path, text]));
    const inputs = [...new Set(results.flatMap(({ metafile }) => Object.keys(metafile.inputs)))];
    process.stdout.write(JSON.stringify({ files, inputs }));
  },
  (error) => {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  },
);
