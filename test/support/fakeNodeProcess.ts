/**
 * Runs a fake node in its own process: `fakeNodeProcess.ts SOURCE [OPTIONS]`. SOURCE is a folder of blocks `HEIGHT.bin`, a folder with the
 * chain of a rehearsal, or a module whose default export returns blocks. OPTIONS are the options of the node as JSON. Prints its URL, and
 * runs until it is killed. Commands on standard input, one per line: `tip HEIGHT` shows the chain up to this height. `show COUNT` shows the
 * best chain after the first COUNT blocks of a rehearsal. `fork FROM TIP` replaces the blocks from height FROM on, and shows the chain up
 * to TIP. `fault JSON` adds a fault. `set JSON` changes options.
 */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { ChainReader, hasChain } from '../rehearsal/chainFile.ts';
import { blocksIn, forkedAt } from './blockFiles.ts';
import { type FakeBlock, FakeNode, type FakeNodeOptions, type Fault } from './fakeNode.ts';

/** Exports of a module: blocks, and outputs that the blocks spend but do not create. */
export interface GeneratedChain {
  readonly blocks: readonly FakeBlock[];
  readonly outputs?: FakeNodeOptions['outputs'];
}

async function main(source = '', options = '{}'): Promise<void> {
  const reader = new ChainReader(source);
  const chain: GeneratedChain = hasChain(source)
    ? { blocks: [], outputs: (outpoint) => reader.output(outpoint) }
    : statSync(source).isDirectory()
      ? { blocks: blocksIn(source) }
      : await (
          (await import(pathToFileURL(resolve(source)).href)) as { default: () => GeneratedChain | Promise<GeneratedChain> }
        ).default();
  const node = await FakeNode.start(chain.blocks, { outputs: chain.outputs, ...(JSON.parse(options) as FakeNodeOptions) });
  // Empties the list of calls, which would grow as long as the node runs.
  node.onCall = () => {
    node.calls.length = 0;
  };
  let { blocks } = chain;
  console.log(node.url);
  for await (const line of createInterface({ input: process.stdin })) {
    const [, verb, argument = ''] = /^(tip|show|fork|fault|set) (.+)$/.exec(line) ?? [];
    if (verb === 'tip') node.setTip(Number(argument));
    else if (verb === 'show') node.replace(reader.chainAfter(Number(argument)));
    else if (verb === 'fork') {
      const [from = 0, tip = 0] = argument.split(' ').map(Number);
      blocks = forkedAt(blocks, from);
      node.replace(blocks);
      node.setTip(tip);
    } else if (verb === 'fault') node.faults.push(JSON.parse(argument) as Fault);
    else if (verb === 'set') Object.assign(node.options, JSON.parse(argument));
    else throw new Error(`unknown line: ${line}`);
  }
}

void main(...process.argv.slice(2));
