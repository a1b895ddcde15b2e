/**
 * Balances of addresses and holders of runes: two kinds of documents (format/documents.ts).
 *
 * An **entry** has the balance of a rune that an address holds: after the last block of a level (format/levels.ts), and before its first
 * block. The entry of the newest level counts. From the balance before the level, a reader finds the entry that it replaces in the list of
 * a lower level.
 *
 * **Balances**: a level has a document for each address with records in its blocks, with an entry for each rune of these records. Instead
 * of more than a page of entries, the level has the complete list of the address, and a document for each of these runes.
 *
 * **Holders**: a level has a document for each rune whose balances changed in its blocks, with an entry for each address. Instead of more
 * than a page of entries, the level has the complete list of the rune. But builds write the newest two levels again every few blocks. So if
 * a rune's list was already long in the levels below, its document in these two levels has only a mark, `null`. Answers then give the list
 * as it was after an older block (docs/files.md).
 *
 * **A complete list** has all balances above zero after the last block of the level, in the order of the API. Its own document has the
 * length of the list and the first entry of each page, and its pages are documents of their own. A reader joins the newest complete list
 * with the entries of the levels above, at most a page for each level.
 */
import { ArchiveError } from '../format/archiveError.ts';
import type { Archive } from '../format/archiveReader.ts';
import { type FoundDocument, findDocuments, findInLevels, keyOfAddress, orDamaged, pageKey } from '../format/documents.ts';
import { type DocumentLevel, lastRanked } from '../format/levels.ts';
import type { BalanceTables, ListTables } from '../format/listTables.ts';
import { shiftDecimals } from '../pages/decimalAmounts.ts';
import { renderEnvelope } from '../pages/envelope.ts';
import type { FurtherRequest } from '../pages/optionalEndpoints.ts';
import type { Window } from '../pages/parseQuery.ts';
import { isNamed, lookUpName, runeKey } from './etchings.ts';
import { type Entry, findWindow, type WholeList } from './rankedWindow.ts';

/** Returns the key of the document with a single balance of an address with a complete list. It sorts after the keys of the pages. */
export const pairKey = (key: string, ordinal: number): string => `${key} r${runeKey(ordinal)}`;

/** Balance of a rune in the list of an address. */
interface Balance extends Entry {
  readonly other: number;
  readonly id: string;
  readonly number: number;
  readonly name: string;
  readonly spacedName: string;
  readonly divisibility: number;
}

/** Parses an entry of an address's list. Throws for invalid text. */
export function parseBalance(text: string): Balance {
  const [other, id, number, name, spacedName, divisibility, units, before = '0'] = JSON.parse(text) as [
    ...[ordinal: number, id: string, number: number, name: string, spacedName: string, divisibility: number],
    ...[units: string, before?: string],
  ];
  return { other, id, number, name, spacedName, divisibility, units: BigInt(units), before: BigInt(before) };
}

/** The first value of a rune's document. */
export interface HoldersHead {
  readonly id: string;
  readonly number: number;
  readonly name: string;
  readonly divisibility: number;
  /** Number of holders after the level, minus the number before it. */
  readonly change: number;
  /** Length of the complete list. Null if there is a mark instead. Undefined if the level has only entries. */
  readonly total: number | null | undefined;
}

/** Parses the first value of a rune's document. Throws for invalid text. */
export function parseHoldersHead(text: string): HoldersHead {
  const [id, number, name, divisibility, change, total] = JSON.parse(text) as [string, number, string, number, number, (number | null)?];
  return { id, number, name, divisibility, change, total };
}

/** Balance of a holder in the list of a rune. */
interface Holder extends Entry {
  readonly other: string;
}

/** Parses an entry of a rune's list. Throws for invalid text. */
function parseHolder(text: string): Holder {
  const [other, units, before = '0'] = JSON.parse(text) as [string, string, string?];
  return { other, units: BigInt(units), before: BigInt(before) };
}

