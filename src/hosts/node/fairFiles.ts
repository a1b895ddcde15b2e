/**
 * Lets answers from an archive share the time of the server. An answer that reads much goes on in turns with others, and
 * ends when its client has left.
 */
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { exceeds, type ServerLimits } from '../../limits.ts';
import type { Files } from '../../pages/files.ts';
import type { BuiltFile } from './files.ts';

/** The client of a request has left, so nobody needs the answer. The name is that of an aborted read (archive/reader.ts). */
export class ClientLeftError extends Error {
  override readonly name = 'AbortError';
}

/**
 * Runs the reads of long answers one after another. Requests that arrive meanwhile are answered in between: Node accepts
 * only one connection in each turn of its loop, so every read begins a turn.
 */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  run<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(() => setImmediate()).then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

/** The files of a build, for one answer. Reads reject with a ClientLeftError when the client has left. */
export class FairFiles implements Files<BuiltFile> {
  readonly #files: Files<BuiltFile>;
  readonly #turns: Turns;
  readonly #response: ServerResponse;
  readonly #limits: ServerLimits;
  /** Parts of files that this answer has read or inflated. */
  #parts = 0;

  constructor(files: Files<BuiltFile>, turns: Turns, response: ServerResponse, limits: ServerLimits) {
    this.#files = files;
    this.#turns = turns;
    this.#response = response;
    this.#limits = limits;
  }

  open(path: string): Promise<BuiltFile | undefined> {
    return this.#files.open(path);
  }

  read(path: string, offset: number, length: number, isWhole: boolean): Promise<Uint8Array | undefined> {
    return this.#inTurn(() => this.#files.read(path, offset, length, isWhole));
  }

  inflate(member: Uint8Array, most: number): Promise<string> {
    return this.#inTurn(() => this.#files.inflate(member, most));
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#parts += 1;
    if (!exceeds(this.#limits, 'freeParts', this.#parts)) return this.#unlessLeft(false, work);
    return this.#turns.run(() => this.#unlessLeft(true, work));
  }

  /**
   * Runs `work` unless the client has left. A client that only closed its side may still read, which looks the same until
   * it is sent something. It gets a short answer, not a long one.
   */
  async #unlessLeft<Result>(isLong: boolean, work: () => Promise<Result>): Promise<Result> {
    const { destroyed, socket } = this.#response;
    if (destroyed || (isLong && socket?.readableEnded === true)) {
      this.#response.destroy();
      throw new ClientLeftError('the client has left');
    }
    return work();
  }
}
