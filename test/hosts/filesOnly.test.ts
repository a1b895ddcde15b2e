/** Tests hosting/files-only with the program `serve` and the shipped serve.json. It is an example of any static file host. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { filesBelow } from '../support/build.ts';
import { CASES } from '../support/cases.ts';
import { ROOT } from '../support/cli.ts';
import { recordedOutput, sampleOutput } from '../support/recorded.ts';
import { words } from '../support/records.ts';
import { SECURITY_HEADERS } from '../support/securityHeaders.ts';
import { type LocalHost, startServer } from '../support/server.ts';
import { checkPlainRanges, checkSiteFiles } from '../support/siteFiles.ts';
import { classifyAll, countVerdicts, judgeCases, problemOfOwnError, startProgram } from './plainHost.ts';
import { ODD_TARGETS, type PlainRequest, vectorRequests } from './requests.ts';

const CONFIG = join(ROOT, 'hosting/files-only/serve.json');
const FILE_HEADERS = {
  'access-control-expose-headers': 'etag',
  'cache-control': 'public, no-cache, must-revalidate',
};

/** Paths that `serve` normalises, to the landing page, the status or a file at another path, and files that other hosts do not send. */
const RESOLVED = words(`
    /runes/v1/blocks//840001.json /runes/v1/blocks/./840001.json /runes/v1// // /. /./ /runes/.. /runes/../ /%2e /%2f
    /.rune-activity-mirror /%2erune-activity-mirror /runes/../.rune-activity-mirror /runes/v1/..%2f..%2f.rune-activity-mirror
    /404.json
  `);

function startServe(dist: string): Promise<LocalHost> {
  const args = [join(ROOT, 'node_modules/serve/build/main.js'), dist, '--config', CONFIG, '--no-request-logging', '--no-port-switching'];
  return startProgram((port) => ({ program: process.execPath, args: [...args, '--listen', `tcp://127.0.0.1:${port}`] }));
}

describe('a static file host', () => {
  let sample: string;
  const open: LocalHost[] = [];
  let [ofSample, ofRecorded, exact]: LocalHost[] = [];
  beforeAll(async () => {
    sample = await sampleOutput('files');
    const recorded = await recordedOutput('files', 'hiro');
    ofSample = await startServe(sample);
    ofRecorded = await startServe(recorded);
    exact = await startServer(recorded);
    open.push(ofSample, ofRecorded, exact);
  });
  afterAll(async () => {
    for (const host of open) await host.close();
  });

  it('serves every file of the API at its own path, with CORS and an ETag that it recognises', async () => {
    const paths = filesBelow(sample).filter((path) => path.endsWith('.json'));
    for (const path of paths.filter((_, i) => i % 25 === 0)) {
      const answer = await ofSample?.send('GET', `/${path}`);
      const headers = { ...FILE_HEADERS, ...SECURITY_HEADERS.json };
      expect(answer).toMatchObject({ status: 200, body: readFileSync(join(sample, path), 'utf8'), headers });
    }
    const { headers } = (await ofSample?.send('GET', '/runes/v1/manifest.json')) ?? {};
    expect(headers?.etag).toMatch(/^"[^"]+"$/);
    expect((await ofSample?.send('GET', '/runes/v1/manifest.json', { 'if-none-match': String(headers?.etag) }))?.status).toBe(304);
  });

  it('serves the pages for people, their scripts and bulk data', async () => {
    const { port } = ofSample as LocalHost;
    await checkSiteFiles({ port, hasOwnTypes: true }, sample);
    await checkPlainRanges(port, sample);
  });

  it('answers of the case table only the file of changes, and no other case with a page', async () => {
    // Skips this case, because it also sends the ETag in other forms. `serve` recognises only the ETag that it sent itself.
    const { 'what a block touched': _, ...others } = await judgeCases(ofSample as LocalHost, problemOfOwnError);
    const verdicts = countVerdicts(Object.values(others));
    expect(verdicts).toEqual({ 'refused 404': CASES.length - 1 });
    const touched = CASES.find(({ name }) => name === 'what a block touched');
    expect(await ofSample?.send('GET', touched?.target ?? '')).toMatchObject({ status: 200, body: touched?.body });
  });

  it('answers of the recorded requests only the status and invalid paths, and no other request with a page', async () => {
    // Skips the other methods and conditional requests: `serve` treats every method as GET, and recognises an ETag only if the header has a
    // single one, in the form that `serve` sent.
    const isPlain = ({ method, headers = {} }: PlainRequest) => ['GET', 'HEAD'].includes(method) && !('If-None-Match' in headers);
    // `serve` ignores the extra slash of the last request, and answers with the status.
    const requests = [...vectorRequests().filter(isPlain), { method: 'GET', target: '/runes/v1//' }];
    const verdicts = await classifyAll(ofRecorded as LocalHost, exact as LocalHost, requests, problemOfOwnError);
    expect(requests.flatMap(({ target }, i) => (verdicts[i]?.startsWith('WRONG') ? [target] : []))).toEqual(['/runes/v1//']);
    expect(verdicts).toContain('exact');
  });

  it('answers odd spellings with errors, except paths that lead to a file', async () => {
    const requests = ODD_TARGETS.map((target) => ({ method: 'GET', target }));
    const verdicts = await classifyAll(ofRecorded as LocalHost, exact as LocalHost, requests, problemOfOwnError);
    expect(ODD_TARGETS.filter((_, i) => verdicts[i]?.startsWith('WRONG'))).toEqual(RESOLVED);
  });

  it('lists no folder', async () => {
    for (const path of ['/runes/v1/blocks', '/runes/v1/blocks/', '/runes/v1/blocks/2000007/', '/runes/v1/transactions']) {
      expect((await ofSample?.send('GET', path))?.status).toBe(404);
    }
  });
});
