/**
 * `npm start`: the local server's flags, and listening until a signal ends it.
 */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers';
import { type Command, type Flags, HELP } from '../cli/flags.ts';
import type { Log } from '../cli/log.ts';
import { BuildError, codeOf, messageOf, UsageError } from '../errors.ts';
import { createMirrorServer } from './node.ts';

export const SERVE_COMMAND: Command = {
  call: 'npm start --',
  about: 'Serves a build on this machine, with exact windows.',
  flags: [
    { name: 'dir', value: 'DIR', byDefault: 'dist', about: 'The build to serve.' },
    { name: 'host', value: 'ADDRESS', byDefault: '127.0.0.1', about: 'Where to listen; 0.0.0.0 for every address.' },
    { name: 'port', value: 'PORT', byDefault: '3000', about: '0 picks a free one.' },
    HELP,
  ],
};

/** How long open requests may take after a signal, in milliseconds. */
const GRACE_MS = 5000;

/** Serves until SIGTERM or SIGINT; resolves when the last connection is closed. */
export async function serve(flags: Flags, log: Log): Promise<void> {
  const host = flags.one('host') ?? '127.0.0.1';
  const port = flags.integer('port', 3000, 0, 65_535);
  const dir = flags.one('dir') ?? 'dist';
  const server = createMirrorServer(dir);
  const stop = () => {
    server.close();
    server.closeIdleConnections();
    setTimeout(() => server.closeAllConnections(), GRACE_MS).unref();
  };
  process.once('SIGTERM', stop).once('SIGINT', stop);
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EADDRINUSE') throw new UsageError(`port ${port} of ${host} is in use; choose another with --port`);
    if (code === 'EACCES') throw new UsageError(`port ${port} of ${host} may not be used by this user; choose another with --port`);
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') throw new UsageError(`--host ${host} is no address of this machine`);
    throw new BuildError(`the server cannot listen: ${messageOf(error)}`);
  }
  const { port: actual } = server.address() as AddressInfo;
  log.info('listening', `Serving ${dir} on http://${host.includes(':') ? `[${host}]` : host}:${actual} (Ctrl-C ends it).`);
  await once(server, 'close');
}
