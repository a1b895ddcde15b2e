/** Bodies of API errors, by status. */
import type { Refusal } from '../../pages/respond.ts';

export const RETRY_LATER = 'a file of this mirror is missing or unreadable; try again';

export const REASONS = {
  400: 'Bad Request',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  413: 'Payload Too Large',
  416: 'Range Not Satisfiable',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  503: 'Service Unavailable',
} as const;

export type ErrorStatus = keyof typeof REASONS;

/** Returns the status and body of an API error. The body has these keys in this order (docs/api.md, "Requests"). */
export const errorBody = (status: ErrorStatus, message: string): { status: number; body: string } => ({
  status,
  body: JSON.stringify({ statusCode: status, error: REASONS[status], message }),
});

/** Returns the error for a request that the page map refused. */
export const refusalBody = ({ status, message, isBare = false }: Refusal): { status: number; body: string } =>
  isBare ? { status, body: '{"error":"Not found"}' } : errorBody(status, message);

/** Shortens a target for an error message or a log entry, so that a long URL does not fill the message. */
export const shortTarget = (target: string): string => (target.length > 300 ? `${target.slice(0, 300)}…` : target);

export const notFound = (method: string, target: string): { status: number; body: string } =>
  errorBody(404, `Route ${method}:${shortTarget(target)} not found`);

export const notAllowed = (method: string): { status: number; body: string } =>
  errorBody(405, `${method} is not allowed on this path; the API is read-only`);
