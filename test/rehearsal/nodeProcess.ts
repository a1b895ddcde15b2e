/**
 * The simulated node of a rehearsal, in its own process: `nodeProcess.ts FOLDER OPTIONS`. FOLDER has a chain, and
 * OPTIONS are the node's options as JSON. Prints its URL. A line `show COUNT` on its standard input makes the node show
 * the best chain after the first COUNT blocks of the file.
 */
import { createInterface } from 'node:readline';
import { type FakeBlock, FakeNode, type FakeNodeOptions } from '../support/fakeNode.ts';
import { ChainReader } from './chainFile.ts';

async function main(folder = '', options = '{}'): Promise<void> {
  const reader = new ChainReader(folder);
  let commitments = reader.commitments();
  const outputs: FakeNodeOptions['outputs'] = (outpoint) => {
    const found = commitments.get(outpoint);
    return found && { script: Buffer.from(found.script, 'hex'), height: found.height };
  };
  const blocks = new Map<string, FakeBlock>();
  const chainAfter = (count: number): FakeBlock[] =>
    reader.chainAfter(count).map((placed) => {
      const { hash, height } = placed;
      const block = blocks.get(hash) ?? {
        hash,
        height,
        get bytes() {
          return reader.bytes(placed);
        },
      };
      blocks.set(hash, block);
      return block;
    });
  const node = await FakeNode.start(chainAfter(0), { outputs, ...(JSON.parse(options) as FakeNodeOptions) });
  node.onCall = () => {
    // Empties the node's list of calls, which would grow as long as the node runs.
    node.calls.length = 0;
  };
  console.log(node.url);
  for await (const line of createInterface({ input: process.stdin })) {
    const [, count] = /^show ([0-9]+)$/.exec(line) ?? [];
    if (count === undefined) throw new Error(`unknown line: ${line}`);
    commitments = reader.commitments();
    node.replace(chainAfter(Number(count)));
  }
}

void main(...process.argv.slice(2));
