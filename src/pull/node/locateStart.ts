/**
 * Checks a start (startFrom.ts) against the node. When the pull has reached the tip, asks the node for outputs of the
 * mirror's ledger. Each must be an unspent output of the node, with the same height and the same address. The check
 * finds outputs that the mirror invented or gave to another owner. The check does not find wrong amounts or missing
 * outputs, because a node knows nothing about runes.
 */
import { open } from 'node:fs/promises';
import type { Progress } from '../../cli/progress.ts';
import { BuildError, InputError } from '../../errors.ts';
import { addressOf } from '../../runes/address.ts';
import { outpointBytes } from '../../runes/bytes.ts';
import type { Network } from '../../runes/networks.ts';
import type { DiskLedger } from '../../unspent/diskLedger.ts';
import type { ClaimedOutput } from './chosenOutputs.ts';
import type { BitcoinNode } from './coreNode.ts';
import { hash256 } from './hash256.ts';
import { COINS_AT_ONCE, type Coin } from './nodeAnswers.ts';

/** Maximum number of differences that a message lists. */
const SHOWN = 5;

/** Maximum number of attempts to ask for the same outputs. An attempt fails if the node gets a new block meanwhile. */
const MOST_ATTEMPTS = 5;

interface Locating {
  /** File with the outputs to check, which `ChosenOutputs` wrote. */
  readonly path: string;
  readonly network: Network;
  readonly ledger: DiskLedger;
  readonly concurrency: number;
  readonly signal: AbortSignal;
  /** Pulls new blocks up to the node's tip. */
  readonly catchUp: () => Promise<unknown>;
}

/**
 * Numbers of outputs. `asked`: the node was asked for them. `spent`: not asked for, because later blocks spent them.
 */
export interface Located {
  readonly asked: number;
  readonly spent: number;
}

/**
 * Asks the node for all chosen outputs that are still unspent in the ledger. Throws a WrongStartError that lists the
 * outputs that differ, and a BuildError if the node's chain changes too often.
 */
export async function locateStart(locating: Locating, node: BitcoinNode, progress: Progress): Promise<Located> {
  const { path, concurrency } = locating;
  const total = { asked: 0, spent: 0 };
  const file = await open(path);
  try {
    const { size } = await file.stat();
    let bytes = 0;
    let group: ClaimedOutput[] = [];
    const endGroup = async () => {
      const asked = await locateGroup(group, locating, node);
      total.asked += asked;
      total.spent += group.length - asked;
      const done = total.asked + total.spent;
      progress.show(done, Math.round((size * done) / bytes), 'outputs');
      group = [];
    };
    progress.begin('locate');
    for await (const line of file.readLines()) {
      bytes += line.length + 1;
      const [name = '', height, address = ''] = line.split(' ');
      group.push({ name, height: Number(height), address });
      if (group.length === concurrency * COINS_AT_ONCE) await endGroup();
    }
    if (group.length > 0) await endGroup();
  } finally {
    await file.close();
  }
  progress.end();
  return total;
}

/** Checks some outputs. Returns how many of them are still unspent in the ledger. */
async function locateGroup(group: readonly ClaimedOutput[], locating: Locating, node: BitcoinNode): Promise<number> {
  const { ledger, network, signal, catchUp } = locating;
  for (let attempt = 1; ; attempt++) {
    signal.throwIfAborted();
    const { hash } = ledger;
    const unspent = group.filter(({ name }) => ledger.output(outpointBytes(name), 0) !== undefined);
    const parts = Array.from({ length: Math.ceil(unspent.length / COINS_AT_ONCE) }, (_, i) =>
      unspent.slice(i * COINS_AT_ONCE, (i + 1) * COINS_AT_ONCE),
    );
    const answers = await Promise.all(parts.map((part) => node.coins(part.map(({ name }) => name))));
    if (answers.every(({ tip }) => tip === hash)) {
      const coins = answers.flatMap((answer) => answer.coins);
      const different = unspent.flatMap((output, i) => differenceOf(output, coins[i], network) ?? []);
      if (different.length > 0) throw new WrongStartError(different, node, ledger);
      return unspent.length;
    }
    if (attempt === MOST_ATTEMPTS)
      throw new BuildError(`the last block of ${node.name} changed ${attempt} times while the node was asked for outputs`, [
        'Check the node, then run the same command again: it continues from here.',
      ]);
    await catchUp();
  }
}

/** Describes how the node's output differs from the mirror's. Undefined if both are equal. */
function differenceOf({ name, height, address }: ClaimedOutput, coin: Coin | undefined, network: Network): string | undefined {
  const found = coin && { height: coin.height, address: addressOf(coin.script, network, hash256) ?? '-' };
  if (found?.height === height && found.address === address) return undefined;
  const text = (output: typeof found) =>
    output === undefined ? 'no unspent output' : `height ${output.height}, address ${output.address}`;
  return `${name}: the mirror has ${text({ height, address })}; the node has ${text(found)}`;
}

/** Thrown if the node does not have the outputs of a start. */
export class WrongStartError extends InputError {
  constructor(different: readonly string[], node: BitcoinNode, { start }: DiskLedger) {
    super(`${start?.donors[0]} cannot be a start: outputs of its ledger as of block ${start?.height} differ from those of ${node.name}`, [
      ...different.slice(0, SHOWN),
      'The pulled files were removed. Give another mirror with --start-from, or tell the operator of this mirror.',
    ]);
  }
}