/** Compares addresses by their UTF-8 bytes. `<` compares UTF-16 units, which sorts characters above U+FFFF differently. */
export function compareAddresses(a: string, b: string): number {
  for (let i = 0; i < a.length && i < b.length; i += 1) {
    if (a[i] === b[i]) continue;
    const [x = 0, y = 0] = [a.charCodeAt(i), b.charCodeAt(i)];
    const [isHighX, isHighY] = [x >= 0xd800 && x < 0xe000, y >= 0xd800 && y < 0xe000];
    return isHighX === isHighY ? x - y : isHighX ? 1 : -1;
  }
  return a.length - b.length;
}

type Lists = ListTables & { readonly balances: BalanceTables };

/** Returns the response body; undefined for an unknown holder. Rejects with an ArchiveError for damaged files. */
export async function answerBalances(request: FurtherRequest, archive: Archive): Promise<string | undefined> {
  const { lists } = archive.root;
  if (lists?.balances === undefined) throw new ArchiveError('the root of the archive has no balances');
  const { rune, address, window } = request;
  const known = { ...lists, balances: lists.balances };
  if (rune === undefined) return window && balancesOf(address ?? '', window, known, archive);
  if (address !== undefined) return holderOf(rune, address, known, archive);
  return window && holdersOf(rune, window, known, archive);
}

/** The document of a list in a level. */
interface ListDocument<Item extends Entry> {
  readonly level: DocumentLevel;
  /** Length of the complete list. Undefined if the level has only entries that change the list of a lower level. */
  readonly total: number | undefined;
  /** The entries of the level or, with a complete list, the first entry of each page. */
  readonly items: readonly Item[];
}

/** Finds a window of the newest complete list, with the entries of the levels above it applied. `documents` ascend by height. */
function windowOf<Item extends Entry>(
  window: Window,
  key: string,
  documents: readonly ListDocument<Item>[],
  pageSize: number,
  [parse, compare]: readonly [parse: (text: string) => Item, compare: (a: Item, b: Item) => number],
  archive: Archive,
): ReturnType<typeof findWindow<Item>> {
  const at = documents.map(({ total }) => total !== undefined).lastIndexOf(true);
  const { level, total = 0, items: firsts = [] } = documents[at] ?? {};
  const read: WholeList<Item>['read'] = async (pages) => {
    const keys = pages.map((page) => pageKey(key, page));
    const found = level === undefined ? [] : await findDocuments(archive, level, keys);
    return found.map((values = []) => orDamaged(() => values.map(parse)));
  };
  const whole = at < 0 ? { total: 0, firsts: [], read } : { total, firsts, read };
  const entries = documents.slice(at + 1).map(({ items }) => items);
  return findWindow(window, whole, entries, pageSize, compare);
}

async function balancesOf(address: string, window: Window, { balances, page }: Lists, archive: Archive): Promise<string> {
  const key = keyOfAddress(address);
  if (key === undefined) return renderEnvelope(window, 0, []);
  const documents = (await findInLevels(archive, balances.addresses, key)).map(({ level, values }) =>
    orDamaged(() => {
      // The first value is the length of a complete list, or an entry.
      const first = JSON.parse(values[0] ?? '') as number | unknown[];
      return typeof first === 'number'
        ? { level, total: first, items: values.slice(1).map(parseBalance) }
        : { level, total: undefined, items: values.map(parseBalance) };
    }),
  );
  const form = [parseBalance, (a: Balance, b: Balance) => a.other - b.other] as const;
  const { total, items } = await windowOf(window, key, documents, page, form, archive);
  const results = items.map(
    ({ id, number, name, spacedName, divisibility, units }) =>
      `{"rune":${JSON.stringify({ id, number, name, spaced_name: spacedName })},"balance":"${shiftDecimals(units, divisibility)}","address":${ascii(address)}}`,
  );
  return renderEnvelope(window, total, results);
}

