/** Handles HTTP methods, because the page map (pages/respond.ts) knows only reads. */
import type { OpenFile } from '../../pages/fileAccess.ts';
import { parsePath } from '../../pages/parseRequest.ts';
import type { Answer } from '../../pages/respond.ts';
import { errorBody, refusalBody } from './errorBodies.ts';
import { ALLOWED_METHODS } from './headers.ts';

export type Reply<File extends OpenFile> =
  | Exclude<Answer<File>, { readonly kind: 'refusal' }>
  /** Error of the API. `allow` is the value of the Allow header. */
  | { readonly kind: 'error'; readonly status: number; readonly body: string; readonly allow?: string }
  | { readonly kind: 'preflight' };

/** True if a browser opens a path outside the API: a 404 must then be an HTML page. `accept` is the Accept header. */
export const wantsPage = (method: string, target: string, accept: string | null | undefined): boolean =>
  (method === 'GET' || method === 'HEAD') && /\btext\/html\b/i.test(accept ?? '') && parsePath(target).kind === 'outside';

/** Answers a request of any method. For GET and HEAD, `read` gets the answer from the page map. */
export async function reply<File extends OpenFile>(
  method: string,
  target: string,
  read: () => Promise<Answer<File>>,
): Promise<Reply<File>> {
  if (method === 'GET' || method === 'HEAD') {
    const answer = await read();
    return answer.kind === 'refusal' ? { kind: 'error', ...refusalBody(answer) } : answer;
  }
  const { kind } = parsePath(target);
  if (kind === 'outside') return { kind: 'other' };
  if (method === 'OPTIONS') return { kind: 'preflight' };
  if (kind === 'unknown') return { kind: 'other' };
  return { kind: 'error', ...errorBody(405, `${method} is not allowed on this path; the API is read-only`), allow: ALLOWED_METHODS };
}
