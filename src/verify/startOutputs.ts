/**
 * Reads the unspent outputs of a mirror's start: the block after which its pull took over the ledger of other mirrors
 * (contract/sources.ts). The checks use these outputs instead of the records of older blocks.
 */
import { documentsOf } from '../engine/archive/documentWriter.ts';
import type { StoredArchive } from '../engine/archive/storedArchive.ts';
import { ArchiveError } from '../format/archiveError.ts';
import { parseOutput, type UnspentOutput } from '../lists/unspentOutputs.ts';
import { shiftDecimals } from '../pages/decimalAmounts.ts';
import type { Activity } from './checkBlock.ts';

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
  for (const { key, values } of documentsOf(archive, lowest)) {
    const output = parse(key, values);
    if (output === undefined) continue;
    const [tx_id = '', vout] = key.split(':');
    const [block_height, block_hash, tx_index, timestamp] = output.place;
    const location = { block_hash, block_height, tx_id, tx_index, timestamp, vout: Number(vout), output: key };
    yield {
      height: block_height,
      records: output.runes.map(([id, number, name, spaced_name, divisibility, units]) => ({
        rune: { id, number, name, spaced_name },
        operation: 'receive',
        ...(output.address === undefined ? {} : { address: output.address }),
        amount: shiftDecimals(BigInt(units), divisibility),
        location,
      })),
    };
  }
}

function parse(key: string, values: readonly string[]): UnspentOutput | undefined {
  try {
    return parseOutput(key, values);
  } catch {
    throw new ArchiveError(`the output ${key} of the start is damaged`);
  }
}
