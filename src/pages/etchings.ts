/** Answers requests for etchings from an archive (archive/etchings.ts). */
import { ArchiveError } from '../archive/error.ts';
import { readEtchings } from '../archive/etchings.ts';
import { lookUpName } from '../archive/names.ts';
import type { Archive } from '../archive/reader.ts';
import { renderEnvelope } from './envelope.ts';
import type { FurtherRequest } from './further.ts';

/** Returns the body of an answer; undefined for an unknown rune. Rejects with an ArchiveError for damaged files. */
export async function answerEtchings({ rune = '', window }: FurtherRequest, archive: Archive): Promise<string | undefined> {
  const { etchings, names = [] } = archive.root.lists ?? {};
  if (etchings === undefined) throw new ArchiveError('the root of the archive has no etchings');
  if (window !== undefined) {
    // The list begins with the newest etching.
    const end = Math.max(etchings.total - window.offset, 0);
    const found = await readEtchings(archive, etchings, Math.max(end - window.limit, 0), end);
    return renderEnvelope(window, etchings.total, found.reverse());
  }
  for (const { ordinal } of await lookUpName(archive, names, rune)) {
    const [json = '{}'] = await readEtchings(archive, etchings, ordinal, ordinal + 1);
    if (isNamed(JSON.parse(json) as Readonly<Record<string, unknown>>, rune)) return json;
  }
  return undefined;
}

/** True when `rune` is the id, number or name of this etching. */
export const isNamed = (
  { id, number, name }: { readonly id?: unknown; readonly number?: unknown; readonly name?: unknown },
  rune: string,
) => id === rune || String(number) === rune || name === rune;
