/**
 * Answers requests for balances of addresses and holders of runes from an archive (archive/balanceTables.ts).
 */
import {
  type Balance,
  balanceStart,
  compareAddresses,
  type Entry,
  type Holder,
  type HoldersHead,
  pairKey,
  parseBalance,
  parseHolder,
  parseHoldersHead,
  parseTotal,
  runeKey,
} from '../archive/balanceTables.ts';
import { type FoundDocument, findDocuments, findInLevels, keyOfAddress, orDamaged, pageKey } from '../archive/documents.ts';
import { ArchiveError } from '../archive/error.ts';
import { type DocumentLevel, lastRanked } from '../archive/levels.ts';
import type { BalanceTables, ListTables } from '../archive/listTables.ts';
import { lookUpName } from '../archive/names.ts';
import type { Archive } from '../archive/reader.ts';
import { shiftDecimals } from './amounts.ts';
import { renderEnvelope } from './envelope.ts';
import { isNamed } from './etchings.ts';
import type { FurtherRequest } from './further.ts';
import { findWindow, type WholeList } from './joinedList.ts';
import type { Window } from './query.ts';

type Lists = ListTables & { readonly balances: BalanceTables };

/** Returns the body of an answer; undefined when there is no such holder. Rejects with an ArchiveError for damaged files. */
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
  /** The length of the whole list, if the document has one. */
  readonly total: number | undefined;
  /** The entries, or the first entry of each page. */
  readonly items: readonly Item[];
}

/** Finds a window of a list: that of the newest whole list, with the entries of the levels above. `documents` ascend by height. */
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
      const total = parseTotal(values[0] ?? '');
      return { level, total, items: (total === undefined ? values : values.slice(1)).map(parseBalance) };
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

/** Writes a text as JSON without characters beyond ASCII, which hosts may encode in different ways. */
const ascii = (text: string): string =>
  JSON.stringify(text).replace(/[^ -~]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);

async function holderOf(rune: string, address: string, { balances, names }: Lists, archive: Archive): Promise<string | undefined> {
  const key = keyOfAddress(address);
  const ordinals = (await lookUpName(archive, names, rune)).map(({ ordinal }) => ordinal);
  if (key === undefined || ordinals.length === 0) return undefined;
  const starts = ordinals.map(balanceStart);
  // A level has the runes of an address in its document, or each in its own.
  const keys = [key, ...ordinals.map((ordinal) => pairKey(key, ordinal))];
  const levels = await Promise.all(balances.addresses.map((level) => findDocuments(archive, level, keys)));
  for (const documents of levels.reverse()) {
    for (const values of documents) {
      if (values === undefined) continue;
      // The total of a whole list has no such start. The first entries of its pages are as good as their own documents.
      const wanted = values.filter((value) => starts.some((start) => value.startsWith(start)));
      const balance = orDamaged(() => wanted.map(parseBalance)).find((one) => isNamed(one, rune));
      if (balance === undefined) continue;
      // Only wrong data has balances below zero.
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
  const { balances, names, page, tip } = lists;
  for (const { ordinal } of await lookUpName(archive, names, rune)) {
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
 * Returns the documents to use: all, or those below a mark. Then `height` is the block after which they are exact. A list
 * that was long at the end of the ranked levels is as of there, so that it changes once a day.
 */
function exactDocuments(documents: readonly RuneDocument[], page: number, ranked: number) {
  const mark = documents.find(({ head }) => head.total === null);
  if (mark === undefined) return { height: undefined, used: documents };
  const upTo = (height: number) => documents.filter(({ level }) => level.last <= height);
  const before = upTo(ranked).reduce((sum, { head }) => sum + head.change, 0);
  const height = before > page ? ranked : mark.level.first - 1;
  return { height, used: upTo(height) };
}
