/**
 * Reads the unspent outputs of a start (startFrom.ts) from the downloaded files of the mirror. Checks that each output
 * is possible, and chooses the outputs that the pull later compares with the node (locateStart.ts). For many outputs, a
 * thread does this while the pull writes its ledger.
 */
import { dirname } from 'node:path';
import { syncFile, syncFolder } from '../../disk/sync.ts';
import { bytesUpTo, type LedgerLists, outputsUpTo } from '../../engine/archive/readLedger.ts';
import { ChangedArchiveError, readStored } from '../../engine/archive/storedArchive.ts';
import type { LedgerPoint } from '../../format/listTables.ts';
import { exceeds, type WorkLimits } from '../../limits.ts';
import { outputLine } from '../../lists/ledgerText.ts';
import { program } from '../../program.ts';
import { scriptOfAddress } from '../../runes/address.ts';
import { outpointBytes } from '../../runes/bytes.ts';
import { NETWORKS } from '../../runes/networks.ts';
import { type RuneId, runeId } from '../../runes/runeId.ts';
import { itemsOfThread } from '../../threads.ts';
import { ByteWriter, packOutput } from '../../unspent/outputBytes.ts';
import { type Check, ChosenOutputs } from './chosenOutputs.ts';
import { hash256 } from './hash256.ts';

export interface ClaimedLedger {
  /** Folder of the downloaded files. */
  readonly folder: string;
  readonly lists: LedgerLists;
  readonly point: LedgerPoint;
  readonly network: keyof typeof NETWORKS;
  /** Number of units that all unspent outputs of each rune must have together. */
  readonly supply: ReadonlyMap<RuneId, bigint>;
  /** True if `ClaimedOutputs.csv` is needed. */
  readonly needsRows: boolean;
  /** Outputs to compare with the node: a sample or all. `chosen` is the path of the file to write them to. */
  readonly check: Check;
  readonly chosen: string;
  readonly limits: Pick<WorkLimits, 'locatedOutputs'>;
}

/** Some outputs, in the order of the ledger. */
export interface ClaimedOutputs {
  /** Lines of the outputs in the text from which the ledger's digest is computed. */
  readonly ledger: Uint8Array<ArrayBuffer>;
  /** Rows of the outputs for `start/outputs.parquet` (startFiles.ts), as CSV. Empty if these are not needed. */
  readonly csv: Uint8Array<ArrayBuffer>;
  readonly rows: number;
  /** The outputs as `packOutput` writes them. */
  readonly outputs: Uint8Array<ArrayBuffer>;
  /**
   * Set only in the last batch, and only if the outputs of a rune do not add up to its supply: this rune, and the
   * number of units that it lacks. The number is negative if there are too many units.
   */
  readonly lacking?: readonly [rune: RuneId, units: bigint] | undefined;
}

/**
 * Yields the outputs, read in a thread if their files have more than `limits.threadBytes`. Throws like `readOutputs`,
 * and a BuildError or a system error if the thread fails.
 */
export function claimedOutputs(
  claimed: Omit<ClaimedLedger, 'limits'>,
  limits: Pick<WorkLimits, 'locatedOutputs' | 'threadBytes'>,
): AsyncGenerator<ClaimedOutputs> {
  const task = { ...claimed, limits: { locatedOutputs: limits.locatedOutputs } };
  const isLong = exceeds(limits, 'threadBytes', bytesUpTo(claimed.point.height, claimed.lists));
  return isLong ? itemsOfThread(program.threads.start, task, DAMAGES) : readOutputs(task);
}

/** Classes of the errors that `readOutputs` throws for an invalid output. */
export const DAMAGES = [ChangedArchiveError, SyntaxError, TypeError, RangeError] as const;

const HASH = /^[0-9a-f]{64}$/;
const OUTPOINT = /^[0-9a-f]{64}:(?:0|[1-9][0-9]{0,9})$/;

/**
 * Yields the outputs in batches. Writes the outputs that the node will be asked for to a file (chosenOutputs.ts). Throws
 * one of `DAMAGES` for an invalid output.
 */
export async function* readOutputs(claimed: ClaimedLedger): AsyncGenerator<ClaimedOutputs> {
  const { folder, lists, point, needsRows, limits } = claimed;
  const network = NETWORKS[claimed.network];
  const left = new Map(claimed.supply);
  const chosen = new ChosenOutputs(claimed.chosen, claimed.check, limits);
  const packed = new ByteWriter();
  try {
    for await (const batch of outputsUpTo(point.height, lists, { read: (file) => readStored(folder, file) })) {
      const [ledger, csv]: [string[], string[]] = [[], []];
      packed.clear();
      for (const output of batch) {
        const { output: name, place, address, runes } = output;
        const [height, blockHash, txIndex, timestamp] = place;
        const script = address === undefined ? new Uint8Array() : scriptOfAddress(address, network, hash256);
        const hasPlace = isNatural(height) && isNatural(txIndex) && isNatural(timestamp) && height <= point.height && HASH.test(blockHash);
        if (!hasPlace || !OUTPOINT.test(name) || script === undefined)
          throw new ChangedArchiveError(`the output ${name.slice(0, 100)} is not valid`);
        ledger.push(outputLine(output));
        const balances = runes.map(([id, units]) => ({ rune: idOf(id), amount: unitsOf(units) })).sort((a, b) => a.rune - b.rune);
        for (const { rune, amount } of balances) left.set(rune, (left.get(rune) ?? 0n) - amount);
        if (needsRows) for (const [id, units] of runes) csv.push(`${name},${place.join()},${address ?? ''},${id},${units}\n`);
        packOutput(packed, outpointBytes(name), { script, balances });
        chosen.add({ name, height, address: address ?? '-' });
      }
      yield { ledger: bytesOf(ledger.join('')), csv: bytesOf(csv.join('')), rows: csv.length, outputs: new Uint8Array(packed.view()) };
    }
    chosen.end();
  } finally {
    chosen.close();
  }
  syncFile(claimed.chosen);
  syncFolder(dirname(claimed.chosen));
  const lacking = [...left].find(([, units]) => units !== 0n);
  if (lacking !== undefined) yield { ledger: bytesOf(''), csv: bytesOf(''), rows: 0, outputs: bytesOf(''), lacking };
}

/** Returns the bytes of an ASCII text in a separate buffer, which can be transferred to another thread. */
function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const bytes = Buffer.allocUnsafeSlow(text.length);
  bytes.write(text, 'latin1');
  return bytes;
}

export const isNatural = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;

/** Parses an amount in smallest units. Throws a ChangedArchiveError for other text. */
export function unitsOf(text: string): bigint {
  if (!/^[0-9]{1,39}$/.test(text)) throw new ChangedArchiveError(`${JSON.stringify(text.slice(0, 64))} is not an amount`);
  return BigInt(text);
}

/** Parses a rune id. Throws a ChangedArchiveError for other text. */
export function idOf(text: string): RuneId {
  const [, block, tx] = /^([0-9]{1,9}):([0-9]{1,6})$/.exec(text) ?? [];
  if (block === undefined || tx === undefined) throw new ChangedArchiveError(`${JSON.stringify(text.slice(0, 64))} is not a rune id`);
  return runeId(Number(block), Number(tx));
}
