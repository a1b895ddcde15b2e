/**
 * A node in a process of its own: `fakeNodeProcess.ts SOURCE [OPTIONS]`. SOURCE is a folder of blocks `HEIGHT.bin`, or a
 * module whose default export returns blocks. OPTIONS are those of the node as JSON. Prints its URL, and ends when it is killed.
 * Lines on its standard input: `tip HEIGHT` shows the chain up to there, `fault JSON` adds a fault, `set JSON` changes options.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { hashText } from '../../src/runes/bytes.ts';
import { type FakeBlock, FakeNode, type FakeNodeOptions, type Fault } from './fakeNode.ts';
import { hash256 } from './memoryLedger.ts';

/** Lists the blocks of a folder. Their bytes are read when they are asked for. */
function blocksIn(folder: string): FakeBlock[] {
  return readdirSync(folder)
    .filter((name) => /^[0-9]+\.bin$/.test(name))
    .map((name) => ({ height: Number.parseInt(name, 10), path: join(folder, name) }))
    .sort((a, b) => a.height - b.height)
    .map(({ height, path }) => ({
      hash: hashText(hash256(readFileSync(path).subarray(0, 80))),
      height,
      get bytes() {
        return readFileSync(path);
      },
    }));
}

/** What a module makes: blocks, and outputs that they spend and do not have. */
export interface GeneratedChain {
  readonly blocks: readonly FakeBlock[];
  readonly outputs?: FakeNodeOptions['outputs'];
}

async function main(source = '', options = '{}'): Promise<void> {
  const chain: GeneratedChain = statSync(source).isDirectory()
    ? { blocks: blocksIn(source) }
    : await ((await import(pathToFileURL(resolve(source)).href)) as { default: () => GeneratedChain | Promise<GeneratedChain> }).default();
  const node = await FakeNode.start(chain.blocks, { outputs: chain.outputs, ...(JSON.parse(options) as FakeNodeOptions) });
  console.log(node.url);
  for await (const line of createInterface({ input: process.stdin })) {
    const [, verb, argument = ''] = /^(tip|fault|set) (.+)$/.exec(line) ?? [];
    if (verb === 'tip') node.setTip(Number(argument));
    else if (verb === 'fault') node.faults.push(JSON.parse(argument) as Fault);
    else if (verb === 'set') Object.assign(node.options, JSON.parse(argument));
    else throw new Error(`unknown line: ${line}`);
  }
}

void main(...process.argv.slice(2));
