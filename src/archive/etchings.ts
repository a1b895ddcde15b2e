/**
 * Pages and names of etchings in an archive. A lookup by name takes three rounds of reads: names, directories, page.
 */
import { ArchiveError } from './error.ts';
import { nameKeyOf } from './nameKey.ts';
import type { Archive, PagePlace } from './reader.ts';
import type { EtchingFile, EtchingTables } from './root.ts';

/** Makes the text of a directory: number and length of each page, in the order of the file. */
export const renderPageDirectory = (pages: readonly (readonly [page: number, length: number])[]): string => `${JSON.stringify(pages)}\n`;

/** Parses a directory. Throws an ArchiveError when it does not fit its file. */
export function parsePageDirectory(text: string, { from, to, bytes, directory }: EtchingFile): Map<number, PagePlace> {
  const places = new Map<number, PagePlace>();
  let offset = 0;
  try {
    for (const [page, length] of JSON.parse(text) as readonly (readonly [number, number])[]) {
      if (!Number.isSafeInteger(page) || !Number.isSafeInteger(length) || length <= 0) throw new Error('not a page');
      places.set(page, { offset, length });
      offset += length;
    }
  } catch {
    throw new ArchiveError('a directory of etchings is damaged');
  }
  const numbers = [...places.keys()];
  if (offset !== bytes - directory || numbers[0] !== from || numbers.at(-1) !== to) {
    throw new ArchiveError('a directory of etchings does not fit its file');
  }
  return places;
}

/** Reads a page of etchings as text. Rejects with an ArchiveError when it is missing or damaged. */
export async function readArchivedPage(archive: Archive, { pages }: EtchingTables, number: number): Promise<string> {
  const files = pages.filter(({ from, to }) => from <= number && number <= to);
  const directories = await Promise.all(files.map((file) => archive.tail(file, (text) => parsePageDirectory(text, file))));
  // Files ascend by height, so the last one is of the newest level.
  for (const [i, file] of [...files.entries()].reverse()) {
    const place = directories[i]?.get(number);
    if (place === undefined) continue;
    return archive.forgetIfDamaged(file.file, async () =>
      archive.page(await archive.part(file.file, file.bytes, place.offset, place.length)),
    );
  }
  throw new ArchiveError(`the archive has no page ${number} of etchings`);
}

/** Finds the ordinals of runes whose id, number or name has the same key as this one, ascending. */
export async function findOrdinals(archive: Archive, { names }: EtchingTables, name: string): Promise<number[]> {
  const entries = await archive.find(names, nameKeyOf(name));
  return entries.map(({ first }) => first).sort((a, b) => a - b);
}
