// Runs a command of this folder: `node scripts/run.cjs build --help`. Loads tsx in this process, without the extra process and thread of
// the `tsx` command, so a command starts in half the time. This helps builds that run after every block.
const { existsSync, readdirSync } = require('node:fs');
const [command = ''] = process.argv.splice(2, 1);
const file = `${__dirname}/${command}.ts`;
require('../src/loadTypeScript.cjs');
if (/^[A-Za-z]+$/.test(command) && existsSync(file)) {
  require(file);
} else {
  const { unknownCommand } = require('../src/cli/nearestWord.ts');
  const commands = readdirSync(__dirname).flatMap((name) => (name.endsWith('.ts') ? [name.slice(0, -3)] : []));
  process.stderr.write(unknownCommand(command, commands));
  process.exitCode = 1;
}
