/** Tells whether the host of the mirror answers requests of the API. GitHub Pages and buckets have only the files. */
import { BASE } from './settings.ts';

/** Statuses of hosts without code: the file may be missing (403), is missing (404), or the request needs code (501). */
const UNANSWERED = [403, 404, 501];

/** Results by kind of request, because some hosts, such as nginx and Caddy, answer only some kinds. */
const known = new Map<string, Promise<boolean>>();

/**
 * Resolves to true if the host answers requests of this kind, or cannot be reached. Sends only the first request of
 * each kind. `target` must be in the mirror, because a 404 is taken for the answer of a host without code.
 */
export function isAnswered(target: string): Promise<boolean> {
  const kind = target.split('/')[2] ?? '';
  const answer =
    known.get(kind) ??
    fetch(new URL(target, BASE), { method: 'HEAD' }).then(
      ({ status }) => !UNANSWERED.includes(status),
      () => true,
    );
  known.set(kind, answer);
  return answer;
}
