/**
 * Answers requests for balances of addresses and holders of runes from an archive (archive/balanceTables.ts).
 */
import {
  type BalanceTables,
  compareAddresses,
  type HoldersHead,
  holdersKey,
  parseHolder,
  parseHoldersHead,
  rankingPageKey,
} from '../archive/balanceTables.ts';
import { findDocuments, keyOfAddress } from '../archive/documents.ts';
import { ArchiveError } from '../archive/error.ts';
import { findOrdinals } from '../archive/etchings.ts';
import { lastRanked } from '../archive/levels.ts';
import type { Archive } from '../archive/reader.ts';
import { shiftDecimals } from './amounts.ts';
import { renderEnvelope } from './envelope.ts';
import type { FurtherRequest } from './further.ts';
import type { Window } from './query.ts';

/** Returns the body of an answer; undefined when there is no such holder. Rejects with an ArchiveError for damaged files. */
export async function answerBalances(request: FurtherRequest, archive: Archive): Promise<string | undefined> {
  const { balances } = archive.root.lists ?? {};
  if (balances === undefined) throw new ArchiveError('the root of the archive has no balances');
  const { rune, address, window } = request;
  if (rune === undefined) return window && balancesOf(address ?? '', window, balances, archive);
  if (address !== undefined) return holderOf(rune, address, balances, archive);
  return window && holdersOf(rune, window, balances, archive);
}

/** What an address has of a rune. */
interface Balance {
  readonly id: string;
  readonly number: number;
  readonly name: string;
  readonly spacedName: string;
  readonly divisibility: number;
  readonly units: bigint;
}

/** Returns the balances of an address by the id of the rune: of every rune that it has records of. */
async function readBalances(address: string, { changes }: BalanceTables, archive: Archive): Promise<Map<string, Balance>> {
  const found = new Map<string, Balance>();
  const key = keyOfAddress(address);
  if (key === undefined) return found;
  const levels = await Promise.all(changes.map((level) => findDocuments(archive, level, [key])));
  for (const value of levels.flat(2)) {
    if (value === undefined) continue;
    const [id, number, name, spacedName, divisibility, units] = orDamaged(
      () => JSON.parse(value) as [string, number, string, string, number, string],
    );
    found.set(id, { id, number, name, spacedName, divisibility, units: (found.get(id)?.units ?? 0n) + BigInt(units) });
  }
  return found;
}

async function balancesOf(address: string, window: Window, tables: BalanceTables, archive: Archive): Promise<string> {
  const all = [...(await readBalances(address, tables, archive)).values()].filter(({ units }) => units > 0n);
  const placed = all.map((balance) => ({ ...balance, place: balance.id.split(':').map(Number) }));
  placed.sort((a, b) => {
    if (a.units !== b.units) return a.units > b.units ? -1 : 1;
    return (a.place[0] ?? 0) - (b.place[0] ?? 0) || (a.place[1] ?? 0) - (b.place[1] ?? 0);
  });
  const results = placed
    .slice(window.offset, window.offset + window.limit)
    .map(
      ({ id, number, name, spacedName, divisibility, units }) =>
        `{"rune":${JSON.stringify({ id, number, name, spaced_name: spacedName })},"balance":"${shiftDecimals(units, divisibility)}","address":${ascii(address)}}`,
    );
  return renderEnvelope(window, all.length, results);
}

/** Writes a text as JSON without characters beyond ASCII, which hosts may encode in different ways. */
const ascii = (text: string): string =>
  JSON.stringify(text).replace(/[^ -~]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);

async function holderOf(rune: string, address: string, tables: BalanceTables, archive: Archive): Promise<string | undefined> {
  for (const balance of (await readBalances(address, tables, archive)).values()) {
    if (!isNamed(balance, rune)) continue;
    // Only wrong data has balances below zero.
    const units = balance.units > 0n ? balance.units : 0n;
    return `{"balance":"${shiftDecimals(units, balance.divisibility)}","address":${ascii(address)}}`;
  }
  return undefined;
}

const isNamed = ({ id, number, name }: Pick<Balance, 'id' | 'number' | 'name'>, rune: string): boolean =>
  id === rune || String(number) === rune || name === rune;

