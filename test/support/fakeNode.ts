/**
 * A fake Bitcoin Core node: an HTTP server for a chain of raw blocks. It has the calls, statuses, error texts and headers of Core's REST
 * interface, and faults on demand.
 */
import { spawn } from 'node:child_process';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { hashText, outpointText } from '../../src/runes/bytes.ts';
import type { PreviousOutput } from '../../src/runes/indexBlock.ts';
import { type Block, readBlock } from '../../src/runes/parseBlock.ts';
import { compact } from '../rehearsal/blockWriter.ts';
import { endOf, portOf, ROOT } from './cli.ts';
import { hash256, sealed } from './memoryLedger.ts';
import { blockBytes, type Transaction } from './runeBlocks.ts';

export interface FakeBlock {
  readonly hash: string;
  readonly height: number;
  /** May be a getter, so that a long chain need not be in memory. */
  readonly bytes: Uint8Array;
}

/** Fault for the next answer to a call. */
export interface Fault {
  /** Paths that the fault applies to. All by default. */
  readonly on?: RegExp | string;
  /** Number of calls that the fault applies to. 1 by default. */
  times?: number;
  /** Status of the answer, instead of the true one. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Sends this many bytes of the body, then closes the connection. */
  readonly cut?: number;
  /** Sends this many bytes of the body, then nothing more. */
  readonly stall?: number;
  /** Number to add to the true content-length. */
  readonly length?: number;
  /** Flips a bit of the byte at this offset of the body. */
  readonly flip?: number;
  /** Milliseconds to wait before the answer. */
  readonly delay?: number;
  /** Startup step of Core. The node answers like a Core that is still starting and is at this step. */
  readonly warmingUp?: string;
  /** Closes the connection without an answer. */
  readonly reset?: boolean;
}

export interface FakeNodeOptions {
  /** Core's name of the network: main, test, testnet4, signet or regtest. */
  network?: string;
  rest?: boolean;
  /** False for a Core before version 30, which does not know `rest/spenttxouts`. */
  hasSpentOutputs?: boolean;
  /** Blocks below this height are manually pruned. If undefined, the node does not prune. */
  prunedBelow?: number | undefined;
  /** Blocks below this height are not downloaded yet, because the node started from a snapshot (assumeutxo). */
  notDownloadedBelow?: number;
  /** Maximum number of requests that the node handles or has in its work queue at the same time. Unlimited by default. */
  queue?: number;
  isSyncing?: boolean;
  /** Height of the last header, if it is above the chain's tip. */
  headers?: number | undefined;
  /** Returns an output that the chain spends but does not create. `outpoint` is `txid:index`. */
  outputs?: ((outpoint: string) => PreviousOutput | undefined) | undefined;
}

/** Faults that several tests use, with the answers of Core. */
export const FAULTS = {
  workQueue: { status: 503, headers: { 'content-type': 'text/html; charset=ISO-8859-1' }, body: 'Work queue depth exceeded' },
  loading: { warmingUp: 'Loading P2P addresses…' },
  warmingUp: { warmingUp: 'Verifying blocks…' },
  /** The node is shutting down. */
  stopping: { status: 503, body: '' },
  reset: { reset: true },
  redirect: { status: 302, headers: { location: 'https://elsewhere.example/' } },
  html: { status: 200, headers: { 'content-type': 'Text/HTML' }, body: '<!doctype html><title>Router</title>' },
  forbidden: { status: 403 },
} as const satisfies Readonly<Record<string, Fault>>;

interface Reply {
  status: number;
  headers: Record<string, string>;
  body: Uint8Array;
}

const text = (status: number, message: string): Reply => ({
  status,
  headers: { 'content-type': 'text/plain' },
  body: Buffer.from(`${message}\r\n`),
});
const json = (value: unknown): Reply => ({
  status: 200,
  // Types of media are in any case (RFC 9110, 8.3.1).
  headers: { 'content-type': 'Application/JSON' },
  body: Buffer.from(`${JSON.stringify(value)}\n`),
});
const bare = (status: number): Reply => ({ status, headers: {}, body: new Uint8Array() });

