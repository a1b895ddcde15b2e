/** Tells whether the host of the mirror answers requests of the API. GitHub Pages and buckets have only the files. */
import { BASE } from './settings.ts';

/** Statuses of hosts without code: the file is missing, may be missing, or the request needs code. */
const UNANSWERED = [403, 404, 501];

/** Answers by kind of request, because nginx and Caddy alone answer some kinds. */
const known = new Map<string, Promise<boolean>>();

/** Requests an API target that the mirror has, once for each kind. Resolves to true if the host cannot be reached. */
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
