/**
 * A Bitcoin Core node whose answers are files, sent by nginx. A real one does as little: Core 31 needs 0.9 ms of CPU time to send a block
 * of 1.6 MB, which it has on its disk in this form, and 0.5 to 7 ms for the outputs that it spends.
 */
import { existsSync, linkSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readBlock } from '../src/runes/parseBlock.ts';
import { compact } from '../test/rehearsal/blockWriter.ts';
import { blocksIn, forkedAt } from '../test/support/blockFiles.ts';
import type { FakeBlock } from '../test/support/fakeNode.ts';
import { hash256 } from '../test/support/memoryLedger.ts';
import { freePort } from '../test/support/ports.ts';
import { startNginx } from './load/nginx.ts';
import { requireProgram, type Started } from './load/processes.ts';

/** The output that each input spends: its value and its script. */
const SPENT = Buffer.concat([new Uint8Array(8), compact(34), Uint8Array.of(0x51, 32), Buffer.alloc(32, 7)]);

export class StaticNode {
  readonly #rest: string;

  private constructor(
    readonly url: string,
    home: string,
    private readonly chain: string,
    private blocks: readonly FakeBlock[],
    private readonly process: Started,
  ) {
    this.#rest = join(home, 'rest');
  }

  /** Starts a node with the chain of a folder (nodeChain.ts), in an empty folder on the same disk. */
  static async start(chain: string, home: string): Promise<StaticNode> {
    requireProgram('nginx', 'It sends the blocks. Install it, such as with apt-get install nginx.');
    for (const kind of ['block', 'spenttxouts', 'blockhashbyheight']) mkdirSync(join(home, 'rest', kind), { recursive: true });
    const port = await freePort();
    const started = await startNginx(home, port, serverOf(home, port), 'master_process off');
    const node = new StaticNode(`http://127.0.0.1:${port}`, home, chain, blocksIn(chain), started);
    for (const block of node.blocks) node.#add(block, (path) => linkSync(join(chain, `${block.height}.bin`), path));
    node.show(node.blocks.at(-1)?.height ?? 0);
    return node;
  }

  get pid(): number {
    return this.process.pid;
  }

  /** Shows the chain up to a height. */
  show(tip: number): void {
    const best = this.blocks.find(({ height }) => height === tip);
    const info = { chain: 'regtest', blocks: tip, headers: tip, bestblockhash: best?.hash, initialblockdownload: false, pruned: false };
    this.#put('chaininfo.json', JSON.stringify(info));
  }

  /** Replaces the blocks from a height on, and shows the chain up to `tip`. */
  fork(from: number, tip: number): void {
    this.blocks = forkedAt(this.blocks, from);
    for (const block of this.blocks) if (block.height >= from) this.#add(block, (path) => writeFileSync(path, block.bytes));
    this.show(tip);
  }

  stop(): Promise<void> {
    return this.process.end();
  }

  #add(block: FakeBlock, write: (path: string) => void): void {
    const { hash, height } = block;
    const spent = join(this.chain, `${height}.spent`);
    if (!existsSync(spent)) writeFileSync(spent, spentOutputs(block.bytes));
    linkSync(spent, join(this.#rest, `spenttxouts/${hash}.bin`));
    write(join(this.#rest, `block/${hash}.bin`));
    this.#put(`blockhashbyheight/${height}.json`, JSON.stringify({ blockhash: hash }));
  }

  #put(name: string, content: string): void {
    const path = join(this.#rest, name);
    writeFileSync(`${path}.new`, content);
    renameSync(`${path}.new`, path);
  }
}

function spentOutputs(bytes: Uint8Array): Uint8Array {
  const { transactions } = readBlock(bytes, hash256);
  const parts = transactions.flatMap(({ inputs }, i) => [
    compact(i === 0 ? 0 : inputs),
    ...new Array<Buffer>(i === 0 ? 0 : inputs).fill(SPENT),
  ]);
  return Buffer.concat([compact(transactions.length), ...parts]);
}

const serverOf = (home: string, port: number): string => `server {
    listen 127.0.0.1:${port};
    root ${home};
    error_page 404 @missing;
    location @missing { return 404 "Block height out of range"; }
  }`;
