/**
 * Parses blocks and checks their merkle roots. After some blocks, starts a thread for the next ones, so that two cores share the work of a
 * long pull. Blocks move between the threads without being copied.
 */
import { Worker } from 'node:worker_threads';
import { BuildError, messageOf } from '../../errors.ts';
import { exceeds, type Limits } from '../../limits.ts';
import { program } from '../../program.ts';
import { type Block, BlockError, type BlockParts, readBlock, withPlaces } from '../../runes/parseBlock.ts';
import { hash256 } from './hash256.ts';

/** Answer of the thread: a block, or what is wrong with its bytes. */
export type ParsedBlock = { readonly block: BlockParts } | { readonly damage: string };

export class BlockParser {
  #blocks = 0;
  #thread: Worker | undefined;
  /** Blocks that the thread has not answered yet. It answers in order. */
  readonly #asked: { readonly resolve: (answer: ParsedBlock) => void; readonly reject: (error: Error) => void }[] = [];

  constructor(private readonly limits: Pick<Limits, 'blocksBeforeThread'>) {}

  /** Takes the bytes away from the caller. Rejects with a BlockError like `readBlock`, and with a BuildError if the thread ends. */
  async read(body: Buffer): Promise<Block> {
    this.#blocks += 1;
    // A plain view: slices of a Buffer take several times as long. A small Buffer shares its memory with others, so only a copy can move to
    // the thread.
    const isShared = body.length < body.buffer.byteLength;
    const bytes = isShared ? Uint8Array.from(body) : new Uint8Array(body.buffer as ArrayBuffer);
    if (!exceeds(this.limits, 'blocksBeforeThread', this.#blocks)) return readBlock(bytes, hash256);
    this.#thread ??= this.#start();
    this.#thread.ref();
    this.#thread.postMessage(bytes, [bytes.buffer]);
    const parsed = await new Promise<ParsedBlock>((resolve, reject) => this.#asked.push({ resolve, reject }));
    if ('damage' in parsed) throw new BlockError(parsed.damage);
    return withPlaces(parsed.block);
  }

  close(): void {
    void this.#thread?.terminate();
  }

  #start(): Worker {
    const { script, argv } = program.threads.block;
    const thread = new Worker(script, { argv: [...argv] });
    let why = '';
    thread.on('message', (parsed: ParsedBlock) => {
      this.#asked.shift()?.resolve(parsed);
      // An idle thread must not keep the process alive.
      if (this.#asked.length === 0) thread.unref();
    });
    thread.on('error', (error) => {
      why = `: ${messageOf(error)}`;
    });
    thread.on('exit', () => {
      this.#thread = undefined;
      for (const { reject } of this.#asked.splice(0)) reject(new BuildError(`the thread that parses blocks has ended${why}`));
    });
    return thread;
  }
}
