/**
 * A Bitcoin Core node as the source of blocks: its chain, its raw blocks, and the outputs that an input spends.
 *
 * Trusts the node: does not check proof of work. Blocks come over REST if the node answers it (`rest=1`), otherwise in
 * hex over RPC.
 */
import { z } from 'zod';
import { isPlainHttp } from '../../contract/plainUrl.ts';
import { hex64 } from '../../contract/schemas.ts';
import { InputError } from '../../errors.ts';
import { type Block, BlockError, readBlock } from '../../runes/block.ts';
import { hashText } from '../../runes/bytes.ts';
import type { PreviousOutput } from '../../runes/indexBlock.ts';
import { NETWORKS } from '../../runes/networks.ts';
import { PassingError } from '../client.ts';
import {
  bytesOf,
  chainInfo,
  ENVELOPE_BYTES,
  hashAnswer,
  jsonBlock,
  LARGEST_BLOCK,
  LARGEST_JSON,
  networkInfo,
  pick,
  SMALL_ANSWER,
  transaction,
  type WantedOutput,
} from './answers.ts';
import {
  type CallOptions,
  Calls,
  CredentialsError,
  parsed,
  parseJson,
  quoted,
  RPC_CODES,
  RpcError,
  statusError,
  textOf,
  WrongServerError,
} from './calls.ts';
import { type CredentialOptions, Credentials, isLoopback } from './credentials.ts';
import { hash256 } from './hash256.ts';

type NetworkName = keyof typeof NETWORKS;

export interface ChainInfo {
  readonly network: NetworkName;
  /** Height of the last block that the node has checked. */
  readonly blocks: number;
  /** Height of the last header that the node knows. */
  readonly headers: number;
  readonly bestHash: string;
  /** True until the node has caught up with its network. */
  readonly isSyncing: boolean;
  /** Lowest height whose block the node still has. */
  readonly firstStored: number;
}

export interface NodeOptions extends CallOptions, CredentialOptions {}

const HEADER_BYTES = 80;

/** Transactions of one block from which on the JSON of the whole block costs the node less than a call for each. */
const MANY_TRANSACTIONS = 20;

const PARALLEL_CALLS = 4;

/** First versions whose `getrawtransaction`, and whose blocks as JSON, have the outputs that inputs spend. */
const VERSION_WITH_PREVIOUS = { transaction: 250_000, block: 230_000 } as const;

const ADVICE_FOR_PREVIOUS = 'Use Bitcoin Core 25 or newer with a cookie file or credentials, or 23 or newer with rest=1 in bitcoin.conf.';

export class BitcoinNode {
  readonly name: string;
  readonly #calls: Calls;
  /** Undefined if the node is asked over REST alone. */
  #credentials: Credentials | undefined;
  #hasRest = false;
  /** Such as 270100 for 27.1. Undefined if it is unknown. */
  #version: number | undefined;

  private constructor(options: NodeOptions) {
    this.#credentials = Credentials.find(options);
    this.#calls = new Calls(options);
    this.name = this.#calls.name;
  }

  /**
   * Finds out which interfaces the node answers. Throws an InputError if they are not enough, if the server is not
   * Bitcoin Core, or if the credentials are refused; a BuildError if it cannot be reached.
   */
  static async open(options: NodeOptions): Promise<BitcoinNode> {
    const { url } = options;
    if (!isPlainHttp(url)) {
      // The message does not show the URL, which may contain a password.
      throw new InputError('the URL of the node must be http or https, without user, password, query and fragment', [
        'Give the cookie file with --cookie FILE, or user and password in the environment variables CORE_RPC_USER and CORE_RPC_PASSWORD.',
      ]);
    }
    const node = new BitcoinNode(options);
    try {
      if (url.protocol === 'http:' && !isLoopback(url)) {
        options.onNotice(`${node.name} is asked over plain HTTP: others in the network could read credentials and change blocks`);
      }
      await node.#look(options);
    } catch (error) {
      node.close();
      throw error;
    }
    return node;
  }

