/** `npm start`: defines the flags of the local server, and serves until a signal arrives. */
import cluster from 'node:cluster';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setInterval, setTimeout } from 'node:timers';
import { type Command, type Flags, flag, HELP, LOG } from '../cli/flags.ts';
import type { Log } from '../cli/log.ts';
import { METRICS, Metrics } from '../cli/metrics.ts';
import { BuildError, codeOf, messageOf, UsageError } from '../errors.ts';
import { program } from '../program.ts';
import { createMirrorServer } from './local/server.ts';
import { serveInWorkers } from './local/workers.ts';

export const SERVE_COMMAND: Command = {
  call: program.callOf('serve'),
  about: 'Serves a build on this machine and answers any window.',
  flags: [
    flag('dir DIR', 'Output folder of the build to serve.', { byDefault: 'dist' }),
    flag('host ADDRESS', 'Address to listen on; 0.0.0.0 for all.', { byDefault: '127.0.0.1' }),
    flag('port PORT', 'Port to listen on; 0 picks a free one.', { byDefault: '3000' }),
    flag('workers N', 'Number of processes. One per core handles the most requests.', { byDefault: '1' }),
    flag('no-compression', 'Sends answers uncompressed, for a proxy in front that compresses.'),
    flag('access-log', 'Prints a line for each request.'),
    METRICS,
    LOG,
    HELP,
  ],
  examples: [
    { args: '', about: 'Serves dist/ on http://127.0.0.1:3000.' },
    { args: '--dir site --host 0.0.0.0 --port 8080 --workers 4', about: 'Serves site/ to other machines, with four processes.' },
  ],
  exits: ['done', 'usage', 'badInput', 'buildFailed'],
};

/** Time for which open requests may continue after a signal, in milliseconds. */
const GRACE_MS = 5000;

/** Time between two messages of a worker process to the primary process, in milliseconds. */
const SEND_MS = 500;

/** Message of a worker process: its numbers of answers since the last message, by name of the metric. */
interface Counts {
  readonly answers: Readonly<Record<string, number>>;
}

/** Serves until SIGTERM or SIGINT. Resolves after the last connection is closed. */
export async function serve(flags: Flags, log: Log): Promise<void> {
  const host = flags.one('host') ?? '127.0.0.1';
  const port = flags.integer('port', 3000, 0, 65_535);
  const dir = flags.one('dir') ?? 'dist';
  const workers = flags.integer('workers', 1, 1, 256);
  const announce = ({ port: actual }: { readonly port: number }) =>
    log.info('listening', `Serving ${dir} on http://${host.includes(':') ? `[${host}]` : host}:${actual} (press Ctrl-C to stop).`);
  const metrics = new Metrics({ rune_mirror_requests_total: 'Answers by status.' });
  if (cluster.isPrimary) await metrics.serve(flags, dir);
  if (workers > 1 && cluster.isPrimary) {
    cluster.on('message', (_, { answers }: Partial<Counts>) => {
      for (const [name, count] of Object.entries(answers ?? {})) metrics.add(name, count);
    });
    return serveInWorkers(workers, log, announce);
  }
  try {
    const server = createMirrorServer(dir, {
      compresses: !flags.has('no-compression'),
      ...(flags.has('access-log') ? { accessLog: log } : {}),
    });
    if (flags.has(METRICS.name)) countRequests(server, metrics);
    const stop = () => {
      server.close();
      server.closeIdleConnections();
      setTimeout(() => server.closeAllConnections(), GRACE_MS).unref();
    };
    process.once('SIGTERM', stop).once('SIGINT', stop);
    const address = await listen(server, port, host);
    if (cluster.isPrimary) announce(address);
    await once(server, 'close');
  } finally {
    // Closes the channel to the primary process, which would keep the worker process alive.
    cluster.worker?.disconnect();
  }
}

/** Counts the answers of a server in this process. A worker process sends the numbers to the primary process. */
function countRequests(server: Server, metrics: Metrics): void {
  let answers: Record<string, number> = {};
  server.prependListener('request', (_, response) => {
    response.once('close', () => {
      const name = `rune_mirror_requests_total{status="${response.statusCode}"}`;
      if (cluster.isPrimary) metrics.add(name);
      else answers[name] = (answers[name] ?? 0) + 1;
    });
  });
  if (cluster.isPrimary) return;
  const send = () => {
    if (Object.keys(answers).length > 0) process.send?.({ answers } satisfies Counts);
    answers = {};
  };
  setInterval(send, SEND_MS).unref();
}

/** Starts listening. Rejects with an error that names the flag to change. */
async function listen(server: Server, port: number, host: string): Promise<AddressInfo> {
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EADDRINUSE') throw new UsageError(`port ${port} of ${host} is already in use; choose another with --port`);
    if (code === 'EACCES') throw new UsageError(`no permission to listen on port ${port} of ${host}; choose another with --port`);
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') throw new UsageError(`--host ${host} is not an address of this machine`);
    throw new BuildError(`the server cannot listen: ${messageOf(error)}`);
  }
  return server.address() as AddressInfo;
}
