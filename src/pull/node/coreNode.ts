/** Bitcoin Core 30 or newer, with `rest=1`, as a source of blocks. Converts its statuses and texts to errors, and retries. */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { hex64 } from '../../contract/schemas.ts';
import { BuildError, InputError } from '../../errors.ts';
import type { Limits } from '../../limits.ts';
import { hashText, uint32At } from '../../runes/bytes.ts';
import type { Commitment, PreviousOutput } from '../../runes/indexBlock.ts';
import { isNetwork, NETWORKS, type NetworkName } from '../../runes/networks.ts';
import { type Block, BlockError, HEADER_BYTES, type Header, readHeader, scriptOf } from '../../runes/parseBlock.ts';
import { type Answer, Client, type ClientOptions, isPassing, PassingError, parsed, type Reading } from '../httpClient.ts';
import { HIGHEST } from '../pullOptions.ts';
import { BlockParser } from './blockParser.ts';
import { type BlockServer, LARGEST_BLOCK } from './blockServer.ts';
import { hash256 } from './hash256.ts';
import { LONGEST_SCRIPT, SpentOutputs } from './spentOutputs.ts';

export interface ChainInfo {
  readonly network: NetworkName;
  /** Height of the last block that the node has checked. */
  readonly blocks: number;
  readonly headers: number;
  readonly bestHash: string;
  readonly isSyncing: boolean;
}

export interface NodeOptions extends Pick<ClientOptions, 'concurrency' | 'retries' | 'timeoutMs' | 'pauseMs' | 'signal'> {
  readonly url: URL;
  readonly limits: Pick<Limits, 'blocksBeforeThread'>;
  readonly onNotice: (message: string) => void;
  readonly blockServer?: BlockServer | undefined;
}

/** Maximum number of outpoints in a request of `rest/getutxos`, and of headers in an answer, in Bitcoin Core. */
export const COINS_AT_ONCE = 15;
const HEADERS_AT_ONCE = 2000;

/**
 * Largest answer about the chain, in bytes, and of `rest/getutxos`. The latter has each script in several forms. The longest name of an
 * opcode, which is one byte of a script, has 22 characters.
 */
const [SMALL_ANSWER, LARGEST_COINS] = [1_000_000, COINS_AT_ONCE * (1000 + 32 * LONGEST_SCRIPT)];

/** Pause between two requests to a node that is starting, as a multiple of `pauseMs`. */
const WARM_UP_PAUSES = 4;

/** Hash that no block has. The header of a chain's first block has it as the hash of the block before. */
export const NO_BLOCK = '0'.repeat(64);

const height = z.int().min(0).max(HIGHEST);

const chainInfo = z.object({
  chain: z.string(),
  blocks: height,
  headers: z.int().max(HIGHEST),
  bestblockhash: hex64,
  initialblockdownload: z.boolean(),
});

const hashAnswer = z.object({ blockhash: hex64 });

/** Answer of `rest/getutxos`: a 1 in the bitmap for each outpoint that was found, and the outputs of these. */
const coinsAnswer = z
  .object({
    chaintipHash: hex64,
    bitmap: z.string(),
    utxos: z.array(z.object({ height, scriptPubKey: z.object({ hex: z.hex().max(2 * LONGEST_SCRIPT) }) })),
  })
  .refine(({ bitmap, utxos }) => bitmap.split('1').length === utxos.length + 1);

class PrunedError extends InputError {}

/** Thrown for a block that the node has not downloaded yet, because it was started from a snapshot. */
class NotDownloadedError extends BuildError {}

export class BitcoinNode {
  readonly name: string;
  readonly #client: Client;
  readonly #base: string;
  /** What `#sayOnce` said since the last answer of the node. */
  #said: 'refused' | 'starting' | undefined;
  readonly #parser: BlockParser;
  /** Blocks from the block server. The node lacks these blocks, and the outputs that they spend. */
  readonly #foreign = new WeakSet<Block>();

