/** Starts a server for tests to pull from. */
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import { ApiServer } from './apiServer.ts';
import { temporaryFolder } from './build.ts';
import { block, leanBuild, recordedBlocks } from './pull.ts';

export let server: ApiServer;
export let base: string;
/** Folder to pull to: a new one for each test. */
export let to: string;

/** Starts a server without blocks before each test of the calling file, and closes the server afterwards. */
export function useServer(): void {
  beforeEach(async () => {
    server = new ApiServer();
    base = await server.start();
    to = join(temporaryFolder(), 'input');
  });
  afterEach(() => server.close());
}

/** Serves the recorded chain. Returns the digest of a build of it. */
export async function recordedChain(): Promise<string> {
  const { blocks, manifest } = await recordedBlocks();
  for (const [height, records] of blocks) server.blocks.set(height, [...records]);
  return manifest.digest;
}

/** Serves a short chain of invented blocks. */
export function shortChain(tip = 1010, first = 1001): void {
  server.blocks.clear();
  for (let height = first; height <= tip; height += 1) server.blocks.set(height, block(height, 1 + (height % 5)));
}

/** Returns the digest of a build of the pulled files. */
export const builtDigest = async (input = to): Promise<string> => (await leanBuild([input])).digest;
