// Runs esbuild in a child process of the build, because esbuild ends the process that calls it, or never answers, if
// its helper program cannot start. Takes a JSON list of esbuild options as its argument, and writes a JSON list of
// [path, content].
const { build } = require('esbuild');

Promise.all(JSON.parse(process.argv[2]).map((options) => build(options))).then(
  (results) =>
    process.stdout.write(JSON.stringify(results.flatMap(({ outputFiles }) => outputFiles.map(({ path, text }) => [path, text])))),
  (error) => {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  },
);
