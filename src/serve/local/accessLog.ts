/** The access log of the local server: one entry per request, written when the response has ended. */
import type { Server } from 'node:http';
import type { Log } from '../../cli/log.ts';
import { shortTarget } from '../http/errorBodies.ts';

/** Logs all requests of a server, except malformed ones, because Node refuses those itself. */
export function logRequests(server: Server, log: Log): void {
  server.prependListener('request', (request, response) => {
    const [start, client] = [performance.now(), request.socket.remoteAddress ?? ''];
    response.once('close', () => {
      const { method = '' } = request;
      const target = shortTarget(request.url ?? '');
      const ms = Math.round((performance.now() - start) * 10) / 10;
      const status = response.statusCode;
      // Marks an answer whose client disconnected before the end of the answer.
      const cut = response.writableFinished ? {} : { incomplete: true };
      const message = `${client} ${method} ${JSON.stringify(target)} ${status}${response.writableFinished ? '' : ' incomplete'} ${ms} ms`;
      log.info('request', message, { client, method, target, status, ms, ...cut });
    });
  });
}
