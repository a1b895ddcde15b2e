/** Compares the documents (format/documents.ts) that a build would make with the documents of an archive. */
import { documentIn, documentsOf, type StoredDocument } from '../engine/archive/documentWriter.ts';
import type { LevelWriter } from '../engine/archive/makeLevels.ts';
import type { StoredArchive } from '../engine/archive/storedArchive.ts';
import type { DocumentLevel, LevelRange } from '../format/levels.ts';
import type { ArchiveCheck } from './verification.ts';

/**
 * Returns a function that begins a level, for the code that writes lists. The function returns a writer, which compares
 * its documents with the documents of the archive, instead of writing them. `tables` has the levels of the archive by
 * kind of list. `what` names the documents of each kind in findings.
 */
export const comparedLevels =
  <Kind extends string>(
    what: Readonly<Record<Kind, string>>,
    tables: Readonly<Record<NoInfer<Kind>, readonly DocumentLevel[]>>,
    { archive, findings }: ArchiveCheck,
  ) =>
  (kind: Kind, range: LevelRange): ComparedLevel => {
    const level = tables[kind].find(({ first, last }) => first === range.first && last === range.last);
    const wrong = `in the blocks ${range.first} to ${range.last}, the archive has wrong ${what[kind]}`;
    return new ComparedLevel(level, archive, (key) => findings.add(`${wrong} ${key.split(' ')[0]}`));
  };

/** Compares expected documents with the documents of an archive's level. Reports only the first difference. */
class ComparedLevel implements LevelWriter {
  readonly #documents: Iterator<StoredDocument>;
  #isDifferent = false;

  constructor(
    private readonly level: DocumentLevel | undefined,
    archive: StoredArchive,
    private readonly report: (key: string) => void,
  ) {
    this.#documents = level === undefined ? [].values() : documentsOf(archive, level);
  }

  #differ(key: string): void {
    this.report(key);
    this.#isDifferent = true;
  }

  addLine(line: Uint8Array): void {
    if (this.#isDifferent) return;
    const { key, values } = documentIn(line);
    const { value, done } = this.#documents.next();
    const found: StoredDocument | undefined = done === true ? undefined : value;
    if (found?.key !== key) this.#differ(found !== undefined && found.key < key ? found.key : key);
    else if (found.values.join('\t') !== values.join('\t')) this.#differ(key);
  }

  finish(): DocumentLevel | undefined {
    const { value, done } = this.#isDifferent ? { value: undefined, done: true } : this.#documents.next();
    if (done !== true && value !== undefined) this.#differ(value.key);
    if (this.level === undefined) return undefined;
    const { first, last, files } = this.level;
    return { first, last, files };
  }
}
