/**
 * Sends the case table (test/support/cases.ts) and the recorded requests to Netlify's engines. Every host with this
 * project's code must pass them.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import { CONFORMANCE_INPUTS, temporaryFolder, testBuild } from '../support/build.ts';
import { checkCase, LIST_CASES, SAMPLE_INPUT } from '../support/cases.ts';
import { describeOutputs } from '../support/outputCases.ts';
import type { Host } from '../support/server.ts';
import { wrongVectors } from '../support/vectors.ts';
import { startNetlify } from './netlifyChain.ts';

describe.each(LAYOUTS)('the case table on Netlify, layout %s', (layout) => {
  let host: Host;

  beforeAll(async () => {
    const dist = join(temporaryFolder(), 'dist');
    await testBuild(dist, { inputs: [SAMPLE_INPUT], layout, lists: true });
    host = await startNetlify({ dist, edge: 'on' });
  });

  afterAll(() => host.close());

  it.each(LIST_CASES)('$name', (one) => checkCase(host, one));
});

describeOutputs((dist) => startNetlify({ dist, edge: 'on' }));

it('the recorded requests are answered on Netlify as recorded, or as a rule decides; 14 are outside of /runes, where Netlify answers', async () => {
  const dist = join(temporaryFolder(), 'dist');
  await testBuild(dist, { inputs: CONFORMANCE_INPUTS, dialect: 'hiro', layout: 'archive' });
  const host = await startNetlify({ dist, edge: 'on' });
  try {
    const wrong = await wrongVectors(host, ['Accept-Encoding']);
    expect(wrong.filter((line) => / \/runes[/? ]/.test(line))).toEqual([]);
    expect(wrong).toHaveLength(14);
  } finally {
    await host.close();
  }
}, 600_000);
