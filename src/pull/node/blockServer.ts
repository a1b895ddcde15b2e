/**
 * Server that has blocks and transactions which the node has pruned: an API of Esplora, or REST of another node. It need not be trusted: a
 * block must have the requested hash, and the transactions and witnesses that its header and coinbase commit to, a transaction its id.
 */
import { InputError } from '../../errors.ts';
import { hashText } from '../../runes/bytes.ts';
import { type Block, BlockError, checkWitnesses, readBlock, readUnconfirmed } from '../../runes/parseBlock.ts';
import type { Client } from '../httpClient.ts';
import { hash256 } from './hash256.ts';

/** Largest block that Bitcoin's rules allow, in bytes. */
export const LARGEST_BLOCK = 4_000_000;

/** Suffixes of the paths of raw blocks and transactions: first of Esplora's API, then of Bitcoin Core's REST. */
const ENDS = ['/raw', '.bin'] as const;

export class BlockServer {
  readonly #base: string;
  /** The suffix that the server answers. Undefined before its first answer. */
  #end: (typeof ENDS)[number] | undefined;

  /** `base` is the URL before `/block`, such as `https://host/api` or `http://host:8332/rest`. */
  constructor(
    base: URL,
    private readonly client: Client,
  ) {
    this.#base = base.href.replace(/\/+$/, '');
  }

  /** Reads a block. Rejects with a BuildError if all answers are wrong, with an InputError if the block is missing. */
  block(hash: string): Promise<Block> {
    return this.#read(`/block/${hash}`, (bytes) => {
      const block = readBlock(bytes, hash256);
      if (block.hash !== hash) throw new BlockError(`it is block ${block.hash} instead of the requested block`);
      checkWitnesses(block, hash256);
      return block;
    });
  }

  /** Reads a transaction, as a block with an empty header. Rejects like `block`. */
  transaction(txid: string): Promise<Block> {
    return this.#read(`/tx/${txid}`, (bytes) => {
      const read = readUnconfirmed(bytes, 1, hash256);
      const found = hashText(read.txids, 0);
      if (found !== txid) throw new BlockError(`it is transaction ${found} instead of the requested transaction`);
      return read;
    });
  }

  async #read(path: string, parse: (bytes: Uint8Array) => Block): Promise<Block> {
    for (const end of this.#end === undefined ? ENDS : [this.#end]) {
      const url = `${this.#base}${path}${end}`;
      const { body } = await this.client.get(url, parse, LARGEST_BLOCK);
      if (body === undefined) continue;
      this.#end = end;
      return body;
    }
    const advice = path.startsWith('/tx/')
      ? 'Give the URL of an Esplora API to --block-source, or of REST of a node with txindex=1: etchings need the transactions that they spend.'
      : 'Give the URL before /block to --block-source: of an Esplora API, such as https://host/api, or of REST of an unpruned node, such as http://host:8332/rest.';
    throw new InputError(`${this.#base} does not have ${path.slice(1)}`, [advice]);
  }
}
