/** Counts the answers of the local server for `--metrics`. Workers send their counts to the primary process. */
import cluster from 'node:cluster';
import type { Server } from 'node:http';
import { setInterval } from 'node:timers';
import { Metrics } from '../cli/metrics.ts';

export const requestMetrics = (): Metrics => new Metrics({ rune_mirror_requests_total: 'Answers by status.' });

const nameOf = (status: string): string => `rune_mirror_requests_total{status="${status}"}`;

/** Time between two messages of a worker, in milliseconds. */
const SEND_MS = 500;

/** Numbers of answers by status since the last message. */
interface Counts {
  readonly answers: Readonly<Record<string, number>>;
}

/** Counts the answers of a server in this process, or sends their numbers to the primary process. */
export function countRequests(server: Server, metrics: Metrics): void {
  let answers: Record<string, number> = {};
  server.prependListener('request', (_, response) => {
    response.once('close', () => {
      const { statusCode: status } = response;
      if (cluster.isPrimary) metrics.add(nameOf(String(status)));
      else answers[status] = (answers[status] ?? 0) + 1;
    });
  });
  if (cluster.isPrimary) return;
  const timer = setInterval(() => {
    if (Object.keys(answers).length === 0) return;
    process.send?.({ answers } satisfies Counts);
    answers = {};
  }, SEND_MS);
  timer.unref();
}

/** Adds the counts that workers send. */
export function countWorkers(metrics: Metrics): void {
  cluster.on('message', (_, { answers }: Partial<Counts>) => {
    for (const [status, count] of Object.entries(answers ?? {})) metrics.add(nameOf(status), count);
  });
}
