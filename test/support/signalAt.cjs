/**
 * Preloaded with `node --require`: sends a signal to this process before one of its changes of files. SIGNAL_AT has the
 * name of the signal, and the number of the change, or a pattern of `FUNCTION PATH`. Each thread counts its own
 * changes. If SIGNAL_AT is `count`, sends none, and prints the number of the main thread's changes at the end.
 */
const fs = require('node:fs');
const { isMainThread } = require('node:worker_threads');

const [signal, at] = (process.env.SIGNAL_AT ?? 'count').split(' ');
let calls = 0;
for (const name of ['openSync', 'writeSync', 'writeFileSync', 'renameSync', 'linkSync', 'rmSync', 'fsyncSync', 'mkdirSync']) {
  const call = fs[name];
  fs[name] = (...args) => {
    calls += 1;
    const isDue = String(calls) === at || (Number.isNaN(Number(at)) && new RegExp(at).test(`${name} ${args[0]}`));
    if (signal !== 'count' && isDue) process.kill(process.pid, signal);
    return call(...args);
  };
}
if (signal === 'count' && isMainThread) process.on('exit', () => process.stderr.write(`${calls} changes\n`));
