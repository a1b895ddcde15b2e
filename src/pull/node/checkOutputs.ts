/**
 * Compares outputs of a ledger that was made from rows (continueRows.ts) with the node, once the pull has reached the tip: height and
 * address must be the same. This finds outputs that rows of a mirror invent or give to another owner, but neither wrong amounts nor missing
 * outputs, because a node knows nothing about runes.
 */
import { randomInt } from 'node:crypto';
import { createReadStream, existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { count } from '../../cli/log.ts';
import { LineFile } from '../../disk/lineFile.ts';
import { syncFile } from '../../disk/sync.ts';
import { BuildError, InputError } from '../../errors.ts';
import { exceeds, type WorkLimits } from '../../limits.ts';
import { addressOf } from '../../runes/address.ts';
import { outpointBytes } from '../../runes/bytes.ts';
import type { PreviousOutput } from '../../runes/indexBlock.ts';
import type { Network } from '../../runes/networks.ts';
import { type DiskLedger, UNCHECKED_FILE } from '../../unspent/diskLedger.ts';
import { STATE_FOLDER } from '../pulledFiles.ts';
import type { PullOptions, Tools } from '../pullOptions.ts';
import { type BitcoinNode, COINS_AT_ONCE } from './coreNode.ts';
import { hash256 } from './hash256.ts';

/** Differences that a message lists, and attempts to ask for the same outputs while the node names another tip, but has no new block. */
const [SHOWN, MOST_ATTEMPTS] = [5, 5];

/** Outputs to compare: a random sample, or all. */
export type Check = 'sample' | 'all';

interface ClaimedOutput {
  /** Outpoint as text, `txid:vout`. */
  readonly name: string;
  readonly height: number;
  /** `-` for a script without an address. */
  readonly address: string;
}

/** Writes the outputs to compare to a file in the folder of the ledger, one per line. The file exists until they are. */
export class ChosenOutputs {
  readonly #lines: LineFile;
  readonly #chosen: string[] = [];
  /** Number of all outputs that were added. */
  seen = 0;

  constructor(
    state: string,
    private readonly check: Check,
    private readonly limits: Pick<WorkLimits, 'checkedOutputs'>,
  ) {
    mkdirSync(state, { recursive: true });
    this.#lines = new LineFile(join(state, UNCHECKED_FILE));
  }

  add({ name, height, address }: ClaimedOutput): void {
    this.seen += 1;
    const line = `${name} ${height} ${address}`;
    if (this.check === 'all') this.#lines.add(line);
    else if (!exceeds(this.limits, 'checkedOutputs', this.seen)) this.#chosen.push(line);
    else {
      // Reservoir sampling: the nth output replaces a chosen one with probability limit / n, so in the end all are equally likely.
      const at = randomInt(this.seen);
      if (at < this.#chosen.length) this.#chosen[at] = line;
    }
  }

  end(): void {
    for (const line of this.#chosen) this.#lines.add(line);
    this.#lines.end();
    syncFile(this.#lines.file);
  }
}

/** True if the outputs of the folder's ledger have not been compared yet. */
export const areUnchecked = (folder: string): boolean => existsSync(join(folder, STATE_FOLDER, UNCHECKED_FILE));

interface Checking extends Pick<PullOptions, 'folder' | 'concurrency' | 'signal'> {
  readonly network: Network;
  readonly ledger: DiskLedger;
  /** Pulls new blocks up to the node's tip. */
  readonly catchUp: () => Promise<unknown>;
}

/**
 * Asks the node for all chosen outputs that are still unspent in the ledger, and removes their file. Throws an InputError that lists the
 * outputs that differ, and a BuildError if the node's answers have another tip than its chain.
 */
export async function checkOutputs(checking: Checking, node: BitcoinNode, { log, progress }: Tools): Promise<void> {
  const path = join(checking.folder, STATE_FOLDER, UNCHECKED_FILE);
  let [asked, spent, group]: [number, number, ClaimedOutput[]] = [0, 0, []];
  const endGroup = async () => {
    const unspent = await checkGroup(group, checking, node);
    asked += unspent;
    spent += group.length - unspent;
    progress.show(asked + spent, asked + spent, 'outputs');
    group = [];
  };
  progress.begin('outputs');
  for await (const line of createInterface(createReadStream(path))) {
    const [name = '', height, address = ''] = line.split(' ');
    group.push({ name, height: Number(height), address });
    if (group.length === checking.concurrency * COINS_AT_ONCE) await endGroup();
  }
  if (group.length > 0) await endGroup();
  progress.end();
  rmSync(path);
  const found = `${node.name} has ${count(asked, 'output')} of the rows, at the same height and address; ${spent} others were spent since`;
  const limits = 'This finds invented outputs and wrong owners, but not wrong amounts, mints, names or missing outputs.';
  log.info('checked', `${found}. ${limits}`, { asked, spent });
}

/** Returns how many of the outputs are still unspent in the ledger. */
async function checkGroup(group: readonly ClaimedOutput[], checking: Checking, node: BitcoinNode): Promise<number> {
  const { folder, ledger, network, signal, catchUp } = checking;
  for (let attempt = 1; ; attempt += 1) {
    signal.throwIfAborted();
    const { hash } = ledger;
    const unspent = group.filter(({ name }) => ledger.output(outpointBytes(name), 0) !== undefined);
    const names = unspent.map(({ name }) => name);
    const starts = Array.from({ length: Math.ceil(names.length / COINS_AT_ONCE) }, (_, i) => i * COINS_AT_ONCE);
    const answers = await Promise.all(starts.map((start) => node.coins(names.slice(start, start + COINS_AT_ONCE))));
    if (answers.every(({ tip }) => tip === hash)) {
      const coins = answers.flatMap((answer) => answer.coins);
      const different = unspent.flatMap((output, i) => differenceOf(output, coins[i], network) ?? []);
      if (different.length === 0) return unspent.length;
      throw new InputError(`the rows in ${folder} have other unspent outputs than ${node.name}`, [
        ...different.slice(0, SHOWN),
        `Remove ${folder} and pull from another mirror, or tell the operator of this mirror.`,
      ]);
    }
    // The node has a new block, or the ledger has one that the node replaced.
    await catchUp();
    if (ledger.hash !== hash) attempt = 0;
    else if (attempt === MOST_ATTEMPTS)
      throw new BuildError(`${node.name} answered ${attempt} times with outputs of another block than its last one, ${hash}`, [
        'Check whether several nodes answer at this address, then run the same command again: it continues from here.',
      ]);
  }
}

function differenceOf({ name, height, address }: ClaimedOutput, coin: PreviousOutput | undefined, network: Network): string | undefined {
  const found = coin && { height: coin.height, address: addressOf(coin.script, network, hash256) ?? '-' };
  if (found?.height === height && found.address === address) return undefined;
  const text = (output: typeof found) =>
    output === undefined ? 'no unspent output' : `height ${output.height}, address ${output.address}`;
  return `${name}: the rows have ${text({ height, address })}; the node has ${text(found)}`;
}
