/**
 * Headers that every host sends to browsers with each answer (SECURITY.md). They are copied here, so that a test fails if the program
 * changes them.
 */
const everywhere = {
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;

export const SECURITY_HEADERS = {
  /** Headers of scripts, styles and bulk data. */
  other: everywhere,
  json: {
    ...everywhere,
    'content-type': 'application/json; charset=utf-8',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  },
  page: {
    ...everywhere,
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy':
      "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  },
} as const;
