/**
 * Answers requests for etchings from pages of them and an index of names. Layouts store both in their own way.
 */

import { ArchiveError } from '../archive/error.ts';
import { findOrdinals, readArchivedPage } from '../archive/etchings.ts';
import type { Archive } from '../archive/reader.ts';
import { renderEnvelope } from './envelope.ts';
import { fileOfName, findName, nameFiles, readEtchingPage } from './etchingFiles.ts';
import { type Files, MissingFileError, type OpenFile } from './files.ts';
import type { FurtherRequest } from './further.ts';
import { etchingsPath, namesPath } from './paths.ts';
import type { Window } from './query.ts';
import { maximumLimit, type Site } from './site.ts';

/** The etchings of a build, oldest first: ordinal 0 is the first. */
export interface Etchings {
  readonly total: number;
  /** Etchings in a page. */
  readonly pageSize: number;
  /** Reads the JSON of a page's etchings. Rejects when the page is missing or damaged. */
  page(number: number): Promise<readonly string[]>;
  /** Finds the ordinals of runes that may have this id, number or name. Other runes may be among them. */
  find(name: string): Promise<readonly number[]>;
  /** Called when none of the ordinals found is of the rune that was asked for. Throws when that cannot be. */
  checkOthers?(name: string): void;
}

/** Returns the body of an answer; undefined when there is no such rune. */
export async function answerEtchings({ rune, window }: FurtherRequest, etchings: Etchings): Promise<string | undefined> {
  if (window !== undefined) return windowOf(window, etchings);
  if (rune === undefined) return undefined;
  const ordinals = await etchings.find(rune);
  for (const ordinal of ordinals) {
    const page = await etchings.page(Math.floor(ordinal / etchings.pageSize));
    const text = page[ordinal % etchings.pageSize];
    if (text !== undefined && isNamed(text, rune)) return text;
  }
  if (ordinals.length > 0) etchings.checkOthers?.(rune);
  return undefined;
}

/** True when the JSON of an etching has this id, number or name. */
function isNamed(text: string, rune: string): boolean {
  const { id, number, name } = JSON.parse(text) as Readonly<Record<string, unknown>>;
  return id === rune || String(number) === rune || name === rune;
}

/** Makes a window of the list, which begins with the newest etching. */
async function windowOf(window: Window, etchings: Etchings): Promise<string> {
  const { total, pageSize } = etchings;
  const end = Math.max(total - window.offset, 0);
  const begin = Math.max(end - window.limit, 0);
  const first = Math.floor(begin / pageSize);
  const count = end === begin ? 0 : Math.ceil(end / pageSize) - first;
  const pages = await Promise.all(Array.from({ length: count }, (_, i) => etchings.page(first + i)));
  const found = pages.flat().slice(begin - first * pageSize, end - first * pageSize);
  return renderEnvelope(window, total, found.reverse());
}

/** The etchings of layout `files`. `total` is from the manifest. */
export function etchingsInFiles<File extends OpenFile>(total: number, site: Site, files: Files<File>): Etchings {
  const pageSize = maximumLimit(site);
  const read = async (path: string): Promise<string> => {
    const file = await files.open(path);
    if (file === undefined) throw new MissingFileError(path);
    return file.text();
  };
  return {
    total,
    pageSize,
    page: async (number) => {
      const etchings = readEtchingPage(await read(etchingsPath(number)));
      const expected = Math.min(total - number * pageSize, pageSize);
      // A newer build may have added etchings to the last page.
      if (etchings === undefined || etchings.length < expected) throw new MissingFileError(etchingsPath(number), 'is not a complete page');
      return etchings;
    },
    find: async (name) => {
      const count = nameFiles(total);
      const path = namesPath(fileOfName(name, count));
      const text = await read(path);
      let ordinal: number | undefined;
      try {
        ordinal = findName(text, name, count);
      } catch {
        throw new MissingFileError(path, 'is damaged, or belongs to another build');
      }
      if (ordinal !== undefined && ordinal >= total) throw new MissingFileError(path, 'is newer than the manifest');
      return ordinal === undefined ? [] : [ordinal];
    },
    // The files have whole names. After a reorganisation, a rune may have another ordinal in a page of another build.
    checkOthers: (name) => {
      throw new MissingFileError(namesPath(fileOfName(name, nameFiles(total))), 'belongs to another build than the page');
    },
  };
}

/** The etchings of an archive. Throws an ArchiveError when it has none. */
export function etchingsInArchive(archive: Archive): Etchings {
  const { etchings, pageSize } = archive.root;
  if (etchings === undefined) throw new ArchiveError('the root of the archive has no etchings');
  return {
    total: etchings.total,
    pageSize,
    page: async (number) => {
      const page = readEtchingPage(await readArchivedPage(archive, etchings, number));
      if (page?.length !== Math.min(etchings.total - number * pageSize, pageSize)) {
        throw new ArchiveError(`page ${number} of etchings is damaged`);
      }
      return page;
    },
    find: (name) => findOrdinals(archive, etchings, name),
  };
}
