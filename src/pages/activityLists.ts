/** Answers requests for activity by rune, by address, and by both, from the lists of an archive. */
import { type FoundList, findList, readRecords } from '../archive/activityLists.ts';
import { LISTED } from '../archive/activityTables.ts';
import { ArchiveError } from '../archive/error.ts';
import { lookUpName } from '../archive/names.ts';
import type { Archive } from '../archive/reader.ts';
import { utf8Of } from '../archive/sha256.ts';
import { cutRecords, renderEnvelope } from './envelope.ts';
import { isNamed } from './etchings.ts';
import type { FurtherRequest } from './further.ts';
import type { Window } from './query.ts';

/** The rune id and the address that all records of a list have. */
interface Subject {
  readonly rune: string | undefined;
  readonly address: string | undefined;
}

/** Returns the body of an answer. Leaves out `rune` in the records of a rune's list. */
export async function answerActivity({ rune, address }: FurtherRequest, window: Window, archive: Archive): Promise<string> {
  const { offset, limit } = window;
  const isName = rune !== undefined && !rune.includes(':');
  const ids = isName ? (await lookUpName(archive, archive.root.lists?.names ?? [], rune)).map(({ id }) => id) : [rune];
  for (const id of ids) {
    const subject: Subject = { rune: id, address };
    const list = await findList(archive, textOf(subject));
    // Reads the last record for a window past the end, because only a record shows whether the rune has this name.
    const from = isName ? Math.min(offset, Math.max(list.total - 1, 0)) : offset;
    const records = await recordsIn(list, from, Math.min(offset + limit, list.total), subject, archive);
    if (isName && !records.some((record) => isNamed((JSON.parse(record) as Parsed).rune, rune))) continue;
    const results = rune === undefined ? records : records.map((record) => `{${record.slice(runeEnd(record))}`);
    return renderEnvelope(window, list.total, offset < list.total ? results : []);
  }
  return renderEnvelope(window, 0, []);
}

function textOf({ rune, address }: Subject): string {
  if (rune === undefined) return LISTED.address(address ?? '');
  return address === undefined ? LISTED.rune(rune) : LISTED.both(rune, address);
}

/** Reads the records `from` to `to - 1` of a list. Rejects with an ArchiveError for a record of another subject. */
async function recordsIn(list: FoundList, from: number, to: number, subject: Subject, archive: Archive): Promise<string[]> {
  if (from >= to) return [];
  const found = await readRecords(archive, list, from, to);
  return found.map(({ page, record }) => {
    const { text, count } = cutRecords(page, record, 1);
    if (count !== 1 || !isOf(subject, text)) throw new ArchiveError('a list of the archive has a record of another rune or address');
    return text;
  });
}

interface Parsed {
  readonly rune: { readonly id: string; readonly number: number; readonly name: string };
  readonly address?: string;
}

function isOf({ rune, address }: Subject, record: string): boolean {
  const found = JSON.parse(record) as Parsed;
  if (rune !== undefined && found.rune.id !== rune) return false;
  // A host may decode each byte of a page as one character (pages/files.ts).
  return address === undefined || found.address === address || found.address === byteByByte(address);
}

/** Decodes each byte of a text's UTF-8 as one character. */
const byteByByte = (text: string): string => Array.from(utf8Of(text), (byte) => String.fromCharCode(byte)).join('');

/** Matches the rune at the beginning of a record, up to the next key. */
const RUNE = /^\{"rune":\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\},/;

/** Returns the position in a record at which the rune ends. */
function runeEnd(record: string): number {
  const [rune] = RUNE.exec(record) ?? [];
  if (rune === undefined) throw new ArchiveError('a record of the archive has no rune');
  return rune.length;
}
