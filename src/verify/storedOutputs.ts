/** Reads the documents of unspent outputs. */
import { attempt } from '../attempt.ts';
import { documentsOf, type StoredDocument } from '../engine/archive/documentWriter.ts';
import type { StoredArchive } from '../engine/archive/storedArchive.ts';
import { ArchiveError } from '../format/archiveError.ts';
import type { DocumentLevel } from '../format/levels.ts';
import { parseOutput, SPENT, type UnspentOutput } from '../lists/unspentOutputs.ts';

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
