// Runs esbuild in a child process of the build: if esbuild cannot start its helper program, it ends the process that
// calls it, or never answers. Takes the JSON of esbuild's options as its argument. Writes JSON: `files` is a list of
// [path, content], and `inputs` a list of the paths of all sources.
const { build } = require('esbuild');

build(JSON.parse(process.argv[2])).then(
  ({ outputFiles, metafile }) => {
    const files = outputFiles.map(({ path, text }) => [path, text]);
    process.stdout.write(JSON.stringify({ files, inputs: Object.keys(metafile.inputs) }));
  },
  (error) => {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  },
);
