/**
 * `npm start -- --workers N`: processes that answer on one port, under one that watches them.
 */
import cluster, { type Address } from 'node:cluster';
import { once } from 'node:events';
import type { Log } from '../../cli/log.ts';

const RUN = new URL('../../../scripts/run.cjs', import.meta.url).pathname;

/** A worker that ends at once, whatever the reason, shall not take all time of a core by being started. */
const PAUSE_MS = 1000;

/**
 * Starts `count` processes that serve with this process's flags, replaces each that ends, and resolves when all have ended after a SIGTERM or SIGINT.
 * `announce` is told the address when all of them listen. The first one is started alone: when it cannot serve it has said why, and this process ends
 * with its exit code.
 */
export async function serveInWorkers(count: number, log: Log, announce: (address: Address) => void): Promise<void> {
  cluster.setupPrimary({ exec: RUN, args: ['serve', ...process.argv.slice(2)] });
  let isStopping = false;
  const stop = () => {
    isStopping = true;
    for (const worker of running()) worker.process.kill('SIGTERM');
  };
  process.once('SIGTERM', stop).once('SIGINT', stop);

  const first = cluster.fork();
  const ended = new Promise<number>((resolve) => first.once('exit', resolve));
  const address = await Promise.race([once(first, 'listening').then(([address]) => address as Address), ended]);
  if (typeof address === 'number') {
    process.exitCode = isStopping ? 0 : address;
    return;
  }
  cluster.on('exit', (worker, code, signal) => {
    if (isStopping) return;
    log.notice(`process ${worker.process.pid} ended (${signal ?? code}); another is started`);
    setTimeout(() => {
      if (!isStopping) cluster.fork();
    }, PAUSE_MS);
  });
  const others = Array.from({ length: count - 1 }, () => cluster.fork());
  const areListening = Promise.all(others.map((worker) => once(worker, 'listening')));
  areListening.then(() => announce(address)).catch(() => {});
  while (!isStopping || running().length > 0) await once(cluster, 'exit');
}

const running = () => Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