/** Renders a text as JSON with only ASCII characters, because hosts may encode other characters in different ways. */
const ascii = (text: string): string =>
  JSON.stringify(text).replace(/[^ -~]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);

async function holderOf(rune: string, address: string, { balances }: Lists, archive: Archive): Promise<string | undefined> {
  const key = keyOfAddress(address);
  const runes = await lookUpName(archive, rune);
  const ordinals = runes.map(({ ordinal }) => ordinal);
  if (key === undefined || ordinals.length === 0) return undefined;
  const starts = ordinals.map((ordinal) => `[${ordinal},`);
  // A level has all runes of an address in one document, or each rune in a document of its own. Tries the keys of both.
  const keys = [key, ...ordinals.map((ordinal) => pairKey(key, ordinal))];
  const levels = await Promise.all(balances.addresses.map((level) => findDocuments(archive, level, keys)));
  for (const documents of levels.reverse()) {
    for (const values of documents) {
      if (values === undefined) continue;
      // Only entries begin with a rune's ordinal, not the total of a complete list. The first entry of a page, which the list's document
      // also has, has the same balance as the rune's own document.
      const wanted = values.filter((value) => starts.some((start) => value.startsWith(start)));
      const balance = orDamaged(() => wanted.map(parseBalance)).find((one) => isNamed(one, rune));
      if (balance === undefined) continue;
      // Shows 0 for a balance below zero, which only wrong data has.
      const units = balance.units > 0n ? balance.units : 0n;
      return `{"balance":"${shiftDecimals(units, balance.divisibility)}","address":${ascii(address)}}`;
    }
  }
  return undefined;
}

interface RuneDocument extends ListDocument<Holder> {
  readonly head: HoldersHead;
}

async function holdersOf(rune: string, window: Window, lists: Lists, archive: Archive): Promise<string> {
  const { balances, page, tip } = lists;
  for (const { ordinal } of await lookUpName(archive, rune)) {
    const key = runeKey(ordinal);
    const found = await findInLevels(archive, balances.holders, key);
    const documents = found.map(runeDocument).filter(({ head }) => isNamed(head, rune));
    const divisibility = documents[0]?.head.divisibility;
    if (divisibility === undefined) continue;
    const { height, used } = exactDocuments(documents, page, lastRanked(tip, lists));
    const form = [parseHolder, (a: Holder, b: Holder) => compareAddresses(a.other, b.other)] as const;
    const { total, items } = await windowOf(window, key, used, page, form, archive);
    const results = items.map(
      ({ other, units }) => `{"balance":"${shiftDecimals(units, divisibility)}","address":${JSON.stringify(other)}}`,
    );
    const body = renderEnvelope(window, total, results);
    return height === undefined ? body : body.replace('{', `{"block_height":${height},`);
  }
  return renderEnvelope(window, 0, []);
}

const runeDocument = ({ level, values }: FoundDocument): RuneDocument =>
  orDamaged(() => {
    const head = parseHoldersHead(values[0] ?? '');
    return { level, head, total: head.total ?? undefined, items: values.slice(1).map(parseHolder) };
  });

/**
 * Returns the documents from which the answer is made: all, or with a mark those up to block `height`, after which the answer then gives
 * the state. This is block `ranked` if the list was already longer than a page there, so that the answer changes only about once a day.
 * Otherwise it is the last block below the level with the mark.
 */
function exactDocuments(documents: readonly RuneDocument[], page: number, ranked: number) {
  const mark = documents.find(({ head }) => head.total === null);
  if (mark === undefined) return { height: undefined, used: documents };
  const upTo = (height: number) => documents.filter(({ level }) => level.last <= height);
  const before = upTo(ranked).reduce((sum, { head }) => sum + head.change, 0);
  const height = before > page ? ranked : mark.level.first - 1;
  return { height, used: upTo(height) };
}