/** The documents of a rune in a level. */
interface RuneDocuments {
  readonly head: HoldersHead;
  readonly isRanking: boolean;
  /** Values after the head. */
  readonly holders: readonly string[];
  /** The pages of the window, in order; undefined where the ranking has none. */
  readonly pages: readonly (readonly string[] | undefined)[];
}

async function holdersOf(rune: string, window: Window, tables: BalanceTables, archive: Archive): Promise<string> {
  const { etchings, lists } = archive.root;
  if (etchings === undefined) throw new ArchiveError('the root of the archive has no etchings');
  const ordinals = await findOrdinals(archive, etchings, rune);
  const ranked = lastRanked(lists?.tip ?? -1);
  const found = await Promise.all(ordinals.map((ordinal) => readRune(ordinal, window, tables, ranked, archive)));
  // Other runes may have the same key.
  const documents = found.map((all) => all.filter(({ head }) => isNamed(head, rune))).find((all) => all.length > 0) ?? [];
  const rankings = documents.filter(({ isRanking }) => isRanking);
  const ranking = rankings.at(-1);
  if (ranking?.head.total !== undefined) return rankedWindow(ranking, ranking.head.total, window, tables, ranked);
  const units = new Map<string, bigint>();
  for (const { holders } of documents.filter((one) => !one.isRanking || one === ranking)) {
    for (const [address, change] of orDamaged(() => holders.map(parseHolder))) units.set(address, (units.get(address) ?? 0n) + change);
  }
  const all = [...units].filter(([, balance]) => balance > 0n);
  all.sort(([a, x], [b, y]) => (x === y ? compareAddresses(a, b) : x > y ? -1 : 1));
  const divisibility = documents[0]?.head.divisibility ?? 0;
  const results = all.slice(window.offset, window.offset + window.limit).map((holder) => renderHolder(holder, divisibility));
  return renderEnvelope(window, all.length, results);
}

/** Reads the documents of a rune from all levels, ascending by height, and the pages that the window may need. */
async function readRune(
  ordinal: number,
  { offset, limit }: Window,
  { holders, page }: BalanceTables,
  ranked: number,
  archive: Archive,
): Promise<RuneDocuments[]> {
  const first = Math.floor(offset / page);
  const count = Math.ceil((offset + limit) / page) - first;
  const pages = Array.from({ length: count }, (_, i) => rankingPageKey(ordinal, first + i));
  const read = await Promise.all(
    holders.map(async (level): Promise<RuneDocuments[]> => {
      const isRanking = level.last <= ranked;
      const [document, ...found] = await findDocuments(archive, level, [holdersKey(ordinal), ...(isRanking ? pages : [])]);
      if (document === undefined) return [];
      return [{ head: orDamaged(() => parseHoldersHead(document[0] ?? '')), isRanking, holders: document.slice(1), pages: found }];
    }),
  );
  return read.flat();
}

/** Makes a window of a ranking with pages. The list begins with the block after which it is exact. */
function rankedWindow({ head, pages }: RuneDocuments, total: number, window: Window, { page }: BalanceTables, ranked: number): string {
  const { offset, limit } = window;
  const end = Math.min(offset + limit, total);
  const first = Math.floor(offset / page);
  const results: string[] = [];
  for (let at = offset; at < end; at += 1) {
    const value = pages[Math.floor(at / page) - first]?.[at % page];
    if (value === undefined) throw new ArchiveError(`the ranking of ${head.id} is not complete`);
    results.push(
      renderHolder(
        orDamaged(() => parseHolder(value)),
        head.divisibility,
      ),
    );
  }
  return renderEnvelope(window, total, results).replace('{', `{"block_height":${ranked},`);
}

const renderHolder = ([address, units]: readonly [string, bigint], divisibility: number): string =>
  `{"balance":"${shiftDecimals(units, divisibility)}","address":${JSON.stringify(address)}}`;

/** Parses a value. Checksums were compared before, so only another program can have made one that cannot be parsed. */
function orDamaged<Value>(parse: () => Value): Value {
  try {
    return parse();
  } catch {
    throw new ArchiveError('a document of the archive is damaged');
  }
}
