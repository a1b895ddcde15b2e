/**
 * Tests threads that end, fail or are no longer needed. The reader gets an error or the end, and never waits forever.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { itemsOfThread } from '../../src/threads.ts';
import { temporaryFolder } from '../support/build.ts';

class DamageError extends Error {}

/** Starts a thread that runs `code` for each request. `code` calls `reply` to send a reply. */
function threadOf(code: string, signal?: AbortSignal): AsyncGenerator<number> {
  const path = join(temporaryFolder(), 'thread.cjs');
  const reply = `const { parentPort } = require('node:worker_threads'); const reply = (message) => parentPort.postMessage(message); let next = 0;`;
  writeFileSync(path, `${reply}\nparentPort.on('message', () => { ${code} });`);
  return itemsOfThread<number>({ script: pathToFileURL(path), argv: [] }, undefined, [DamageError], signal);
}

async function all(items: AsyncIterable<number>): Promise<number[]> {
  const found: number[] = [];
  for await (const item of items) found.push(item);
  return found;
}

const ITEMS = `next += 1; reply(next > 100 ? { kind: 'end' } : { kind: 'item', item: next });`;
const failing = (failure: string) => `next += 1; reply(next < 3 ? { kind: 'item', item: next } : { kind: 'failed', ${failure} });`;

it('yields all items in order', async () => {
  expect(await all(threadOf(ITEMS))).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
});

it.each([
  [
    'ends early',
    `if (next++ === 3) process.exit(0); else reply({ kind: 'item', item: next });`,
    { message: expect.stringContaining('ended before') },
  ],
  ['throws', `throw new RangeError('of the thread');`, { message: 'of the thread' }],
  ['says damage', failing(`name: 'DamageError', message: 'wrong file'`), expect.any(DamageError)],
  ['says a system error', failing(`name: 'Error', message: 'no space', code: 'ENOSPC'`), { message: 'no space', code: 'ENOSPC' }],
])('fails when the thread %s', async (_, code, expected) => {
  const error = await all(threadOf(code)).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(Error);
  expect(error).toEqual(typeof expected === 'object' && 'message' in expected ? expect.objectContaining(expected) : expected);
});

it('ends a thread that never answers when the signal is aborted', async () => {
  const stopping = new AbortController();
  const first = threadOf('', stopping.signal).next();
  setImmediate(() => stopping.abort());
  await expect(first).rejects.toThrow('abort');
});

it('ends the thread when the caller stops', async () => {
  for await (const item of threadOf(ITEMS)) if (item === 3) break;
});
