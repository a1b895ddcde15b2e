/**
 * Shares the server's time between answers from an archive. Long answers, which read many parts of files, take turns
 * with each other and with new requests, and end if their client disconnects.
 */
import { setImmediate } from 'node:timers/promises';
import { exceeds, type ServerLimits } from '../../limits.ts';
import type { Files } from '../../pages/fileAccess.ts';
import type { Asked } from '../http/handler.ts';
import type { BuiltFile } from './builtFiles.ts';

/** Thrown if the client of a request has disconnected. format/archiveReader.ts recognises aborted reads by `name`. */
export class ClientLeftError extends Error {
  override readonly name = 'AbortError';
}

/** A request to the local server. */
export interface LocalRequest extends Asked {
  /**
   * True if the client has disconnected. A client that closed only its sending side may still read. But until the server
   * sends something, it looks like a disconnected client. So a long answer ends for such a client, too.
   */
  hasLeft(isLong: boolean): boolean;
}

/**
 * Runs the reads of long answers one after another, so that the server can answer new requests in between. Each read
 * waits for a new turn of Node's event loop, because Node accepts only one connection per turn.
 */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  run<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(() => setImmediate()).then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

/** Files of a build, for one answer. Reads reject with a ClientLeftError after the client has disconnected. */
export class FairFiles implements Files<BuiltFile> {
  /** Number of parts of files that this answer has read or inflated. */
  #parts = 0;

  constructor(
    private readonly files: Files<BuiltFile>,
    private readonly turns: Turns,
    private readonly request: LocalRequest,
    private readonly limits: ServerLimits,
  ) {}

  open(path: string): Promise<BuiltFile | undefined> {
    return this.files.open(path);
  }

  read(path: string, offset: number, length: number, size: number): Promise<Uint8Array | undefined> {
    return this.#inTurn(() => this.files.read(path, offset, length, size));
  }

  inflate(member: Uint8Array, most: number): Promise<string> {
    return this.#inTurn(() => this.files.inflate(member, most));
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#parts += 1;
    const isLong = exceeds(this.limits, 'freeParts', this.#parts);
    const unlessLeft = async () => {
      if (this.request.hasLeft(isLong)) throw new ClientLeftError('the client has left');
      return work();
    };
    return isLong ? this.turns.run(unlessLeft) : unlessLeft();
  }
}
