/** Checks the headers of a build's files, on every host that sends files with code of this project. */
import { expect } from 'vitest';
import { SECURITY_HEADERS } from '../support/securityHeaders.ts';
import type { Host } from '../support/server.ts';

/**
 * Checks that files have the headers of the API and their own content type. A client that sends the current ETag must
 * get a 304.
 */
export async function checkFileHeaders(host: Host): Promise<void> {
  for (const [target, expected] of [
    ['/', SECURITY_HEADERS.page],
    ['/runes/v1/manifest.json', SECURITY_HEADERS.json],
  ] as const) {
    const answer = await host.send('GET', target);
    const headers = {
      ...expected,
      'cache-control': 'public, no-cache, must-revalidate',
      etag: expect.stringMatching(/^"[^"]+"$/),
    };
    expect(answer).toMatchObject({ status: 200, headers });
    const etag = String(answer.headers.etag);
    expect(await host.send('HEAD', target)).toMatchObject({ status: 200, body: '', headers });
    for (const method of ['GET', 'HEAD']) {
      const again = await host.send(method, target, { 'if-none-match': `W/${etag}` });
      expect(again).toMatchObject({ status: 304, body: '', headers: { etag, 'access-control-allow-origin': '*' } });
    }
    const preflight = await host.send('OPTIONS', target, { origin: 'https://a.example' });
    expect(preflight).toMatchObject({ status: 204, headers: { 'access-control-allow-origin': '*' } });
  }
}
