/**
 * Answers requests for unspent outputs with runes from an archive (archive/outputTables.ts). Every answer names the
 * highest block of the mirror, because a wallet may ask for a newer output.
 */
import { damaged, type FoundDocument, findDocuments, findInLevels, keyOfAddress, orDamaged, pageKey } from '../archive/documents.ts';
import { ArchiveError } from '../archive/error.ts';
import type { DocumentLevel } from '../archive/levels.ts';
import type { OutputTables } from '../archive/listTables.ts';
import {
  type AddressDocument,
  outpointOf,
  parseAddress,
  parseAddressOutput,
  parseOutput,
  type Removals,
  removalKey,
  type UnspentOutput,
} from '../archive/outputTables.ts';
import { overlapping } from '../archive/overlap.ts';
import type { Archive } from '../archive/reader.ts';
import { shiftDecimals } from './amounts.ts';
import type { FurtherRequest } from './further.ts';
import { spellHex } from './ids.ts';
import type { Window } from './query.ts';
import type { Dialect } from './site.ts';

/** Returns the body of an answer. Rejects with an ArchiveError for damaged files. */
export async function answerOutputs({ output, address, window }: FurtherRequest, dialect: Dialect, archive: Archive): Promise<string> {
  const { outputs: tables, tip = 0, page = 1 } = archive.root.lists ?? {};
  if (tables === undefined) throw new ArchiveError('the root of the archive has no outputs');
  const asOf = `"block_height":${tip},"block_hash":"${spellHex(tables.tipHash, dialect)}"`;
  if (output !== undefined) {
    const found = await findOutput(output, tables, archive);
    return `{${asOf},${found === undefined ? `"output":"${spellOutput(output, dialect)}","runes":[]` : render(found, dialect)}}`;
  }
  const { limit = 0, offset = 0 } = window ?? {};
  const { total, outputs } = await outputsOf(address ?? '', { limit, offset }, tables, page, archive);
  const results = outputs.map((one) => `{${render(one, dialect)}}`);
  return `{${asOf},"limit":${limit},"offset":${offset},"total":${total},"results":[${results.join(',')}]}`;
}

async function findOutput(output: string, { outputs }: OutputTables, archive: Archive): Promise<UnspentOutput | undefined> {
  const newest = (await findInLevels(archive, outputs, output)).at(-1);
  return newest && orDamaged(() => parseOutput(output, newest.values));
}

/** The list of an address in a level. */
interface LevelList extends AddressDocument {
  readonly level: DocumentLevel;
  /** Number of unspent outputs in each page. */
  readonly counts: number[];
}

/** A page of a list, and the number of its unspent outputs. */
interface LevelPage {
  readonly list: LevelList;
  readonly page: number;
  readonly count: number;
}

/**
 * Reads unspent outputs of an address in the order of the API: the lists of all levels, the newest level first, without
 * the outputs that newer levels remove. The documents of the address tell which pages the window needs.
 */
async function outputsOf(
  address: string,
  { limit, offset }: Window,
  { addresses }: OutputTables,
  page: number,
  archive: Archive,
): Promise<{ total: number; outputs: UnspentOutput[] }> {
  const key = keyOfAddress(address);
  if (key === undefined) return { total: 0, outputs: [] };
  const lists = (await findInLevels(archive, addresses, key)).map((found) => orDamaged(() => listOf(found, page))).reverse();
  const removed = new Set(lists.flatMap((list) => list.removed));
  for (const list of lists) {
    if (list.outputs !== undefined) list.counts[0] = list.outputs.filter((value) => !removed.has(outpointOf(value))).length;
    for (const newer of lists) subtract(newer.removals, list);
  }
  const pages = lists.flatMap((list) => list.counts.map((count, number) => ({ list, page: number, count })));
  if (!pages.every(({ count }) => count >= 0)) throw damaged();
  const total = pages.reduce((sum, { count }) => sum + count, 0);
  const wanted = overlapping(pages, ({ count }) => count, offset, offset + limit);
  const outputs = await readPages(
    key,
    wanted.map(({ item }) => item),
    lists,
    removed,
    archive,
  );
  const from = offset - (wanted[0]?.before ?? 0);
  const values = outputs.flat().slice(from, from + limit);
  return { total, outputs: values.map((value) => orDamaged(() => parseAddressOutput(value, address))) };
}

