/** Compares the documents (format/documents.ts) that a build would make with the documents of an archive. */
import type { ListName, OpenLevel } from '../engine/archive/makeLevels.ts';
import { linesOf, type StoredArchive, type StoredLine } from '../engine/archive/storedArchive.ts';
import { countBefore } from '../format/binarySearch.ts';
import type { DocumentLevel } from '../format/levels.ts';
import type { Root } from '../format/root.ts';
import { archivePath } from '../pages/filePaths.ts';
import type { Findings } from './findings.ts';

/** What the documents of a list are, for findings. The key of a document follows. */
const WHAT: Readonly<Record<ListName, string>> = {
  ids: 'ids with the key',
  names: 'names with the key',
  activity: 'lists of activity with the key',
  'etchings.levels': 'data of the etching with the ordinal',
  'etchings.runes': 'names of the rune with the ordinal',
  'balances.addresses': 'balances of the address',
  'balances.holders': 'holders of the rune with the ordinal',
  'outputs.outputs': 'data of the output',
  'outputs.addresses': 'outputs of the address',
  'outputs.starts': 'starts of pages of the address',
};

function levelsOf({ ids, lists }: Root, list: ListName): readonly DocumentLevel[] {
  let part: unknown = { ids, ...lists };
  for (const name of list.split('.')) part = (part as Readonly<Record<string, unknown>> | undefined)?.[name];
  return (part ?? []) as readonly DocumentLevel[];
}

/**
 * Returns a function that begins levels, which compares their documents with the archive's instead of writing them. Reports only the first
 * difference of a level. A level that is finished is the archive's.
 */
export const comparedLevels =
  (archive: StoredArchive, findings: Findings): OpenLevel =>
  (list, range) => {
    const level = levelsOf(archive.root, list).find(({ first, last }) => first === range.first && last === range.last);
    const lines: Iterator<StoredLine, undefined> = level === undefined ? [].values() : linesOf(archive, level);
    let isDifferent = false;
    /** Compares a line, whose characters stand for bytes. Undefined after the last line. */
    const compare = (line: string | undefined): void => {
      const { value } = lines.next();
      if (value === undefined ? line === undefined : line === value.key + value.bytes) return;
      const [expected, found] = [line?.split('\t', 1)[0], value?.key];
      const key = expected === undefined || (found !== undefined && found < expected) ? (found ?? '') : expected;
      const files = level?.files ?? [];
      const file = files[Math.max(countBefore(files.length, (i) => (files[i]?.from ?? '') <= key) - 1, 0)];
      const place = file === undefined ? 'the archive' : archivePath(file.file);
      findings.add(`${place} has wrong ${WHAT[list]} ${key.replace(/[ !].*/, '')} in the blocks ${range.first} to ${range.last}`);
      isDifferent = true;
    };
    return {
      addLines: (added) => {
        for (let start = 0; start < added.length && !isDifferent; ) {
          const end = added.indexOf(LINE_FEED, start);
          compare(added.toString('latin1', start, end));
          start = end + 1;
        }
      },
      finish: async () => {
        if (!isDifferent) compare(undefined);
        return level && { first: range.first, last: range.last, files: level.files };
      },
    };
  };

const LINE_FEED = 10;
