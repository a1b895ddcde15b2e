/**
 * Reads unspent outputs, and those of a mirror's start: the block after which its pull took over the ledger of other
 * mirrors (contract/sources.ts). The checks use the outputs of the start instead of the records of older blocks.
 */
import { attempt } from '../attempt.ts';
import { documentsOf, type StoredDocument } from '../engine/archive/documentWriter.ts';
import type { StoredArchive } from '../engine/archive/storedArchive.ts';
import { ArchiveError } from '../format/archiveError.ts';
import type { DocumentLevel } from '../format/levels.ts';
import { parseOutput, SPENT, type UnspentOutput } from '../lists/unspentOutputs.ts';
import { shiftDecimals } from '../pages/decimalAmounts.ts';
import type { Activity } from './checkBlock.ts';

/**
 * Yields the documents of outputs in a level. `made` is undefined for an output that the level only spends. Throws an
 * ArchiveError for an invalid document.
 */
export function* outputsIn(
  archive: StoredArchive,
  level: DocumentLevel,
): Generator<StoredDocument & { readonly made: UnspentOutput | undefined }> {
  for (const { key, values } of documentsOf(archive, level)) {
    const made = attempt(() => parseOutput(key, values));
    if (made?.runes.length === 0 || (made === undefined && values.join() !== SPENT))
      throw new ArchiveError(`the archive has the output ${key}, which cannot be read`);
    yield { key, values, made };
  }
}

/**
 * Yields the outputs of the start, which are in the lowest level, as `receive` records. Yields nothing for a mirror
 * without a start. Throws an ArchiveError for a damaged document.
 */
export function* startOutputs(
  archive: StoredArchive | undefined,
): Generator<{ readonly height: number; readonly records: readonly Activity[] }> {
  const { start, outputs } = archive?.root.lists ?? {};
  const [lowest] = outputs?.outputs ?? [];
  if (archive === undefined || start === undefined || lowest?.last !== start.height) return;
  for (const { key, made } of outputsIn(archive, lowest)) {
    if (made === undefined) continue;
    const [tx_id = '', vout] = key.split(':');
    const [block_height, block_hash, tx_index, timestamp] = made.place;
    const location = { block_hash, block_height, tx_id, tx_index, timestamp, vout: Number(vout), output: key };
    yield {
      height: block_height,
      records: made.runes.map(([id, number, name, spaced_name, divisibility, units]) => ({
        rune: { id, number, name, spaced_name },
        operation: 'receive',
        ...(made.address === undefined ? {} : { address: made.address }),
        amount: shiftDecimals(BigInt(units), divisibility),
        location,
      })),
    };
  }
}
