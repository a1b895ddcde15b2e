// Runs a command with other limits: `node limited.cjs build --help`. scripts/run.cjs runs it with the default limits.
// The variable REHEARSAL_LIMITS is JSON with two fields. `changes` has the limits that differ from the default.
// `crossed` is a file, to which each process adds a line with the limits that it crossed. Processes that the command
// starts have the same limits.
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
