/**
 * Compresses members of documents (documentWriter.ts) in a thread, while the main thread makes more documents. Without
 * the thread, a build with long lists spends a quarter of its time on compressing them.
 */
import { Worker } from 'node:worker_threads';
import { writeFailure } from '../../disk/fileErrors.ts';
import { codeOf, messageOf } from '../../errors.ts';
import { program } from '../../program.ts';
import type { ThreadProgram } from '../../threads.ts';
import { checkMember, gzipMember } from '../render/compress.ts';

/** Byte strings, one after another. `lengths` has the length of each. */
export interface Joined {
  readonly bytes: Uint8Array;
  readonly lengths: readonly number[];
}

/** Returns views of the byte strings. */
export function partsOf({ bytes, lengths }: Joined): Uint8Array[] {
  let end = 0;
  return lengths.map((length) => {
    end += length;
    return bytes.subarray(end - length, end);
  });
}

/** Compresses each byte string into a gzip member. */
export function gzipMembers(members: Joined): Joined {
  const gzip = partsOf(members).map(gzipMember);
  return { bytes: Buffer.concat(gzip), lengths: gzip.map(({ length }) => length) };
}

/**
 * Maximum number of portions that the thread has not returned. With two, the thread always has work. With more, the
 * main thread could compress a portion itself sooner than the thread.
 */
const MOST_OFFERED = 2;

interface Waiting {
  readonly resolve: (gzip: Joined) => void;
  readonly reject: (error: Error) => void;
}

export class MemberCompressor {
  #worker: Worker | undefined;
  readonly #waiting: Waiting[] = [];
  /** Set when the thread has ended. */
  #failure: Error | undefined;

  constructor(private readonly thread: ThreadProgram = program.threads.members) {}

  /**
   * Sends a copy of the members to the thread, which the first call starts. Returns undefined if the thread has enough
   * work. Throws a BuildError if a member is too large, and rejects with a BuildError if the thread fails.
   */
  offer(members: Joined): Promise<Joined> | undefined {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#waiting.length >= MOST_OFFERED) return undefined;
    members.lengths.forEach(checkMember);
    this.#worker ??= this.#start();
    this.#worker.postMessage(members);
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  #start(): Worker {
    const { script, argv } = this.thread;
    const worker = new Worker(script, { argv: [...argv] });
    worker.on('message', (gzip: Joined) => this.#waiting.shift()?.resolve(gzip));
    const end = (cause: string, code?: string) => {
      this.#failure ??= writeFailure({ message: `the thread that compresses lists ended: ${cause}`, code });
      for (const { reject } of this.#waiting.splice(0)) reject(this.#failure);
    };
    worker.on('error', (error) => end(messageOf(error), codeOf(error)));
    worker.on('exit', (exitCode) => end(`exit code ${exitCode}`));
    return worker;
  }

  /** Ends the thread. Portions that it has not returned are rejected. */
  async close(): Promise<void> {
    await this.#worker?.terminate();
  }
}
