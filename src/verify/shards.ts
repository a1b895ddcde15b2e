/**
 * Checks the index of layout `packed` against the blocks. The transactions of all history do not fit into memory. So
 * this keeps only a sum of fingerprints for each index file while the blocks are read. Then it reads every index file
 * once, and compares the sums.
 */
import { createHash } from 'node:crypto';
import { codeOf } from '../errors.ts';
import { ENTRY_PIECES, entryHead, IndexFormatError, prefixes, readShard } from '../pages/packed.ts';
import { shardPath } from '../pages/paths.ts';
import type { Dialect } from '../pages/site.ts';
import { type Batch, type BatchBlock, TX_ID_LENGTH } from '../render/servedOrder.ts';
import { NotAFileError, readRegularFile } from '../write/regularFile.ts';
import type { Findings } from './findings.ts';

/** Fingerprints have 48 bits, so a number holds the sum of two exactly. */
const MODULUS = 2 ** 48;
const fingerprint = (entry: string): number => createHash('sha256').update(entry).digest().readUIntBE(0, 6);

export class ShardSums {
  readonly #digits: number;
  readonly #dialect: Dialect;
  readonly #sums: Float64Array;

  /** `digits`: number of hex digits in the name of an index file. */
  constructor(digits: number, dialect: Dialect) {
    this.#digits = digits;
    this.#dialect = dialect;
    this.#sums = new Float64Array(16 ** digits);
  }

  /** Adds the expected index entries of a block's transactions. */
  add(batch: Batch, block: BatchBlock, edition: string): void {
    const ids = Buffer.from(batch.txIds.buffer, batch.txIds.byteOffset, batch.txIds.length);
    const [beforeEdition, beforeFirst, beforeTotal, end] = ENTRY_PIECES;
    let first = 0;
    for (let i = block.firstTx; i < block.firstTx + block.transactions; i += 1) {
      const id = ids.toString('latin1', i * TX_ID_LENGTH, (i + 1) * TX_ID_LENGTH);
      const total = batch.txRecords[i] ?? 0;
      this.#sum(
        id.slice(0, this.#digits),
        `${entryHead(this.#dialect)}${id}${beforeEdition}${edition}${beforeFirst}${first}${beforeTotal}${total}${end}`,
        1,
      );
      first += total;
    }
  }

  #sum(prefix: string, entry: string, sign: 1 | -1): void {
    const at = Number.parseInt(prefix, 16);
    this.#sums[at] = ((this.#sums[at] ?? 0) + MODULUS + sign * fingerprint(entry)) % MODULUS;
  }

  /** Reads every index file below `root`, and adds a finding for each that does not match. */
  check(root: string, findings: Findings): void {
    for (const prefix of prefixes(this.#digits)) {
      const path = shardPath(prefix);
      try {
        if (!this.#isRight(prefix, readShard(readRegularFile(`${root}/${path}`).toString('latin1'))))
          findings.add(`${path} is not the index file that a build makes of the blocks`);
      } catch (error) {
        if (error instanceof IndexFormatError) findings.add(`${path}: ${error.message}`);
        else if (error instanceof NotAFileError) findings.add(`${path} ${error.message}`);
        else if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) findings.add(`${path} is missing`);
        else throw error;
      }
    }
  }

  #isRight(prefix: string, entries: readonly string[]): boolean {
    const begin = entryHead(this.#dialect) + prefix;
    for (const [i, entry] of entries.entries()) {
      // Entries have the same form, so comparing them as text compares their ids.
      if (!entry.startsWith(begin) || entry <= (entries[i - 1] ?? '')) return false;
      this.#sum(prefix, entry, -1);
    }
    return this.#sums[Number.parseInt(prefix, 16)] === 0;
  }
}