  private constructor(private readonly options: NodeOptions) {
    const { url, onNotice } = options;
    this.name = `Bitcoin Core ${url.host}`;
    this.#base = url.href.replace(/\/+$/, '');
    this.#parser = new BlockParser(options.limits);
    this.#client = new Client({
      ...options,
      rate: 0,
      onRetry: (why) =>
        why.includes('ECONNREFUSED')
          ? this.#sayOnce('refused', `${why}; does bitcoind run, with -server, on this port? Trying again`)
          : onNotice(`${why}; trying again`),
    });
  }

  /** Waits for a node that starts. Throws an InputError if it has no REST, is too old or another program, a BuildError if unreachable. */
  static async open(options: NodeOptions): Promise<BitcoinNode> {
    const { url, onNotice } = options;
    const node = new BitcoinNode(options);
    if (url.protocol === 'http:' && !isLoopback(url))
      onNotice(`${node.name} is asked over plain HTTP: others in the network could change blocks`);
    try {
      await node.#persist('the chain', async () => {
        const { status } = await node.#rest('/chaininfo.json');
        if (status !== 200)
          throw new InputError(`${node.name} does not answer REST: rest=1 is missing in bitcoin.conf, or this is not the node's port`, [
            'Set rest=1 and restart the node. --from must have its RPC port, as in core:http://127.0.0.1:8332, which serves REST, too.',
          ]);
        await node.#spent(NO_BLOCK);
      });
    } catch (error) {
      node.close();
      throw error;
    }
    return node;
  }

  async chain(): Promise<ChainInfo> {
    const info = await this.#persist('the chain', async () => parseJson(await this.#body('/chaininfo.json'), chainInfo));
    const { chain: network, blocks, headers, bestblockhash: bestHash, initialblockdownload: isSyncing } = info;
    if (isNetwork(network)) return { network, blocks, headers, bestHash, isSyncing };
    throw new InputError(`${this.name} follows the network ${JSON.stringify(network.slice(0, 50))}, which is not supported`, [
      `Start it for one of these networks: ${Object.keys(NETWORKS).join(', ')}.`,
    ]);
  }

  /** Returns the hash of the block at a height of the node's best chain. Undefined above its tip. */
  hashAt(at: number): Promise<string | undefined> {
    return this.#persist(`the hash of block ${at}`, async () => {
      const answer = await this.#rest(`/blockhashbyheight/${at}.json`);
      if (textOf(answer.body).startsWith('Block height out of range')) return undefined;
      return parseJson(this.#found(answer, `block ${at}`), hashAnswer).blockhash;
    });
  }

  /**
   * Reads a block and checks its hash and merkle root. Retries a damaged block. A block that the node lacks comes from the block server,
   * which also checks its witnesses; without one, a pruned block is an InputError. Messages name the height if it is known.
   */
  async readBlock(hash: string, height?: number): Promise<Block> {
    const { blockServer } = this.options;
    try {
      return await this.#ownBlock(hash, `block ${height ?? hash}`);
    } catch (error) {
      const isMissing = error instanceof PrunedError || error instanceof NotDownloadedError;
      if (blockServer === undefined || !isMissing) throw error;
    }
    const block = await blockServer.block(hash);
    this.#foreign.add(block);
    return block;
  }

  /** Reads the headers of the node's chain between two heights. The chain may change meanwhile. */
  async headers(first: number, last: number): Promise<Header[]> {
    const headers: Header[] = [];
    for (let next = first; next <= last; next += HEADERS_AT_ONCE) {
      const count = Math.min(last - next + 1, HEADERS_AT_ONCE);
      const bytes = await this.#persist(`the headers from block ${next} on`, async () => {
        const found = await this.#body(`/headers/${count}/${(await this.hashAt(next)) ?? ''}.bin`);
        if (found.length === count * HEADER_BYTES) return found;
        throw new PassingError(`have ${found.length} bytes instead of ${count * HEADER_BYTES} (${count} headers)`);
      });
      for (let at = 0; at < bytes.length; at += HEADER_BYTES) headers.push(readHeader(bytes.subarray(at, at + HEADER_BYTES), hash256));
    }
    return headers;
  }

  /** Returns the scripts that the `wanted` inputs of a block spend, in the same order. */
  async spentScripts(block: Block, wanted: readonly Commitment[]): Promise<Uint8Array[]> {
    if (wanted.length === 0) return [];
    const { blockServer } = this.options;
    if (blockServer !== undefined && this.#foreign.has(block))
      return Promise.all(
        wanted.map(async (one) => {
          const at = outpointAt(block, one);
          const made = await blockServer.transaction(hashText(block.bytes, at));
          const [place] = made.transactions;
          return place === undefined ? new Uint8Array() : scriptOf(made, place, uint32At(block.bytes, at + 32));
        }),
      );
    return this.#persist(`the spent outputs of block ${block.hash}`, async () => {
      const outputs = new SpentOutputs(block, wanted);
      this.#found(await this.#spent(block.hash, outputs.feed), `block ${block.hash}`);
      return outputs.end();
    });
  }

  /** Unspent outputs of up to COINS_AT_ONCE `txid:vout`, as of block `tip`, not of the mempool. Undefined for spent or unknown ones. */
  coins(outpoints: readonly string[]): Promise<{ readonly tip: string; readonly coins: readonly (PreviousOutput | undefined)[] }> {
    const path = outpoints.map((outpoint) => outpoint.replace(':', '-')).join('/');
    return this.#persist('unspent outputs', async () => {
      const { chaintipHash, bitmap, utxos } = parseJson(await this.#body(`/getutxos/${path}.json`, LARGEST_COINS), coinsAnswer);
      if (bitmap.length !== outpoints.length) throw new PassingError(`are ${bitmap.length} instead of ${outpoints.length}`);
      const found = utxos
        .map((coin) => ({ height: coin.height, script: new Uint8Array(Buffer.from(coin.scriptPubKey.hex, 'hex')) }))
        .values();
      return { tip: chaintipHash, coins: Array.from(bitmap, (bit) => (bit === '1' ? found.next().value : undefined)) };
    });
  }

  close(): void {
    this.#client.close();
    this.#parser.close();
  }

  #ownBlock(hash: string, name: string): Promise<Block> {
    return this.#persist(`block ${hash}`, async () => {
      const bytes = this.#found(await this.#rest(`/block/${hash}.bin`, LARGEST_BLOCK), name);
      if (bytes.length < HEADER_BYTES)
        throw new PassingError(`is cut off: it has ${bytes.length} bytes, less than a header of ${HEADER_BYTES}`);
      const found = hashText(hash256(bytes.subarray(0, HEADER_BYTES)));
      if (found !== hash) throw new PassingError(`is damaged: its header has the hash ${found}`);
      try {
        return await this.#parser.read(bytes);
      } catch (error) {
        throw error instanceof BlockError ? new PassingError(`is damaged: ${error.message}`) : error;
      }
    });
  }

  /** Requests the outputs that a block spends. Throws an InputError if the node is too old. */
  async #spent(hash: string, sink?: Reading['sink']): Promise<Answer> {
    const answer = await this.#rest(`/spenttxouts/${hash}.bin`, sink === undefined ? SMALL_ANSWER : Number.POSITIVE_INFINITY, sink);
    // A node that does not know the path answers with an empty body.
    if (answer.status === 404 && textOf(answer.body) === '')
      throw new InputError(`${this.name} has no rest/spenttxouts: use Bitcoin Core 30 or newer`);
    return answer;
  }

  /** Says why the node does not answer yet. Says it once, until the node has answered. */
  #sayOnce(why: 'refused' | 'starting', message: string): void {
    if (this.#said !== why) this.options.onNotice(message);
    this.#said = why;
  }

  #persist<T>(what: string, step: () => Promise<T>): Promise<T> {
    return this.#client.persist(`${what} of ${this.name}`, step);
  }

  /** Waits without limit while the node is starting. Throws for a status other than 200 and 404. */
  async #rest(path: string, limit = SMALL_ANSWER, sink?: Reading['sink']): Promise<Answer> {
    const { pauseMs, signal } = this.options;
    const url = new URL(`${this.#base}/rest${path}`);
    for (;;) {
      const answer = await this.#client.send(url, { limit, sink });
      const { status, headers, body } = answer;
      const text = textOf(body);
      const [, stage] = /^Service temporarily unavailable: (.*)/.exec(status === 503 ? text : '') ?? [];
      if (stage !== undefined) {
        this.#sayOnce('starting', `${this.name} is starting (${quoted(stage)}); waiting for it`);
        await sleep(pauseMs * WARM_UP_PAUSES, undefined, { signal });
        continue;
      }
      if (isPassing(status)) throw statusError(status, text);
      if (status === 200 && /^text\/html\b/i.test(String(headers['content-type'])))
        throw new InputError(`the server at ${this.#base} is not Bitcoin Core: it answers with a web page`, [
          "Give the URL of the node's RPC port, such as http://127.0.0.1:8332.",
        ]);
      if (status === 401 || status === 403)
        throw new InputError(`${this.name} refuses requests of this machine (status ${status})`, [
          'Check rpcallowip and rpcbind in bitcoin.conf.',
        ]);
      if (status !== 200 && status !== 404) throw statusError(status, text);
      this.#said = undefined;
      return answer;
    }
  }

  async #body(path: string, limit?: number): Promise<Buffer> {
    return this.#found(await this.#rest(path, limit));
  }

  /** Returns the body of an answer. Throws if the node lacks what it was asked for. `block` names the block. */
  #found({ status, body }: Answer, block = 'a block'): Buffer {
    if (status === 200) return body;
    const text = textOf(body);
    if (text.includes('not fully downloaded'))
      throw new NotDownloadedError(`${this.name} has not yet downloaded ${block}, which is needed (${quoted(text)})`, [
        'It was started from a snapshot (assumeutxo) and still downloads older blocks. Wait for it, then run the same command again.',
      ]);
    if (!text.includes('pruned data')) throw statusError(status, text);
    throw new PrunedError(`${this.name} has pruned ${block}, which is needed (${quoted(text)})`, [
      'Give a server that has it with --block-source: it need not be trusted.',
      'Set prune=0 in bitcoin.conf and let the node download its blocks again, or use another node.',
      'Or pull newer rows of a mirror into another folder (--to), which the node then continues.',
    ]);
  }
}

const isLoopback = (url: URL): boolean => /^(?:localhost|127(?:\.[0-9]+){3}|\[::1\])$/.test(url.hostname);

/** Offset of the outpoint that an input spends. */
export const outpointAt = (block: Block, { transaction, input }: Commitment): number =>
  block.inputs[(block.transactions[transaction]?.firstInput ?? 0) + input] ?? 0;

/** Throws a PassingError if the body does not match the schema. */
const parseJson = <T>(body: Buffer, schema: z.ZodType<T>): T => parsed(body, (bytes) => schema.parse(JSON.parse(bytes.toString())));

function statusError(status: number, text: string): PassingError {
  const why = text !== '' ? ` ${quoted(text)}` : status === 503 ? ': the node is stopping, or too busy' : '';
  return new PassingError(`was answered with status ${status}${why}`);
}

/** Returns the first 1,000 bytes of a body as text. */
const textOf = (body: Buffer): string => body.toString('utf8', 0, 1000).trim();

const quoted = (text: string): string => JSON.stringify(text.slice(0, 200));
