/** `npm start -- --workers N`: several worker processes answer on one port. */
import cluster, { type Address, type Worker } from 'node:cluster';
import type { Log } from '../../cli/log.ts';
import { program } from '../../program.ts';

/** Delay before a worker is restarted, so that a crash loop cannot use up a core. */
const RESTART_DELAY_MS = 1000;

/**
 * Starts `count` worker processes with this process's flags, and replaces each that ends. Calls `announce` when all listen. After a SIGTERM
 * or SIGINT, resolves when all have ended. The first worker starts alone: if it exits before it listens, it has reported the reason, so
 * this process ends with the same exit code. If it was killed, it has reported nothing, so it is replaced.
 */
export function serveInWorkers(count: number, log: Log, announce: (address: Address) => void): Promise<void> {
  // Each worker accepts connections itself. The primary would pass a connection from worker to worker while all are full.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  cluster.setupPrimary({ exec: program.runner, args: ['serve', ...process.argv.slice(2)] });
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
      // `stop` may have sent the signal before this worker could handle it, so the signal is sent again.
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
      log.notice(`worker process ${worker.process.pid} ended (${signal ?? code}); starting another`);
      setTimeout(() => {
        if (!isStopping) cluster.fork();
      }, RESTART_DELAY_MS);
    });
    cluster.fork();
  });
}

/** The running workers. `cluster.workers` also has ended ones, until their channels close. */
const running = (): Worker[] => Object.values(cluster.workers ?? {}).flatMap((worker) => (worker?.isDead() === false ? [worker] : []));