function listOf({ level, values }: FoundDocument, page: number): LevelList {
  const document = parseAddress(values, page);
  const counts = Array.from({ length: Math.ceil(document.made / page) }, (_, i) => Math.min(document.made - i * page, page));
  return { ...document, level, counts };
}

/** Subtracts the outputs that a newer level removes from the counts of a list's pages. */
function subtract(removals: readonly Removals[], { level, counts }: LevelList): void {
  for (const [first, ...pages] of removals) {
    if (first !== level.first) continue;
    for (let i = 0; i < pages.length; i += 2) {
      const number = pages[i] ?? 0;
      counts[number] = (counts[number] ?? Number.NaN) - (pages[i + 1] ?? 0);
    }
  }
}

/** Reads pages and omits removed outputs. Reads all documents of a level at the same time. */
async function readPages(
  key: string,
  wanted: readonly LevelPage[],
  lists: readonly LevelList[],
  removed: ReadonlySet<string>,
  archive: Archive,
): Promise<string[][]> {
  const keys = new Map(lists.map(({ level }) => [level, new Set<string>()]));
  for (const { list, page } of wanted) {
    if (list.outputs === undefined) keys.get(list.level)?.add(pageKey(key, page));
    for (const newer of lists) if (removes(newer, list, page)) keys.get(newer.level)?.add(removalKey(key, list.level.first, page));
  }
  const found = new Map<string, readonly string[]>();
  const read = [...keys].map(async ([level, sought]) => {
    const documents = await findDocuments(archive, level, [...sought]);
    for (const [i, one] of [...sought].entries()) found.set(`${level.first} ${one}`, documents[i] ?? []);
  });
  await Promise.all(read);
  return wanted.map(({ list, page, count }) => {
    const values = list.outputs ?? found.get(`${list.level.first} ${pageKey(key, page)}`) ?? [];
    const gone = new Set(lists.flatMap(({ level }) => found.get(`${level.first} ${removalKey(key, list.level.first, page)}`) ?? []));
    const left = values.filter((value) => !gone.has(outpointOf(value)) && !removed.has(outpointOf(value)));
    if (left.length !== count) throw damaged();
    return left;
  });
}

const removes = ({ removals }: LevelList, { level }: LevelList, page: number): boolean =>
  removals.some(([first, ...pages]) => first === level.first && pages.some((number, i) => i % 2 === 0 && number === page));

function partsOf(output: string): [txId: string, vout: number] {
  const at = output.indexOf(':');
  return [output.slice(0, at), Number(output.slice(at + 1))];
}

/** Renders an output as JSON, without the outer braces. */
function render({ output, place, address, runes }: UnspentOutput, dialect: Dialect): string {
  const [height, hash, txIndex, timestamp] = place;
  const hex = (text: string) => `"${spellHex(text, dialect)}"`;
  const held = runes.map(
    ([id, number, name, spacedName, divisibility, units]) =>
      `{"rune":${JSON.stringify({ id, number, name, spaced_name: spacedName })},"balance":"${shiftDecimals(BigInt(units), divisibility)}"}`,
  );
  return (
    `"output":"${spellOutput(output, dialect)}",${address === undefined ? '' : `"address":${JSON.stringify(address)},`}` +
    `"location":{"block_hash":${hex(hash)},"block_height":${height},"tx_id":${hex(partsOf(output)[0])},"tx_index":${txIndex},"timestamp":${timestamp}},` +
    `"runes":[${held.join(',')}]`
  );
}

const spellOutput = (output: string, dialect: Dialect): string => spellHex(output, dialect);
