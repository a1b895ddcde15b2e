/** Tests the headers of files that an operator has added to the output folder. */
import { expect, it } from 'vitest';
import { headersOfFile } from '../../src/serve/http/headers.ts';

it.each([
  ['notes.TXT', 'text/plain; charset=utf-8'],
  ['table.csv', 'text/csv; charset=utf-8'],
  ['own.ts', 'application/octet-stream'],
  // `constructor` is a property of every JavaScript object, but not a known file extension.
  ['a.constructor', 'application/octet-stream'],
])('%s is sent as %s', (path, type) => {
  const headers = headersOfFile(path);
  expect(headers[headers.indexOf('content-type') + 1]).toBe(type);
});
