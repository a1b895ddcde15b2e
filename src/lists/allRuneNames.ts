/**
 * Names of all runes, for clients that load all names. The names have an eighth of the bytes of the etchings. A level (format/levels.ts)
 * has a document (format/documents.ts) for each rune that was etched in its blocks. Names never change, so old levels do not change either.
 */
import { ArchiveError } from '../format/archiveError.ts';
import type { Archive } from '../format/archiveReader.ts';
import { orDamaged, placeMembers } from '../format/documents.ts';
import type { RuneNames } from '../runes/name.ts';

export interface RuneName extends RuneNames {
  readonly divisibility: number;
  readonly symbol: string;
}

/** A rune in a document. `name` is omitted if it is the spaced name without spacers, as in all correct data. */
type Stored = readonly [id: string, number: number, spacedName: string, divisibility: number, symbol: string, name?: string];

const withoutSpacers = (spacedName: string): string => spacedName.replaceAll('•', '');

/**
 * Reads the files of all names, some megabytes. Returns a function that yields all runes, oldest first, some thousand at a time. All files
 * are read before the function is returned, because a new build may remove them. Both functions reject with an ArchiveError for a damaged
 * file.
 */
export async function openRuneNames(archive: Archive): Promise<() => AsyncGenerator<readonly RuneName[], void, undefined>> {
  const files = archive.root.lists?.etchings?.runes?.flatMap((level) => level.files);
  if (files === undefined) throw new ArchiveError('the root of the archive has no names of runes');
  const contents = await Promise.all(files.map(({ file, bytes }) => archive.part(file, bytes, 0, bytes)));
  return async function* () {
    for (const [i, file] of files.entries()) {
      const content = contents[i] ?? new Uint8Array();
      const members = placeMembers(await archive.page(content.subarray(file.bytes - file.directory)), file);
      for (const { offset, length } of members) {
        const lines = (await archive.page(content.subarray(offset, offset + length))).trimEnd().split('\n');
        yield orDamaged(() => lines.map((line) => nameOf(JSON.parse(line.slice(line.indexOf('\t') + 1)) as Stored)));
      }
    }
  };
}

const nameOf = ([id, number, spaced_name, divisibility, symbol, name = withoutSpacers(spaced_name)]: Stored): RuneName => ({
  id,
  number,
  name,
  spaced_name,
  divisibility,
  symbol,
});
