// Runs a command of this folder: `node scripts/run.cjs build --help`. This is tsx without its process and its thread: a builder that
// runs after every block starts in half the time.
require('tsx/cjs/api').register();
const [command] = process.argv.splice(2, 1);
require(`./${command}.ts`);
