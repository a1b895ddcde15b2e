// Runs a command with other limits, as scripts/run.cjs does with the default ones: `node limited.cjs build --help`. The
// variable REHEARSAL_LIMITS has as JSON `changes`, limits other than the default ones, and `crossed`, a file that gets a line
// with the limits that this process crossed. The processes that a command starts have the same limits.
const { appendFileSync } = require('node:fs');
const unregister = require('tsx/cjs/api').register();
const { crossings, LIMITS } = require('../../src/limits.ts');
const { limitsWith } = require('../support/limits.ts');
const { program } = require('../../src/program.ts');
unregister();
const { changes, crossed } = JSON.parse(process.env.REHEARSAL_LIMITS);
Object.assign(LIMITS, limitsWith(changes));
program.runner = __filename;
process.on('exit', () => appendFileSync(crossed, `${JSON.stringify([...crossings])}\n`));
require('../../scripts/run.cjs');
