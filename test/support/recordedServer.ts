/** A server with the recorded chain, for tests of pulls. */
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach } from 'vitest';
import { ApiServer } from './apiServer.ts';
import { CONFORMANCE_INPUTS, temporaryFolder, testBuild } from './build.ts';
import { block, recordedBlocks } from './pull.ts';
import type { Activity } from './records.ts';

let recorded: Map<number, Activity[]>;
/** The digest of a build of the recorded chain. */
export let digest: string;

export let server: ApiServer;
export let base: string;
/** Where to pull to: a new folder for each test. */
export let to: string;

/** Starts the server before each test of the file that calls this, and ends it after. */
export function useRecordedServer(): void {
  beforeAll(async () => {
    recorded = await recordedBlocks();
    digest = (await testBuild(join(temporaryFolder(), 'out'), { inputs: CONFORMANCE_INPUTS })).manifest.digest;
  });
  beforeEach(async () => {
    server = new ApiServer();
    for (const [height, records] of recorded) server.blocks.set(height, [...records]);
    base = await server.start();
    to = join(temporaryFolder(), 'input');
  });
  afterEach(() => server.close());
}

/** A short chain of made-up blocks instead of the recorded one. */
export function shortChain(tip = 1010, first = 1001): void {
  server.blocks.clear();
  for (let height = first; height <= tip; height += 1) server.blocks.set(height, block(height, 1 + (height % 5)));
}

/** The digest of a build of what was pulled. */
export const builtDigest = async (input = to): Promise<string> =>
  (await testBuild(join(temporaryFolder(), 'out'), { inputs: [input] })).manifest.digest;
