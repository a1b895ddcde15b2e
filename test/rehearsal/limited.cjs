// Runs a command with other limits: `node limited.cjs build --help`. scripts/run.cjs does the same with the default
// limits. The variable REHEARSAL_LIMITS is JSON with the fields `changes` (limits that differ from the default) and
// `crossed` (a file that gets a line with the limits that this process crossed). Processes that a command starts have
// the same limits.
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
