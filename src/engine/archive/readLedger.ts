/**
 * Reads the ledger after a block (lists/ledgerText.ts) from an archive's documents of etchings and outputs
 * (format/documents.ts), and computes its digest. Needs no database, so a thread can do this during a build or a pull.
 */
import { createHash } from 'node:crypto';
import type { DocumentLevel } from '../../format/levels.ts';
import type { LedgerPoint, ListTables } from '../../format/listTables.ts';
import { type LedgerOutput, parseLedgerOutput } from '../../lists/ledgerOutputs.ts';
import { ledgerHead, outputLine, runeLine } from '../../lists/ledgerText.ts';
import { parseCounts, parseEtching } from '../../lists/parseEtching.ts';
import type { Dialect } from '../../pages/mirrorOptions.ts';
import { linesOf, mergeByKey, type StoredLine, valuesIn } from './documentWriter.ts';
import { ChangedArchiveError, readStored, type StoredArchive } from './storedArchive.ts';

/** Minimum number of characters per update of the hash, because an update for each line would be slow. */
const CHUNK = 1 << 16;

type Files = Pick<StoredArchive, 'read'>;

export type LedgerLists = Pick<ListTables, 'etchings' | 'outputs'>;

/** Returns the levels (format/levels.ts) of etchings and of outputs up to a block, where a level of each must end. */
export const levelsUpTo = (height: number, lists: LedgerLists | undefined) => {
  const upTo = (levels: readonly DocumentLevel[] = []) => levels.filter(({ last }) => last <= height);
  return { etchings: upTo(lists?.etchings?.levels), outputs: upTo(lists?.outputs?.outputs) };
};

/** Returns the size in bytes of the files with the documents of the ledger after a block. Reads no document. */
export const bytesUpTo = (height: number, lists: LedgerLists): number =>
  Object.values(levelsUpTo(height, lists)).reduce(
    (sum, levels) => sum + levels.flatMap(({ files }) => files).reduce((all, { bytes }) => all + bytes, 0),
    0,
  );

/** Computes the digest of a ledger from its runes, sorted by number, and then its outputs, sorted by txid and vout. */
export class LedgerHash {
  readonly #hash = createHash('sha256');
  #pending: string;

  constructor(network: string, block: Omit<LedgerPoint, 'digest'>) {
    this.#pending = ledgerHead(network, block);
  }

  addRune(rune: Parameters<typeof runeLine>[0], counts: Parameters<typeof runeLine>[1]): void {
    this.#add(runeLine(rune, counts));
  }

  addOutput(output: LedgerOutput): void {
    this.#add(outputLine(output));
  }

  addLines(lines: Uint8Array): void {
    this.#hash.update(this.#pending).update(lines);
    this.#pending = '';
  }

  #add(line: string): void {
    this.#pending += line;
    if (this.#pending.length < CHUNK) return;
    this.#hash.update(this.#pending);
    this.#pending = '';
  }

  digest(): string {
    return this.#hash.update(this.#pending).digest('hex');
  }
}

/** Input of a thread that computes a digest: the lists of an archive in the folder `out`, up to a block. */
export interface DigestTask {
  readonly network: string;
  readonly block: Omit<LedgerPoint, 'digest'>;
  readonly lists: LedgerLists;
  readonly dialect: Dialect;
  readonly out: string;
}

export const digestIn = ({ network, block, lists, dialect, out }: DigestTask): Promise<string> =>
  digestOf(network, block, lists, dialect, { read: (file) => readStored(out, file) });

/**
 * Computes the digest of the ledger after a block. A level of `lists` must end at this block. Throws a
 * ChangedArchiveError for a damaged file.
 */
export async function digestOf(
  network: string,
  block: Omit<LedgerPoint, 'digest'>,
  lists: LedgerLists,
  dialect: Dialect,
  files: Files,
): Promise<string> {
  const hash = new LedgerHash(network, block);
  for await (const line of newestOf(levelsUpTo(block.height, lists).etchings, files)) {
    const [json = ''] = valuesIn(line);
    hash.addRune(parseEtching(json, dialect), parseCounts(json));
  }
  for await (const outputs of outputsUpTo(block.height, lists, files)) for (const output of outputs) hash.addOutput(output);
  return hash.digest();
}

/**
 * Number of runes in a batch of outputs at which `outputsUpTo` yields the batch. Yielding single outputs would be slow,
 * because each step of a generator takes time.
 */
const RUNES_AT_ONCE = 1024;

/**
 * Maximum number of outputs of a transaction. A block has at most 4 million weight units. An output has at least 36
 * units: 8 bytes for the amount and 1 byte for the length of an empty script, with 4 units per byte.
 */
const MOST_OUTPUTS = Math.floor(4_000_000 / 36);

/** Returns the vout of an outpoint. Throws a ChangedArchiveError if no output of a block can have this outpoint. */
function voutOf(outpoint: string): number {
  const text = outpoint.slice(outpoint.indexOf(':') + 1);
  const vout = Number(text);
  if (String(vout) !== text || !(vout < MOST_OUTPUTS))
    throw new ChangedArchiveError(`the archive has the output ${outpoint.slice(0, 100)}, which no transaction can have`);
  return vout;
}

/**
 * Yields batches of the outputs that are unspent as of the block at `height`, in the order of the ledger. One of the
 * levels of `lists` must end at this height. Throws a ChangedArchiveError, a SyntaxError or a TypeError for an invalid document.
 */
export async function* outputsUpTo(height: number, lists: LedgerLists, files: Files): AsyncGenerator<readonly LedgerOutput[]> {
  // Keys are sorted as text: the outputs of a transaction are adjacent, but output 10 precedes output 2. The ledger
  // needs outputs in the order of their numbers, so the outputs of each transaction (`group`) are sorted again.
  let [txId, group]: [string, { readonly vout: number; readonly output: LedgerOutput }[]] = ['', []];
  let [batch, runes, full]: [LedgerOutput[], number, LedgerOutput[][]] = [[], 0, []];
  const endGroup = () => {
    if (group.length > 1) group.sort((a, b) => a.vout - b.vout);
    for (const { output } of group) {
      batch.push(output);
      runes += Math.max(output.runes.length, 1);
      if (runes < RUNES_AT_ONCE) continue;
      full.push(batch);
      [batch, runes] = [[], 0];
    }
    group = [];
  };
  for await (const line of newestOf(levelsUpTo(height, lists).outputs, files)) {
    const { key } = line;
    const output = parseLedgerOutput(key, line.bytes, () => valuesIn(line));
    if (output === undefined) continue;
    if (!key.startsWith(txId) || txId === '') {
      endGroup();
      txId = key.slice(0, key.indexOf(':') + 1);
      if (full.length > 0) yield* full;
      full = [];
    }
    // A group has at most MOST_OUTPUTS outputs: voutOf() rejects larger numbers, and each document has its own key.
    group.push({ vout: voutOf(key), output });
  }
  endGroup();
  yield* [...full, batch];
}

/** Yields the newest document of each key in `levels`, which ascend by height. */
export const newestOf = (levels: readonly DocumentLevel[], files: Files): AsyncGenerator<StoredLine> =>
  mergeByKey<StoredLine>(
    levels.map((level) => linesOf(files, level)),
    (same) => same.reduce((_, newer) => newer),
  );
