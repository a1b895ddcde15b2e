/**
 * Bitcoin Core node as a source of blocks: chain, raw blocks, and the outputs that inputs spend.
 *
 * Reads blocks over REST if the node has REST turned on (`rest=1`), otherwise as hex over RPC. Does not check the proof
 * of work of the blocks (see checkedBlocks.ts).
 */
import { z } from 'zod';
import { isPlainHttp } from '../../contract/plainUrl.ts';
import { hex64 } from '../../contract/schemas.ts';
import { InputError } from '../../errors.ts';
import { hashText, uint32At } from '../../runes/bytes.ts';
import { CONFIRMATIONS, type Commitment, type PreviousOutput } from '../../runes/indexBlock.ts';
import { isNetwork, NETWORKS, type NetworkName } from '../../runes/networks.ts';
import { type Block, BlockError, HEADER_BYTES, type Header, readBlock, readHeader, scriptOf } from '../../runes/parseBlock.ts';
import { PassingError } from '../httpConnections.ts';
import type { BlockServer } from './blockServer.ts';
import { hash256 } from './hash256.ts';
import {
  bytesOf,
  type Coins,
  chainInfo,
  ENVELOPE_BYTES,
  hashAnswer,
  LARGEST_BLOCK,
  LARGEST_COINS,
  networkInfo,
  PreviousOutputs,
  readCoins,
  type WantedInput,
} from './nodeAnswers.ts';
import {
  type CallOptions,
  Calls,
  CredentialsError,
  ForbiddenError,
  NotDownloadedError,
  PrunedError,
  parseJson,
  RPC_CODES,
  RpcError,
  textOf,
  WrongServerError,
} from './nodeCalls.ts';
import { isLoopback } from './rpcCredentials.ts';
import { FormatError, SpentOutputs } from './spentOutputs.ts';

export interface ChainInfo {
  readonly network: NetworkName;
  /** Height of the last block that the node has checked. */
  readonly blocks: number;
  /** Height of the last header that the node knows. */
  readonly headers: number;
  readonly bestHash: string;
  /** True until the node has caught up with its network. */
  readonly isSyncing: boolean;
  /** Lowest height whose block can be read. 0 if a server has the blocks that the node has pruned. */
  readonly firstStored: number;
}

/** Maximum number of headers in an answer of Bitcoin Core's REST interface. */
const HEADERS_AT_ONCE = 2000;

/**
 * Above this number of wanted transactions, one call for the JSON of the complete block is faster than a call for each
 * transaction. Each call makes the node read and parse the block. With Core 31 and a block of 0.93 MB, the block took
 * 262 ms and each transaction 28.6 ms.
 */
const MANY_TRANSACTIONS = 10;

/**
 * First versions of Bitcoin Core whose JSON of a transaction (`getrawtransaction`), or of a block, has the outputs that
 * inputs spend. 250,000 means 25.0.
 */
const VERSION_WITH_PREVIOUS = { transaction: 250_000, block: 230_000 } as const;

const ADVICE_FOR_PREVIOUS = 'Use Bitcoin Core 25 or newer with a cookie file or credentials, or 23 or newer with rest=1 in bitcoin.conf.';

export interface NodeOptions extends CallOptions {
  /** Server for blocks that the node has pruned or has not downloaded yet. */
  readonly blockServer?: BlockServer | undefined;
}

export class BitcoinNode {
  readonly name: string;
  readonly #calls: Calls;
  readonly #server: BlockServer | undefined;
  /** Blocks from the block server. The node lacks these blocks, and the outputs that they spend. */
  readonly #foreign = new WeakSet<Block>();
  #hasRest = false;
  /** False once the node has not answered `rest/spenttxouts` in the expected form. The path is new in Core 30. */
  #hasSpentOutputs = true;
  /** False once the node has refused to let this user call `getrawtransaction`. */
  #hasTransactions = true;
  /** Version number, such as 270100 for 27.1. Undefined if unknown. */
  #version: number | undefined;

  private constructor(options: NodeOptions) {
    this.#calls = new Calls(options);
    this.#server = options.blockServer;
    this.name = this.#calls.name;
  }

