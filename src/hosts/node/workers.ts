/**
 * `npm start -- --workers N`: processes that answer on one port, under one that watches them.
 */
import cluster, { type Address, type Worker } from 'node:cluster';
import { fileURLToPath } from 'node:url';
import type { Log } from '../../cli/log.ts';

const RUN = fileURLToPath(new URL('../../../scripts/run.cjs', import.meta.url));

/** A worker that ends at once, whatever the reason, shall not take all time of a core by being started. */
const PAUSE_MS = 1000;

/**
 * Starts `count` processes that serve with this process's flags, replaces each that ends, and resolves when all have ended after a SIGTERM or SIGINT.
 * `announce` is told the address when all of them listen. The first one is started alone: when it ends by itself before it listens it has said why, and
 * this process ends with its exit code. One that was killed has said nothing, and is replaced like the others.
 */
export function serveInWorkers(count: number, log: Log, announce: (address: Address) => void): Promise<void> {
  // Each takes connections for itself. Handed round, a connection that all of them refuse would go from one to the next for as long as they are full.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  cluster.setupPrimary({ exec: RUN, args: ['serve', ...process.argv.slice(2)] });
  const listening = new Set<Worker>();
  let [isStopping, hasListened, isAnnounced] = [false, false, false];

  return new Promise((resolve) => {
    const stop = () => {
      isStopping = true;
      for (const worker of running()) worker.process.kill('SIGTERM');
      if (running().length === 0) resolve();
    };
    process.once('SIGTERM', stop).once('SIGINT', stop);

    cluster.on('listening', (worker, address) => {
      // The signal came after it could no longer keep it from listening, and it may have been lost.
      if (isStopping) return void worker.process.kill('SIGTERM');
      listening.add(worker);
      if (!hasListened) for (let i = 1; i < count; i += 1) cluster.fork();
      hasListened = true;
      if (listening.size < count || isAnnounced) return;
      isAnnounced = true;
      announce(address);
    });

    cluster.on('exit', (worker, code: number | null, signal: string | null) => {
      listening.delete(worker);
      if (!isStopping && !hasListened && code !== null) {
        process.exitCode = code;
        isStopping = true;
      }
      if (isStopping) {
        if (running().length === 0) resolve();
        return;
      }
      log.notice(`process ${worker.process.pid} ended (${signal ?? code}); another is started`);
      setTimeout(() => {
        if (!isStopping) cluster.fork();
      }, PAUSE_MS);
    });
    cluster.fork();
  });
}

/** One that has ended is still in the list until its channel is closed too. */
const running = (): Worker[] =>
  Object.values(cluster.workers ?? {})
    .filter((worker) => worker !== undefined)
    .filter((worker) => !worker.isDead());