export class FakeNode {
  /** The path of every request so far, in order. */
  readonly calls: string[] = [];
  /** Called for every call. */
  onCall: (() => void) | undefined;
  /** Pending faults. Each call gets the first fault that matches it. */
  readonly faults: Fault[] = [];
  /** Options, which a test may change while the node runs. */
  readonly options: FakeNodeOptions;
  readonly #server: Server;
  /** Every block that the node has ever had, because Core keeps the blocks of abandoned branches. */
  readonly #known = new Map<string, FakeBlock>();
  readonly #parsed = new Map<string, Block>();
  readonly #outputs = new Map<string, PreviousOutput>();
  #chain: readonly FakeBlock[] = [];
  #tip = 0;
  #running = 0;
  /** Number of requests that were refused because the queue was full. */
  refused = 0;
  /** Unspent outputs after the block with the hash `tip`, by outpoint. */
  #unspent: { readonly tip: string; readonly outputs: ReadonlyMap<string, PreviousOutput> } | undefined;

  private constructor(blocks: readonly FakeBlock[], options: FakeNodeOptions) {
    this.options = { network: 'main', rest: true, hasSpentOutputs: true, ...options };
    this.replace(blocks);
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  /** Starts a node with these blocks, ascending without gaps, on a free port of 127.0.0.1. */
  static async start(blocks: readonly FakeBlock[], options: FakeNodeOptions = {}): Promise<FakeNode> {
    const node = new FakeNode(blocks, options);
    await new Promise<void>((resolve) => node.#server.listen(0, '127.0.0.1', resolve));
    return node;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Returns the number of connections that clients have open. */
  connections(): Promise<number> {
    return new Promise((resolve) => this.#server.getConnections((_, count) => resolve(count)));
  }

  /** Makes these blocks the node's best chain. The blocks of the previous chain can still be requested by their hash. */
  replace(blocks: readonly FakeBlock[]): void {
    for (const block of blocks) this.#known.set(block.hash, block);
    this.#chain = blocks;
    this.setTip(blocks.at(-1)?.height ?? 0);
  }

  /** Reports the block at this height as the tip. */
  setTip(height: number): void {
    this.#tip = height;
  }

  /** Forgets a block, like a node with damaged data. */
  forget(hash: string): void {
    this.#known.delete(hash);
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = request.url ?? '';
    this.calls.push(call);
    this.onCall?.();
    const fault = this.faults.find(({ on = '' }) => new RegExp(on).test(call));
    if (fault) {
      fault.times = (fault.times ?? 1) - 1;
      if (fault.times <= 0) this.faults.splice(this.faults.indexOf(fault), 1);
    }
    if (fault?.reset) return void response.destroy();
    if (++this.#running > (this.options.queue ?? Infinity)) {
      this.refused += 1;
      await send(response, bareWith(FAULTS.workQueue), {});
      this.#running -= 1;
      return;
    }
    response.once('close', () => this.#running--);
    const isRest = this.options.rest && call.startsWith('/rest/');
    const reply = isRest ? this.#rest(call.slice('/rest'.length), fault?.warmingUp) : bare(404);
    await send(response, fault?.status === undefined ? reply : bareWith(fault), fault ?? {});
  }

  #rest(path: string, warmingUp: string | undefined): Reply {
    if (warmingUp !== undefined) return text(503, `Service temporarily unavailable: ${warmingUp}`);
    const [, spender] = /^\/spenttxouts\/([0-9a-f]{64})\.bin$/.exec(path) ?? [];
    if (spender !== undefined && this.options.hasSpentOutputs) {
      const block = this.#known.get(spender);
      if (!block) return text(404, `${spender} not found`);
      if (this.#isPruned(block)) return text(404, `${spender} undo not available`);
      return { status: 200, headers: { 'content-type': 'application/octet-stream' }, body: this.#spentOutputs(block) };
    }
    if (path.startsWith('/getutxos/')) return this.#coins(path);
    const [, number, start = ''] = /^\/headers\/(\d+)\/([0-9a-f]{64})\.bin$/.exec(path) ?? [];
    if (number !== undefined) {
      if (Number(number) > 2000) return text(400, 'Header count is invalid or out of acceptable range (1-2000)');
      const from = this.#known.get(start);
      const first = from && this.#at(from.height) === from ? from.height : this.#tip + 1;
      const headers = Array.from({ length: Math.max(Math.min(Number(number), this.#tip + 1 - first), 0) }, (_, i) =>
        this.#header(this.#at(first + i)),
      );
      return { status: 200, headers: { 'content-type': 'application/octet-stream' }, body: Buffer.concat(headers) };
    }
    const [, call = '', argument = '', format = ''] = /^\/(chaininfo|blockhashbyheight|block)(?:\/([^/.]*))?\.(json|bin)$/.exec(path) ?? [];
    if (call === '') return bare(404);
    if (call === 'chaininfo') return json(this.#info());
    if (call === 'blockhashbyheight') {
      if (!/^[0-9]{1,9}$/.test(argument)) return text(400, `Invalid height: ${argument}`);
      const block = this.#at(Number(argument));
      if (!block) return text(404, 'Block height out of range');
      return json({ blockhash: block.hash });
    }
    if (!/^[0-9a-fA-F]{64}$/.test(argument)) return text(400, `Invalid hash: ${argument}`);
    const block = this.#known.get(argument.toLowerCase());
    if (!block) return text(404, `${argument} not found`);
    const why = this.#whyMissing(block);
    if (why !== undefined) return text(404, `${argument} not available (${why})`);
    return format === 'bin' ? { status: 200, headers: { 'content-type': 'application/octet-stream' }, body: block.bytes } : bare(404);
  }

  /** Answers `getutxos` like Core: height and hash of the tip, a digit for each outpoint, and the unspent outputs. */
  #coins(path: string): Reply {
    const names = outpointsIn(path);
    if (!path.endsWith('.json') || names.length === 0) return text(400, 'Error: empty request');
    if (names.length > 15) return text(400, `Error: max outpoints exceeded (max: 15, tried: ${names.length})`);
    const found = names.map((name) => (this.options.outputs ?? ((one) => this.#unspentAtTip().get(one)))(name));
    return json({
      chainHeight: this.#tip,
      chaintipHash: this.#at(this.#tip)?.hash,
      bitmap: found.map((output) => (output === undefined ? '0' : '1')).join(''),
      utxos: found.flatMap((output) => {
        if (output === undefined) return [];
        const hex = Buffer.from(output.script).toString('hex');
        return [
          { height: output.height, value: 0.00000546, scriptPubKey: { asm: '', desc: `raw(${hex})#00000000`, hex, type: 'nonstandard' } },
        ];
      }),
    });
  }

  #unspentAtTip(): ReadonlyMap<string, PreviousOutput> {
    const tip = this.#at(this.#tip)?.hash ?? '';
    if (this.#unspent?.tip === tip) return this.#unspent.outputs;
    const outputs = new Map<string, PreviousOutput>();
    for (const block of this.#chain.filter(({ height }) => height <= this.#tip)) {
      const { bytes, inputs, txids, transactions } = this.#parse(block);
      transactions.forEach(({ firstInput, inputs: count, outputs: made }, index) => {
        for (let i = 0; i < count; i++) outputs.delete(outpointText(bytes, inputs[firstInput + i] ?? 0));
        for (let i = 0; i < made; i++) {
          const name = `${hashText(txids, 32 * index)}:${i}`;
          const output = this.#outputs.get(name);
          // Core does not store outputs that nobody can spend.
          if (output !== undefined && output.script[0] !== 0x6a) outputs.set(name, { ...output, height: block.height });
        }
      });
    }
    this.#unspent = { tip, outputs };
    return outputs;
  }

  #info(): unknown {
    const { network, prunedBelow, isSyncing = false, headers = this.#tip } = this.options;
    const tip = this.#at(this.#tip);
    return {
      chain: network,
      blocks: this.#tip,
      headers,
      bestblockhash: tip?.hash,
      difficulty: 1,
      verificationprogress: isSyncing ? 0.5 : 1,
      initialblockdownload: isSyncing,
      size_on_disk: 1,
      pruned: prunedBelow !== undefined,
      ...(prunedBelow === undefined ? {} : { pruneheight: prunedBelow, automatic_pruning: false }),
      warnings: '',
    };
  }

  #at(height: number): FakeBlock | undefined {
    return height > this.#tip ? undefined : this.#chain[height - (this.#chain[0]?.height ?? 0)];
  }

  #isPruned({ height }: FakeBlock): boolean {
    return height < (this.options.prunedBelow ?? 0);
  }

  #header(block: FakeBlock | undefined): Uint8Array {
    return (block?.bytes ?? new Uint8Array()).subarray(0, 80);
  }

  #whyMissing(block: FakeBlock): string | undefined {
    if (this.#isPruned(block)) return 'pruned data';
    return block.height < (this.options.notDownloadedBelow ?? 0) ? 'not fully downloaded' : undefined;
  }

  /** Returns the value and script of each spent output of a block, by transaction and input. The coinbase spends none. */
  #spentOutputs(block: FakeBlock): Uint8Array {
    const { bytes, inputs, transactions } = this.#parse(block);
    const parts: Uint8Array[] = [compact(transactions.length)];
    transactions.forEach(({ firstInput, inputs: count }, index) => {
      parts.push(compact(index === 0 ? 0 : count));
      for (let i = 0; i < (index === 0 ? 0 : count); i++) {
        const { script = new Uint8Array() } = this.#previous(outpointText(bytes, inputs[firstInput + i] ?? 0)) ?? {};
        parts.push(Buffer.from('2202000000000000', 'hex'), compact(script.length), script);
      }
    });
    return Buffer.concat(parts);
  }

  /** Parses a block, and stores its outputs, which later blocks spend. */
  #parse(block: FakeBlock): Block {
    const known = this.#parsed.get(block.hash);
    if (known) return known;
    const parsed = readBlock(block.bytes, hash256);
    // If `options.outputs` returns all spent outputs, earlier blocks need not stay parsed. This saves memory in a long chain.
    if (this.options.outputs) this.#parsed.clear();
    this.#parsed.set(block.hash, parsed);
    if (this.options.outputs) return parsed;
    parsed.transactions.forEach(({ firstOutput, outputs }, index) => {
      const txid = hashText(parsed.txids, 32 * index);
      for (let i = 0; i < outputs; i++) {
        const from = parsed.scripts[firstOutput + i] ?? 0;
        const script = parsed.bytes.subarray(from, from + (parsed.scriptLengths[firstOutput + i] ?? 0));
        this.#outputs.set(`${txid}:${i}`, { script, height: block.height });
      }
    });
    return parsed;
  }

  #previous(outpoint: string): PreviousOutput | undefined {
    const { outputs } = this.options;
    if (outputs) return outputs(outpoint);
    if (this.#parsed.size < this.#known.size) for (const block of this.#known.values()) this.#parse(block);
    return this.#outputs.get(outpoint);
  }
}

/** Returns the outpoints in a path of `getutxos`, as `txid:index`. */
const outpointsIn = (path: string): string[] => [...path.matchAll(/\/([0-9a-f]{64})-([0-9]+)/g)].map(([, txid, vout]) => `${txid}:${vout}`);

const bareWith = ({ status = 200, headers = {}, body = '' }: Fault): Reply => ({
  status,
  headers: { ...headers },
  body: Buffer.from(body),
});

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms).unref());

async function send(response: ServerResponse, reply: Reply, { cut, stall, length = 0, flip, delay }: Fault): Promise<void> {
  if (delay !== undefined) await pause(delay);
  const body = flip === undefined ? reply.body : Uint8Array.from(reply.body, (byte, at) => (at === flip ? byte ^ 1 : byte));
  // The body may be longer than its content-length, which Node otherwise refuses to send.
  response.strictContentLength = false;
  response.writeHead(reply.status, { ...reply.headers, 'content-length': body.length + length });
  if (cut !== undefined) {
    response.write(body.subarray(0, cut), () => response.destroy());
  } else if (stall !== undefined) {
    response.write(body.subarray(0, stall));
  } else if (length > 0) {
    response.write(body, () => response.destroy());
  } else {
    response.end(body);
  }
}

/**
 * Makes a chain whose first block has the height `first`. Each block has a coinbase and these transactions. `previous` is the hash of the
 * block before the first block.
 */
export function chainOf(first: number, blocks: readonly (readonly Transaction[])[], previous = '00'.repeat(32)): FakeBlock[] {
  let before = previous;
  return blocks.map((transactions, index) => {
    const bytes = sealed(blockBytes(first + index, transactions), Buffer.from(before, 'hex').reverse());
    before = hashText(hash256(bytes.subarray(0, 80)));
    return { hash: before, height: first + index, bytes };
  });
}

/** A fake node in another process. */
export interface NodeProcess {
  readonly url: string;
  readonly pid: number;
  /** Sends a command line; see fakeNodeProcess.ts. */
  tell(line: string): void;
  stop(): Promise<void>;
}

/** Starts fakeNodeProcess.ts with a folder of blocks, or with a module that makes blocks. */
export async function startNodeProcess(source: string, options: Omit<FakeNodeOptions, 'outputs'> = {}): Promise<NodeProcess> {
  const args = ['--import', 'tsx', join(ROOT, 'test/support/fakeNodeProcess.ts'), source, JSON.stringify(options)];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const port = await portOf(child);
  return {
    url: `http://127.0.0.1:${port}`,
    pid: child.pid ?? 0,
    tell: (text) => void child.stdin.write(`${text}\n`),
    stop: async () => {
      child.kill('SIGKILL');
      await endOf(child);
    },
  };
}
