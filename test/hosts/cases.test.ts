/** The case table of every exact host, asked of the Netlify chain. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { CASES, checkCase, SAMPLE_INPUT } from '../support/cases.ts';
import type { Host } from '../support/server.ts';
import { startNetlify } from './netlifyChain.ts';

let host: Host;

beforeAll(async () => {
  const dist = join(temporaryFolder(), 'dist');
  await testBuild(dist, { inputs: [SAMPLE_INPUT] });
  host = await startNetlify({ dist, edge: 'on' });
});

afterAll(() => host.close());

describe('the case table on Netlify', () => {
  it.each(CASES)('$name', (one) => checkCase(host, one));
});
