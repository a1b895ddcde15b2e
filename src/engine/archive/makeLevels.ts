/** Makes the levels of a list (format/levels.ts). Keeps levels of the last build as planned (listedRecords.ts). */
import { type Chunks, joinedBlobs } from '../../duckdb/columns.ts';
import type { LevelRange } from '../../format/levels.ts';
import type { Limits } from '../../limits.ts';
import type { StateTables } from '../state/state.ts';
import { DocumentWriter } from './documentWriter.ts';
import { type LevelPlan, lastLevel } from './listedRecords.ts';
import type { ArchivedBlocks, PutFile } from './segmentWriter.ts';
import type { StoredArchive } from './storedArchive.ts';

/** Kinds of documents in an archive. The name of a kind is its place in the root or, apart from the ids, in its lists. */
export type ListName =
  | 'ids'
  | 'names'
  | 'activity'
  | `etchings.${'levels' | 'runes'}`
  | `balances.${'addresses' | 'holders'}`
  | `outputs.${'outputs' | 'addresses' | 'starts'}`;

export type LevelWriter = Pick<DocumentWriter, 'addLines' | 'finish'>;

/** Begins a level. Verification compares the level with that of an archive, instead of writing it (verify/compareLevels.ts). */
export type OpenLevel<Name extends ListName = ListName> = (list: Name, range: LevelRange) => LevelWriter;

export function levelWriters({ objectSize, limits }: Pick<ArchivedBlocks, 'objectSize' | 'limits'>, put: PutFile): OpenLevel {
  const { documentMember, runesMember, lookUpMember } = limits;
  return (list) => {
    const isLookUp = list === 'ids' || list === 'names';
    const member = isLookUp ? lookUpMember : list === 'etchings.runes' ? runesMember : documentMember;
    return new DocumentWriter(objectSize, { documentMember: member }, put, isLookUp);
  };
}

export interface LevelForm<Name extends ListName> {
  /** The archive of the last build. */
  readonly old: StoredArchive | undefined;
  readonly open: OpenLevel<Name>;
  readonly state: StateTables;
  readonly limits: Limits;
  readonly scratch: string;
}

/** Returns the levels of a list, the lowest first. `before` has the levels of the last build. `make` writes each level that is not kept. */
export async function makeLevels<Level extends LevelRange>(
  plans: readonly LevelPlan[],
  before: readonly Level[] | undefined,
  make: (plan: LevelPlan) => Promise<Level | undefined>,
): Promise<Level[]> {
  const levels: Level[] = [];
  for (const plan of plans) {
    const level = plan.isKept ? lastLevel(plan, before) : await make(plan);
    if (level !== undefined) levels.push(level);
  }
  return levels;
}

/**
 * Writes documents from the texts in the first column of `chunks`. Concatenated, the texts are the documents: a line feed and the key,
 * followed by each value with a tab before it. Copying bytes is much faster than making a JavaScript string for each value.
 */
export async function writeTexts(to: LevelWriter, chunks: Chunks): Promise<void> {
  // Bytes after the last line feed of the previous chunk. They begin a document that continues in the next chunk.
  let open: Uint8Array[] = [];
  const addLines = (end: Uint8Array) => to.addLines(Buffer.concat([...open, end]));
  // Skips the first line feed: each document begins with one, which ends the document before it.
  let start = 1;
  for await (const chunk of chunks) {
    const bytes = joinedBlobs(chunk, 0).bytes.subarray(start);
    start = 0;
    const end = bytes.lastIndexOf(LINE_FEED) + 1;
    if (end > 0) {
      addLines(bytes.subarray(0, end));
      open = [];
    }
    open.push(bytes.subarray(end));
  }
  if (open.length > 0) addLines(Buffer.of(LINE_FEED));
}

/** SELECT expression for `writeTexts`. DuckDB copies its texts to consecutive memory, from which joinedBlobs() is faster. */
export const TEXTS = `encode(concat(text, ''))`;

/** SQL expressions for `writeTexts`: the beginning of a document with its key, a value, and a number with 8 digits, as in keys. */
export const documentStart = (key: string): string => `chr(10) || ${key}`;
export const valueText = (value: string): string => `chr(9) || ${value}`;
export const padded = (number: string): string => `lpad((${number})::VARCHAR, 8, '0')`;

const LINE_FEED = 10;
