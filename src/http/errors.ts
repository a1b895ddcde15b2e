/**
 * The bodies of errors: what a status of the API says.
 */

/** What a 503 says. */
export const RETRY_LATER = 'a file of this mirror is missing or unreadable; try again';

const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  404: 'Not Found',
  405: 'Method Not Allowed',
  416: 'Range Not Satisfiable',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

/** The API's error: these three keys in this order (decisions.md, "Error body"). The text is JSON-escaped. */
export const errorBody = (status: number, message: string): { status: number; body: string } => ({
  status,
  body: JSON.stringify({ statusCode: status, error: REASONS[status] ?? 'Error', message }),
});

/** A target for an error or a log: enough to know it again, so that a long URL is not sent back whole. */
export const shortTarget = (target: string): string => (target.length > 300 ? `${target.slice(0, 300)}…` : target);

/** The 404 of a path that is none of the API's. */
export const notFound = (method: string, target: string): { status: number; body: string } =>
  errorBody(404, `Route ${method}:${shortTarget(target)} not found`);
