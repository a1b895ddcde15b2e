/** Runs generators in threads and yields their items. A thread makes the next items while the caller uses one. */
import { on } from 'node:events';
import { parentPort, Worker } from 'node:worker_threads';
import { codeOf, messageOf } from './errors.ts';

export interface ThreadProgram {
  readonly script: URL;
  readonly argv: readonly string[];
}

/** Reply of a thread to a request for the next item. */
type Reply<Item> =
  | { readonly kind: 'item'; readonly item: Item }
  | { readonly kind: 'end' }
  | { readonly kind: 'failed'; readonly name: string; readonly message: string; readonly code: string | undefined };

/** Number of items that a thread makes in advance, because the times to make and to use an item vary. */
const AHEAD = 32;

/**
 * Starts a thread, whose program calls `sendItems`, and yields the items that it sends. Rethrows an error of the
 * thread: with the thrown class if `errors` has it, otherwise as an Error with the same message and code. Ends the
 * thread when the caller stops, and rejects when `signal` aborts.
 */
export async function* itemsOfThread<Item>(
  { script, argv }: ThreadProgram,
  data: unknown,
  errors: readonly (new (message: string) => Error)[],
  signal?: AbortSignal,
): AsyncGenerator<Item> {
  const worker = new Worker(script, { argv: [...argv], workerData: data });
  try {
    for (let i = 0; i < AHEAD; i++) worker.postMessage('next');
    for await (const [reply] of on(worker, 'message', { signal, close: ['exit'] }) as AsyncIterable<[Reply<Item>]>) {
      if (reply.kind === 'end') return;
      if (reply.kind === 'failed') {
        const Known = errors.find(({ name }) => name === reply.name) ?? Error;
        throw Object.assign(new Known(reply.message), reply.code === undefined ? {} : { code: reply.code });
      }
      worker.postMessage('next');
      yield reply.item;
    }
    throw new Error('a thread ended before its work was done');
  } finally {
    await worker.terminate();
  }
}

/**
 * Sends the items to the parent of this thread, one for each request. `buffersOf` returns the buffers of an item that
 * are transferred, not copied.
 */
export function sendItems<Item>(items: AsyncGenerator<Item>, buffersOf: (item: Item) => readonly ArrayBuffer[] = () => []): void {
  const reply = async (): Promise<void> => {
    try {
      const { value, done } = await items.next();
      if (done === true) parentPort?.postMessage({ kind: 'end' } satisfies Reply<Item>);
      else parentPort?.postMessage({ kind: 'item', item: value } satisfies Reply<Item>, [...buffersOf(value)]);
    } catch (error) {
      const name = error instanceof Error ? error.name : '';
      parentPort?.postMessage({ kind: 'failed', name, message: messageOf(error), code: codeOf(error) } satisfies Reply<Item>);
    }
  };
  parentPort?.on('message', () => void reply());
}