  async chain(): Promise<ChainInfo> {
    const info = await this.#calls.persist('the chain', async () =>
      this.#hasRest
        ? parseJson(await this.#rest('/chaininfo.json', SMALL_ANSWER), chainInfo)
        : this.#rpc('getblockchaininfo', [], chainInfo),
    );
    const { chain } = info;
    if (!isNetwork(chain)) {
      throw new InputError(`${this.name} follows the network ${JSON.stringify(chain.slice(0, 50))}, which is not supported`, [
        `Start it for one of these networks: ${Object.keys(NETWORKS).join(', ')}.`,
      ]);
    }
    return {
      network: chain,
      blocks: info.blocks,
      headers: info.headers,
      bestHash: info.bestblockhash,
      isSyncing: info.initialblockdownload,
      firstStored: info.pruned ? (info.pruneheight ?? 0) : 0,
    };
  }

  /** Returns the hash of the block at a height of the node's best chain. Undefined above its tip. */
  hashAt(at: number): Promise<string | undefined> {
    return this.#calls.persist(`the hash of block ${at}`, async () => {
      if (this.#hasRest) {
        const { status, body } = await this.#calls.rest(`/blockhashbyheight/${at}.json`, SMALL_ANSWER);
        if (status === 200) return parseJson(body, hashAnswer).blockhash;
        if (textOf(body).startsWith('Block height out of range')) return undefined;
        throw statusError(status, textOf(body));
      }
      try {
        return await this.#rpc('getblockhash', [at], hex64);
      } catch (error) {
        if (error instanceof RpcError && error.code === RPC_CODES.parameter) return undefined;
        throw error;
      }
    });
  }

  /**
   * Reads a block and checks its hash and merkle root. A damaged one is fetched again. Throws an InputError if the node
   * has pruned the block.
   */
  readBlock(hash: string): Promise<Block> {
    return this.#calls.persist(`block ${hash}`, async () => {
      try {
        return readBlock(await this.#block(hash), hash256);
      } catch (error) {
        throw error instanceof BlockError ? new PassingError(`is damaged: ${error.message}`) : error;
      }
    });
  }

  /** Returns the outputs that inputs of a block's transactions spend, in the order of `wanted`. */
  async previousOutputs(block: { readonly hash: string }, wanted: readonly WantedOutput[]): Promise<PreviousOutput[]> {
    if (wanted.length === 0) return [];
    const txids = [...new Set(wanted.map(({ txid }) => txid))];
    const byTransaction = () => this.#transactions(block.hash, txids);
    const byBlock = async () => new Map((await this.#jsonBlock(block.hash)).tx.map(({ txid, vin }) => [txid, vin]));
    const ways = [
      ...(this.#credentials && (this.#version ?? Infinity) >= VERSION_WITH_PREVIOUS.transaction ? [byTransaction] : []),
      byBlock,
    ];
    if (txids.length > MANY_TRANSACTIONS) ways.reverse();
    for (const way of ways) {
      const found = await this.#calls.persist(`the inputs of block ${block.hash}`, async () => pick(await way(), wanted));
      if (found) return found;
    }
    throw new InputError(`${this.name} does not tell which outputs block ${block.hash} spends, so etchings cannot be checked`, [
      ADVICE_FOR_PREVIOUS,
    ]);
  }

  close(): void {
    this.#calls.close();
  }

  async #look({ onNotice }: NodeOptions): Promise<void> {
    const probe = async () => (await this.#calls.rest('/chaininfo.json', SMALL_ANSWER)).status === 200;
    this.#hasRest = await this.#calls.persist('the chain', probe);
    if (this.#hasRest && !this.#credentials) return;
    try {
      await this.#calls.persist('the chain', () => this.#rpc('getblockchaininfo', [], chainInfo));
      this.#version = await this.#calls.persist('the version', () => this.#askVersion());
    } catch (error) {
      const isRefused = error instanceof CredentialsError;
      if (!isRefused && !(error instanceof WrongServerError)) throw error;
      if (!this.#hasRest) {
        if (!isRefused) throw this.#calls.wrongServer('answers neither REST nor RPC');
        throw new InputError(`${error.message}, and does not answer REST`, [
          ...error.details,
          'Or set rest=1 in bitcoin.conf and restart the node: REST needs no credentials.',
        ]);
      }
      if (!this.#credentials?.areDefault) throw error;
      onNotice(`${error.message}; using REST alone`);
      this.#credentials = undefined;
    }
    if (!this.#hasRest)
      onNotice(`${this.name} does not answer REST, so blocks come over RPC, which is slower; rest=1 in bitcoin.conf turns it on`);
    if (this.#version !== undefined && this.#version < VERSION_WITH_PREVIOUS.block) {
      const [major, minor] = [Math.floor(this.#version / 10_000), Math.floor(this.#version / 100) % 100];
      throw new InputError(`${this.name} has version ${major}.${minor}, which is too old`, [ADVICE_FOR_PREVIOUS]);
    }
  }

  /** Returns undefined if the user of the RPC interface may not ask for the version. */
  async #askVersion(): Promise<number | undefined> {
    try {
      return (await this.#rpc('getnetworkinfo', [], networkInfo)).version;
    } catch (error) {
      if (error instanceof RpcError || error instanceof InputError) return undefined;
      throw error;
    }
  }

  async #block(hash: string): Promise<Uint8Array> {
    const bytes = this.#hasRest
      ? await this.#rest(`/block/${hash}.bin`, LARGEST_BLOCK)
      : bytesOf(await this.#rpc('getblock', [hash, 0], z.string(), 2 * LARGEST_BLOCK + ENVELOPE_BYTES));
    if (bytes.length < HEADER_BYTES) throw new PassingError(`is cut off: it has ${bytes.length} bytes`);
    const found = hashText(hash256(bytes.subarray(0, HEADER_BYTES)));
    if (found !== hash) throw new PassingError(`is damaged: its header has the hash ${found}`);
    return bytes;
  }

  async #jsonBlock(hash: string): Promise<z.infer<typeof jsonBlock>> {
    return this.#hasRest
      ? parseJson(await this.#rest(`/block/${hash}.json`, LARGEST_JSON), jsonBlock)
      : this.#rpc('getblock', [hash, 3], jsonBlock, LARGEST_JSON);
  }

  /** Returns the inputs of transactions of a block. */
  async #transactions(hash: string, txids: readonly string[]): Promise<Map<string, unknown[]>> {
    const inputs = new Map<string, unknown[]>();
    for (let i = 0; i < txids.length; i += PARALLEL_CALLS) {
      const some = txids.slice(i, i + PARALLEL_CALLS);
      const found = await Promise.all(some.map((txid) => this.#rpc('getrawtransaction', [txid, 2, hash], transaction, LARGEST_JSON)));
      for (const { txid, vin } of found) inputs.set(txid, vin);
    }
    return inputs;
  }

  /** Returns the body of a REST answer. Throws if it is missing or pruned. */
  async #rest(path: string, limit: number): Promise<Buffer> {
    const { status, body } = await this.#calls.rest(path, limit);
    if (status !== 200) throw this.#missing(textOf(body), statusError(status, textOf(body)));
    return body;
  }

  async #rpc<T>(method: string, params: readonly unknown[], schema: z.ZodType<T>, limit = SMALL_ANSWER): Promise<T> {
    try {
      return parsed(await this.#calls.rpc(method, params, limit, this.#credentials), schema);
    } catch (error) {
      throw error instanceof RpcError ? this.#missing(error.text, error) : error;
    }
  }

  /** Returns the error for a block that the node does not give, from what the node says. */
  #missing(text: string, error: PassingError): Error {
    if (!text.includes('pruned data')) return error;
    return new InputError(`${this.name} has pruned a block that is needed (${quoted(text)})`, [
      'Set prune=0 in bitcoin.conf and let the node download its blocks again, or use another node.',
    ]);
  }
}

const isNetwork = (name: string): name is NetworkName => Object.hasOwn(NETWORKS, name);
