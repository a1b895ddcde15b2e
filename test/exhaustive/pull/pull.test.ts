/** Tests pulls over a network that fails: every request is repeated, waits as the server asks, or ends with advice. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MANIFEST_PATH } from '../../../src/pages/filePaths.ts';
import { RecordingLog, temporaryFolder, tree } from '../../support/build.ts';
import type { Fault } from '../../support/plainFiles.ts';
import { failedPull, testPull } from '../../support/pull.ts';
import { host, rowsFiles, to, useMirror } from '../../support/rowsMirror.ts';

useMirror();

describe('a mirror that fails', () => {
  const faults: readonly Fault[] = [
    { kind: 'status', status: 429, headers: { 'retry-after': '0' } },
    { kind: 'status', status: 429 },
    { kind: 'status', status: 500, body: '<html>no' },
    { kind: 'status', status: 503, headers: { 'retry-after': 'Fri, 01 Jan 2021 00:00:00 GMT' } },
    { kind: 'cut', after: 'nothing' },
    { kind: 'cut', after: 'half' },
    { kind: 'body', body: '{"generator":"rune-activity-mirror","form' },
  ];

  it('in every way, every third time, is asked again until every answer is right', async () => {
    const given = new Set<Fault>();
    host.fault = () => {
      const n = host.asked.length;
      const fault = n % 3 === 0 ? faults[(n / 3) % faults.length] : undefined;
      if (fault !== undefined) given.add(fault);
      return fault;
    };
    const log = new RecordingLog();
    await testPull(host.base, to, { log, retries: 40 });
    expect(given.size).toBe(faults.length);
    expect(log.notices.length).toBeGreaterThan(faults.length);
    // Each failure is reported in a single line.
    expect(log.notices.filter((notice) => notice.includes('\n'))).toEqual([]);
    host.fault = () => undefined;
    const whole = join(temporaryFolder(), 'input');
    await testPull(host.base, whole);
    expect(tree(to)).toEqual(tree(whole));
  });

  it('and never recovers ends the pull, which keeps the fetched files', async () => {
    const last = rowsFiles().at(-1) ?? '';
    host.fault = (path) => (path === last ? { kind: 'status', status: 502 } : undefined);
    const error = await failedPull(host.base, to, { retries: 2, concurrency: 1 });
    expect([error.exitCode, error.message]).toEqual([
      3,
      expect.stringMatching(/^the rows of blocks .* was answered with status 502; tried 3 times$/),
    ]);
    host.fault = () => undefined;
    host.asked.length = 0;
    await testPull(host.base, to);
    expect(host.asked.filter((path) => /^rows\/[0-9]/.test(path))).toEqual([last]);
  });

  it.each([
    ['wants a key', { kind: 'status', status: 401 }, 2, /is not a mirror of this program: give a mirror, or save the answers/],
    ['is another', { kind: 'status', status: 404 }, 2, /is not a mirror of this program/],
    ['has a web page', { kind: 'body', body: '<html>a proxy says hello</html>' }, 2, /is not a mirror of this program/],
    [
      'redirects',
      { kind: 'status', status: 301, headers: { location: '/k3y' } },
      2,
      /\/runes\/v1\/manifest.json redirects to http:\/\/127.0.0.1:[0-9]+$/,
    ],
  ] satisfies [string, Fault, number, RegExp][])('because it %s is explained', async (_, fault, code, message) => {
    host.fault = () => fault;
    const error = await failedPull(host.base, to);
    expect([error.exitCode, error.message]).toEqual([code, expect.stringMatching(message)]);
  });

  it('because it is built without rows is refused, with advice', async () => {
    const { rows: _, ...manifest } = JSON.parse(readFileSync(join(host.folder, MANIFEST_PATH), 'utf8'));
    host.fault = () => ({ kind: 'body', body: JSON.stringify(manifest) });
    const error = await failedPull(host.base, to);
    expect([error.exitCode, error.message]).toEqual([
      2,
      expect.stringMatching(/ publishes no rows: give another mirror, or ask its operator/),
    ]);
  });
});

it('a pull with many parallel requests causes no warnings of Node', async () => {
  const warnings: Error[] = [];
  const keep = (warning: Error) => warnings.push(warning);
  process.on('warning', keep);
  await testPull(host.base, to, { concurrency: 30 });
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', keep);
  expect(warnings).toEqual([]);
});
