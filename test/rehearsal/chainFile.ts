/**
 * Stores an invented chain on disk. Blocks are only added, including those of branches, so that the simulated node can read while the
 * rehearsal writes. A block replaces all earlier blocks of the same or a greater height.
 *
 *     HASH.bin           a block
 *     chain.txt          for each block: hash, height
 *     commitments.txt    for each output that commits to a name: outpoint, height, script
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PreviousOutput } from '../../src/runes/indexBlock.ts';
import type { FakeBlock } from '../support/fakeNode.ts';
import type { MadeBlock } from './chain.ts';

const pathsOf = (folder: string) => ({ chain: join(folder, 'chain.txt'), commitments: join(folder, 'commitments.txt') });

const displayed = (hash: Uint8Array): string => Buffer.from(hash).reverse().toString('hex');

/** True if a folder has such a chain. */
export const hasChain = (folder: string): boolean => existsSync(pathsOf(folder).chain);

export class ChainWriter {
  readonly #folder: string;
  /** Number of blocks in the folder, including those of branches. */
  count = 0;

  /** Begins an empty chain. */
  constructor(folder: string) {
    this.#folder = folder;
    for (const path of Object.values(pathsOf(folder))) writeFileSync(path, '');
  }

  add({ hash, height, bytes, commitments }: MadeBlock): void {
    const paths = pathsOf(this.#folder);
    writeFileSync(join(this.#folder, `${displayed(hash)}.bin`), bytes);
    const lines = commitments.map(
      ({ txid, vout, height: at, script }) => `${displayed(txid)}:${vout} ${at} ${Buffer.from(script).toString('hex')}\n`,
    );
    appendFileSync(paths.commitments, lines.join(''));
    // Comes last, because readers read only blocks that this file names.
    appendFileSync(paths.chain, `${displayed(hash)} ${height}\n`);
    this.count++;
  }
}

/** Reads a chain while a writer extends it. */
export class ChainReader {
  #chain: FakeBlock[] = [];
  #read = 0;
  #outputs = new Map<string, PreviousOutput>();

  constructor(readonly folder: string) {}

  /** Returns the best chain, by height, when the folder has only its first `count` blocks. `count` may not decrease between calls. */
  chainAfter(count: number): readonly FakeBlock[] {
    const { folder } = this;
    const paths = pathsOf(folder);
    const chain = [...this.#chain];
    for (const line of linesOf(paths.chain).slice(this.#read, count)) {
      const [hash = '', height] = line.split(' ');
      chain.length = Number(height);
      chain.push({
        hash,
        height: chain.length,
        get bytes() {
          return readFileSync(join(folder, `${hash}.bin`));
        },
      });
      this.#read++;
    }
    this.#chain = chain;
    this.#outputs = new Map(
      linesOf(paths.commitments).map((line) => {
        const [outpoint = '', height, script = ''] = line.split(' ');
        return [outpoint, { height: Number(height), script: Buffer.from(script, 'hex') }];
      }),
    );
    return chain;
  }

  /** Returns an output that commits to a name. */
  output(outpoint: string): PreviousOutput | undefined {
    return this.#outputs.get(outpoint);
  }
}

const linesOf = (path: string): string[] => readFileSync(path, 'latin1').split('\n').slice(0, -1);
