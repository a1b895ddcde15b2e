import type { StoredDocument } from '../../src/engine/archive/storedArchive.ts';

/** Returns a document as a line of a level. */
export const lineOf = ({ key, values }: StoredDocument): Buffer => Buffer.from(`${key}\t${values.join('\t')}\n`);
