/**
 * Compares the documents that a build makes with those of an archive.
 */
import type { DocumentLevel, LevelRange } from '../archive/levels.ts';
import type { LevelWriter } from '../archiver/changes.ts';
import { documentsOf, type StoredDocument } from '../archiver/documents.ts';
import type { StoredArchive } from '../archiver/storedArchive.ts';
import type { Findings } from './findings.ts';

/** Compares expected documents with those of a level of the archive, up to the first difference. */
export class ComparedLevel implements LevelWriter {
  readonly #what: string;
  readonly #level: DocumentLevel | undefined;
  readonly #documents: Iterator<StoredDocument>;
  readonly #findings: Findings;
  #isDifferent = false;

  /** `what` names what a document is about, followed by its key. */
  constructor(what: string, { first, last }: LevelRange, levels: readonly DocumentLevel[], archive: StoredArchive, findings: Findings) {
    this.#what = `in the blocks ${first} to ${last}, the archive has wrong ${what}`;
    this.#level = levels.find((level) => level.first === first && level.last === last);
    this.#documents = this.#level === undefined ? [].values() : documentsOf(archive, this.#level);
    this.#findings = findings;
  }

  #differ(key: string): void {
    this.#findings.add(`${this.#what} ${key.split(' ')[0]}`);
    this.#isDifferent = true;
  }

  add({ key, values }: StoredDocument): void {
    if (this.#isDifferent) return;
    const { value, done } = this.#documents.next();
    const found: StoredDocument | undefined = done === true ? undefined : value;
    if (found?.key !== key) this.#differ(found !== undefined && found.key < key ? found.key : key);
    else if (found.values.join('\t') !== values.join('\t')) this.#differ(key);
  }

  finish(): DocumentLevel | undefined {
    const { value, done } = this.#isDifferent ? { value: undefined, done: true } : this.#documents.next();
    if (done !== true && value !== undefined) this.#differ(value.key);
    if (this.#level === undefined) return undefined;
    const { first, last, files } = this.#level;
    return { first, last, files };
  }
}