  /**
   * Finds out whether the node answers REST and RPC. Throws an InputError if it answers neither, is too old, rejects
   * the credentials or is not Bitcoin Core. Throws a BuildError if the node is unreachable.
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
      if (url.protocol === 'http:' && !isLoopback(url))
        options.onNotice(`${node.name} is asked over plain HTTP: others in the network could read credentials and change blocks`);
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
        ? parseJson(await this.#calls.restBody('/chaininfo.json'), chainInfo)
        : this.#calls.rpc('getblockchaininfo', [], chainInfo),
    );
    const { chain } = info;
    if (!isNetwork(chain))
      throw new InputError(`${this.name} follows the network ${JSON.stringify(chain.slice(0, 50))}, which is not supported`, [
        `Start it for one of these networks: ${Object.keys(NETWORKS).join(', ')}.`,
      ]);
    return {
      network: chain,
      blocks: info.blocks,
      headers: info.headers,
      bestHash: info.bestblockhash,
      isSyncing: info.initialblockdownload,
      firstStored: info.pruned && this.#server === undefined ? (info.pruneheight ?? 0) : 0,
    };
  }

  /** Returns the hash of the block at a height of the node's best chain. Undefined above its tip. */
  hashAt(at: number): Promise<string | undefined> {
    return this.#calls.persist(`the hash of block ${at}`, async () => {
      if (this.#hasRest) {
        const answer = await this.#calls.rest(`/blockhashbyheight/${at}.json`);
        if (answer.status === 200) return parseJson(answer.body, hashAnswer).blockhash;
        if (textOf(answer.body).startsWith('Block height out of range')) return undefined;
        throw this.#calls.missing(answer);
      }
      try {
        return await this.#calls.rpc('getblockhash', [at], hex64);
      } catch (error) {
        if (error instanceof RpcError && error.code === RPC_CODES.parameter) return undefined;
        throw error;
      }
    });
  }

  /**
   * Reads a block and checks its hash and merkle root. Retries a damaged block. If the node does not have the block,
   * fetches it from the block server, and also checks its witnesses. Without a block server, throws an InputError for a
   * pruned block.
   */
  async readBlock(hash: string): Promise<Block> {
    try {
      return await this.#ownBlock(hash);
    } catch (error) {
      const isMissing = error instanceof PrunedError || error instanceof NotDownloadedError;
      if (this.#server === undefined || !isMissing) throw error;
    }
    const block = await this.#server.block(hash);
    this.#foreign.add(block);
    return block;
  }

  #ownBlock(hash: string): Promise<Block> {
    return this.#calls.persist(`block ${hash}`, async () => {
      try {
        return readBlock(await this.#block(hash), hash256);
      } catch (error) {
        throw error instanceof BlockError ? new PassingError(`is damaged: ${error.message}`) : error;
      }
    });
  }

  /** Reads the headers of the node's chain between two heights. The chain may change meanwhile. */
  async headers(first: number, last: number): Promise<Header[]> {
    const heights = Array.from({ length: last - first + 1 }, (_, i) => first + i);
    if (!this.#hasRest)
      return Promise.all(heights.map((height) => this.#calls.persist(`the header of block ${height}`, () => this.#rpcHeader(height))));
    const headers: Header[] = [];
    for (let next = first; next <= last; next += HEADERS_AT_ONCE) {
      const some = await this.#calls.persist(`the headers from block ${next} on`, () => this.#restHeaders(next, last));
      for (const header of some) headers.push(header);
    }
    return headers;
  }

  /**
   * Returns the outputs that the `wanted` inputs of a block spend, in the same order. `recentHeight` returns the height
   * of a transaction that is too young for a commitment, and undefined for an older one. The caller only checks whether
   * an output is old enough for a commitment. So an old output may get the highest height that is old enough instead of
   * its own height.
   */
  async previousOutputs(
    block: Block,
    height: number,
    wanted: readonly Commitment[],
    recentHeight: (txid: Uint8Array) => Promise<number | undefined>,
  ): Promise<PreviousOutput[]> {
    if (wanted.length === 0) return [];
    const scripts = await this.#scripts(block, wanted);
    if (scripts !== undefined) {
      const heights = wanted.map((one) => {
        const at = outpointAt(block, one);
        return recentHeight(block.bytes.subarray(at, at + 32));
      });
      const found = await Promise.all(heights);
      return scripts.map((script, i) => ({ script, height: found[i] ?? height - CONFIRMATIONS + 1 }));
    }
    const inputs = wanted.map(({ transaction, input }) => ({
      txid: hashText(block.txids, 32 * transaction),
      input,
      path: ['tx', transaction],
    }));
    const txids = new Set(inputs.map(({ txid }) => txid));
    const mayCall = this.#calls.credentials !== undefined && (this.#version ?? Infinity) >= VERSION_WITH_PREVIOUS.transaction;
    const byBlock = () => this.#fromBlock(block.hash, inputs);
    const ways = [...(mayCall && this.#hasTransactions ? [() => this.#fromTransactions(block.hash, inputs)] : []), byBlock];
    if (txids.size > MANY_TRANSACTIONS) ways.reverse();
    for (const way of ways) {
      const found = await way();
      if (found) return found;
    }
    throw new InputError(`${this.name} does not tell which outputs block ${block.hash} spends, so etchings cannot be checked`, [
      ADVICE_FOR_PREVIOUS,
    ]);
  }

  /** Throws an InputError if the node does not answer REST. `why` is the reason for needing REST, as a sentence. */
  checkRest(why: string): void {
    if (this.#hasRest) return;
    throw new InputError(`${this.name} does not answer REST, which is needed: ${why}`, [
      'Set rest=1 in bitcoin.conf and restart the node.',
    ]);
  }

  /**
   * Returns unspent outputs, without regard to the mempool. `outpoints` are at most `COINS_AT_ONCE` texts `txid:vout`.
   */
  coins(outpoints: readonly string[]): Promise<Coins> {
    this.checkRest('only REST returns unspent outputs');
    const path = outpoints.map((outpoint) => outpoint.replace(':', '-')).join('/');
    return this.#calls.persist('unspent outputs', async () =>
      readCoins(await this.#calls.restBody(`/getutxos/${path}.bin`, LARGEST_COINS), outpoints.length),
    );
  }

  close(): void {
    this.#calls.close();
  }

  async #look({ onNotice }: CallOptions): Promise<void> {
    const probe = async () => (await this.#calls.rest('/chaininfo.json')).status === 200;
    this.#hasRest = await this.#calls.persist('the chain', probe);
    if (this.#hasRest && !this.#calls.credentials) return;
    try {
      if (!this.#hasRest) await this.#calls.persist('the chain', () => this.#calls.rpc('getblockchaininfo', [], chainInfo));
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
      if (!this.#calls.credentials?.areDefault) throw error;
      onNotice(`${error.message}; using REST alone`);
      this.#calls.credentials = undefined;
    }
    if (!this.#hasRest)
      onNotice(`${this.name} does not answer REST, so blocks come over RPC, which is slower; rest=1 in bitcoin.conf turns it on`);
    if (this.#version !== undefined && this.#version < VERSION_WITH_PREVIOUS.block) {
      const [major, minor] = [Math.floor(this.#version / 10_000), Math.floor(this.#version / 100) % 100];
      throw new InputError(`${this.name} has version ${major}.${minor}, which is too old`, [ADVICE_FOR_PREVIOUS]);
    }
  }

  /** Returns the version. Undefined if the node does not let this user call `getnetworkinfo`. */
  async #askVersion(): Promise<number | undefined> {
    try {
      return (await this.#calls.rpc('getnetworkinfo', [], networkInfo)).version;
    } catch (error) {
      if (error instanceof RpcError || error instanceof ForbiddenError) return undefined;
      throw error;
    }
  }

  async #block(hash: string): Promise<Uint8Array> {
    const bytes = this.#hasRest
      ? await this.#calls.restBody(`/block/${hash}.bin`, LARGEST_BLOCK)
      : bytesOf(await this.#calls.rpc('getblock', [hash, 0], z.string(), 2 * LARGEST_BLOCK + ENVELOPE_BYTES));
    if (bytes.length < HEADER_BYTES)
      throw new PassingError(`is cut off: it has ${bytes.length} bytes, less than a header of ${HEADER_BYTES}`);
    const found = hashText(hash256(bytes.subarray(0, HEADER_BYTES)));
    if (found !== hash) throw new PassingError(`is damaged: its header has the hash ${found}`);
    return bytes;
  }

  /** Reads headers over REST from a height on, at most as many as fit in one answer. */
  async #restHeaders(first: number, last: number): Promise<Header[]> {
    const count = Math.min(last - first + 1, HEADERS_AT_ONCE);
    const bytes = await this.#calls.restBody(`/headers/${count}/${(await this.hashAt(first)) ?? ''}.bin`);
    if (bytes.length !== count * HEADER_BYTES)
      throw new PassingError(`have ${bytes.length} bytes instead of ${count * HEADER_BYTES} (${count} headers)`);
    return Array.from({ length: count }, (_, i) => readHeader(bytes.subarray(i * HEADER_BYTES, (i + 1) * HEADER_BYTES), hash256));
  }

  async #rpcHeader(height: number): Promise<Header> {
    const bytes = bytesOf(await this.#calls.rpc('getblockheader', [(await this.hashAt(height)) ?? '', false], z.string()));
    if (bytes.length !== HEADER_BYTES) throw new PassingError(`is damaged: it has ${bytes.length} bytes instead of ${HEADER_BYTES}`);
    return readHeader(bytes, hash256);
  }

  /** Returns the scripts of spent outputs. Undefined if the caller must read them from JSON of the node instead. */
  async #scripts(block: Block, wanted: readonly Commitment[]): Promise<Uint8Array[] | undefined> {
    const server = this.#server;
    if (server === undefined || !this.#foreign.has(block))
      return this.#hasRest && this.#hasSpentOutputs ? this.#spentScripts(block, wanted) : undefined;
    return Promise.all(
      wanted.map(async (one) => {
        const at = outpointAt(block, one);
        const made = await server.transaction(hashText(block.bytes, at));
        const [place] = made.transactions;
        return place === undefined ? new Uint8Array() : scriptOf(made, place, uint32At(block.bytes, at + 32));
      }),
    );
  }

  /** Returns the scripts of spent outputs from `rest/spenttxouts`. Undefined if the node does not have this path. */
  #spentScripts(block: Block, wanted: readonly Commitment[]): Promise<Uint8Array[] | undefined> {
    return this.#calls.persist(`the spent outputs of block ${block.hash}`, async () => {
      const outputs = new SpentOutputs(block, wanted);
      try {
        const answer = await this.#calls.rest(`/spenttxouts/${block.hash}.bin`, undefined, outputs.feed);
        if (answer.status === 200) return outputs.end();
        // A node that does not know the path answers with an empty body.
        if (textOf(answer.body) !== '') throw this.#calls.missing(answer);
      } catch (error) {
        if (!(error instanceof FormatError)) throw error;
      }
      this.#hasSpentOutputs = false;
      return undefined;
    });
  }

  /** Reads spent outputs from the JSON of the block. */
  #fromBlock(hash: string, wanted: readonly WantedInput[]): Promise<PreviousOutput[] | undefined> {
    return this.#calls.persist(`the inputs of block ${hash}`, async () => {
      const outputs = new PreviousOutputs(wanted, this.#hasRest ? [] : ['result']);
      if (this.#hasRest) await this.#calls.restBody(`/block/${hash}.json`, undefined, outputs.feed);
      else await this.#calls.rpc('getblock', [hash, 3], z.unknown(), undefined, outputs.feed);
      return outputs.outputs();
    });
  }

  /**
   * Reads spent outputs from the JSON of each transaction. Returns undefined if the JSON lacks them, or if the node
   * does not let this user call `getrawtransaction`.
   */
  async #fromTransactions(hash: string, wanted: readonly WantedInput[]): Promise<PreviousOutput[] | undefined> {
    const byTransaction = new Map<string, WantedInput[]>();
    for (const one of wanted) byTransaction.set(one.txid, [...(byTransaction.get(one.txid) ?? []), { ...one, path: [] }]);
    try {
      const all = await Promise.all([...byTransaction].map(([txid, inputs]) => this.#fromTransaction(hash, txid, inputs)));
      const found = new Map(all.flatMap((outputs) => outputs ?? []));
      const inOrder = wanted.flatMap(({ txid, input }) => found.get(`${txid}:${input}`) ?? []);
      return inOrder.length === wanted.length ? inOrder : undefined;
    } catch (error) {
      if (!(error instanceof ForbiddenError)) throw error;
      this.#hasTransactions = false;
      return undefined;
    }
  }

  #fromTransaction(hash: string, txid: string, inputs: readonly WantedInput[]): Promise<[string, PreviousOutput][] | undefined> {
    return this.#calls.persist(`the inputs of transaction ${txid}`, async () => {
      const outputs = new PreviousOutputs(inputs, ['result']);
      await this.#calls.rpc('getrawtransaction', [txid, 2, hash], z.unknown(), undefined, outputs.feed);
      return outputs.outputs()?.map((output, i) => [`${txid}:${inputs[i]?.input}`, output]);
    });
  }
}

/** Returns the offset of the outpoint that an input spends. */
const outpointAt = (block: Block, { transaction, input }: Commitment): number =>
  block.inputs[(block.transactions[transaction]?.firstInput ?? 0) + input] ?? 0;
