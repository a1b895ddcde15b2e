/** Tests the headers of files that the owner of a folder added. */
import { expect, it } from 'vitest';
import { headersOf } from '../../src/serve/local/requestedFiles.ts';

it.each([
  ['notes.TXT', 'text/plain; charset=utf-8'],
  ['table.csv', 'text/csv; charset=utf-8'],
  ['own.ts', 'application/octet-stream'],
  // Every JavaScript object has a property `constructor`, which is no known file ending.
  ['a.constructor', 'application/octet-stream'],
])('%s is sent as %s', (path, type) => {
  const headers = headersOf(path);
  expect(headers[headers.indexOf('content-type') + 1]).toBe(type);
});
