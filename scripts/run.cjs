// Runs a command of this folder: `node scripts/run.cjs build --help`. This is tsx without its process and its thread: a builder that
// runs after every block starts in half the time.
const { existsSync, readdirSync } = require('node:fs');
const [command = ''] = process.argv.splice(2, 1);
const file = `${__dirname}/${command}.ts`;
if (/^[A-Za-z]+$/.test(command) && existsSync(file)) {
  require('tsx/cjs/api').register();
  require(file);
} else {
  const commands = readdirSync(__dirname).filter((name) => name.endsWith('.ts'));
  process.stderr.write(
    `Error: there is no command ${JSON.stringify(command)}; there are ${commands.map((name) => name.slice(0, -3)).join(', ')}\n`,
  );
  process.exitCode = 1;
}
