/**
 * Runes of an archive, in three kinds of documents (format/documents.ts).
 *
 * **Etchings**. The key is the ordinal of a rune, and the only value has the facts of the etching. A level (format/levels.ts) has the
 * etchings that changed in its blocks, as they are after its last block. So the document of the newest level counts. All values except the
 * supply come from the runes table. All follow the rules of ord and of the recorded server (docs/api.md, "Etchings").
 *
 * **Names** find a rune by its id (`840000:3`), its number, or its name in upper case without spacers, which is the key of a list
 * (format/pagedList.ts). An id, a number and a name are never equal. The root has the directories, so a look-up takes one round of
 * requests.
 *
 * **All names**, for clients that load them all: an eighth of the bytes of the etchings. A level has a document for each rune that was
 * etched in its blocks. Names never change, so old levels do not change either.
 */
import { ArchiveError } from '../format/archiveError.ts';
import type { Archive } from '../format/archiveReader.ts';
import { findDocuments, orDamaged, placeMembers } from '../format/documents.ts';
import type { EtchingTables } from '../format/listTables.ts';
import { findPagedList } from '../format/pagedList.ts';
import { shiftDecimals } from '../pages/decimalAmounts.ts';
import { renderEnvelope } from '../pages/envelope.ts';
import type { Dialect } from '../pages/mirrorOptions.ts';
import type { FurtherRequest } from '../pages/optionalEndpoints.ts';
import { spellHex } from '../pages/parseIds.ts';
import { isMintOpen, mintWindow } from '../runes/mintTerms.ts';
import type { RuneNames } from '../runes/name.ts';

/** Returns the key of a rune's document: 8 digits. The ordinal is the rune's position in the order of etchings, from 0. */
export const runeKey = (ordinal: number): string => String(ordinal).padStart(8, '0');

/** Reads the etchings with ordinals `from` to `to - 1`. Rejects with an ArchiveError for a damaged file. */
export async function readEtchings(archive: Archive, { levels }: EtchingTables, from: number, to: number): Promise<Etching[]> {
  const keys = Array.from({ length: to - from }, (_, i) => runeKey(from + i));
  const found = await Promise.all(levels.map((level) => findDocuments(archive, level, keys)));
  return keys.map((key, i) => {
    const [facts] = found.flatMap((documents) => documents[i] ?? []).slice(-1);
    if (facts === undefined) throw new ArchiveError(`the archive does not have the etching ${key}`);
    return orDamaged(() => parseFacts(facts));
  });
}

/** Returns the response body; undefined for an unknown rune. Rejects with an ArchiveError for damaged files. */
export async function answerEtchings(
  { rune = '', window }: FurtherRequest,
  dialect: Dialect,
  archive: Archive,
): Promise<string | undefined> {
  const { etchings, tip = -1 } = archive.root.lists ?? {};
  const render = (etching: Etching) => orDamaged(() => renderEtching(etching, dialect, tip));
  if (etchings === undefined) throw new ArchiveError('the root of the archive has no etchings');
  if (window !== undefined) {
    // The list begins with the newest etching.
    const end = Math.max(etchings.total - window.offset, 0);
    const found = await readEtchings(archive, etchings, Math.max(end - window.limit, 0), end);
    return renderEnvelope(window, etchings.total, found.reverse().map(render));
  }
  for (const { ordinal } of await lookUpName(archive, rune)) {
    const [etching] = await readEtchings(archive, etchings, ordinal, ordinal + 1);
    if (etching !== undefined && isNamed(etching, rune)) return render(etching);
  }
  return undefined;
}

/** True when `rune` is the id, number or name of this rune. */
export const isNamed = ({ id, number, name }: Omit<RuneNames, 'spaced_name'>, rune: string): boolean =>
  id === rune || String(number) === rune || name === rune;

/** A term of minting: an integer of up to 128 bits in decimal digits; null without the term. The unit of an amount is the smallest. */
type Term = string | null;
type TermName = `terms_${'amount' | 'cap' | `${'height' | 'offset'}_${'start' | 'end'}`}`;

interface Etching extends RuneNames, Readonly<Record<TermName, Term>> {
  readonly divisibility: number;
  readonly symbol: string;
  readonly turbo: boolean;
  /** In smallest units, in decimal digits. */
  readonly premine: string;
  /** 64 hex digits without prefix, like `tx_id`. */
  readonly block_hash: string;
  readonly block_height: number;
  readonly tx_id: string;
  readonly tx_index: number;
  /** Seconds since 1970. */
  readonly timestamp: number;
  /** Mints and burns up to a block, with amounts in smallest units. Undefined when the mirror does not know all of them. */
  readonly counts: { readonly mints: number; readonly burns: number; readonly minted: bigint; readonly burned: bigint } | undefined;
}

/** The facts of an etching, as etchings.sql.ts stores them. */
type Facts = readonly [
  ...[id: string, number: number, name: string, spacedName: string, divisibility: number, symbol: string, turbo: boolean],
  ...[terms: readonly [amount: Term, cap: Term, heightStart: Term, heightEnd: Term, offsetStart: Term, offsetEnd: Term]],
  ...[premine: string, blockHash: string, blockHeight: number, txId: string, txIndex: number, timestamp: number],
  counts: readonly [mints: number, burns: number, minted: string, burned: string] | null,
];

/** Parses the facts of an etching. Throws for text that is not a list. Does not check the facts. */
export function parseFacts(text: string): Etching {
  const [id, number, name, spaced_name, divisibility, symbol, turbo, terms, premine, ...others] = JSON.parse(text) as Facts;
  const [terms_amount, terms_cap, terms_height_start, terms_height_end, terms_offset_start, terms_offset_end] = terms;
  const [block_hash, block_height, tx_id, tx_index, timestamp, counted] = others;
  const counts = counted && { mints: counted[0], burns: counted[1], minted: BigInt(counted[2]), burned: BigInt(counted[3]) };
  return {
    ...{ id, number, name, spaced_name, divisibility, symbol, turbo, premine },
    ...{ terms_amount, terms_cap, terms_height_start, terms_height_end, terms_offset_start, terms_offset_end },
    ...{ block_hash, block_height, tx_id, tx_index, timestamp, counts: counts ?? undefined },
  };
}

/** Renders an etching as compact JSON, as it is after block `tip`. */
function renderEtching(etching: Etching, dialect: Dialect, tip: number): string {
  const { divisibility, turbo, block_height, tx_index, timestamp } = etching;
  const hex = (text: string) => `"${spellHex(text, dialect)}"`;
  const text = JSON.stringify;
  const amount = (term: Term, decimals = divisibility) => (term === null ? 'null' : `"${shiftDecimals(BigInt(term), decimals)}"`);
  const terms = [
    `"amount":${amount(etching.terms_amount)}`,
    // A cap is a number of mints. But clients of the recorded server (docs/api.md) expect it with the decimals of an amount.
    `"cap":${amount(etching.terms_cap, dialect === 'hiro' ? divisibility : 0)}`,
    ...(['height_start', 'height_end', 'offset_start', 'offset_end'] as const).map(
      (name) => `"${name}":${etching[`terms_${name}`] ?? 'null'}`,
    ),
  ];
  return (
    `{"id":${text(etching.id)},"name":${text(etching.name)},"spaced_name":${text(etching.spaced_name)},"number":${etching.number},` +
    `"divisibility":${divisibility},"symbol":${text(etching.symbol)},"turbo":${turbo},` +
    `"mint_terms":{${terms.join(',')}},"supply":{${supplyOf(etching, tip)}},` +
    `"location":{"block_hash":${hex(etching.block_hash)},"block_height":${block_height},"tx_id":${hex(etching.tx_id)},` +
    `"tx_index":${tx_index},"timestamp":${timestamp}}}`
  );
}

function supplyOf(etching: Etching, tip: number): string {
  const { counts, divisibility } = etching;
  const amount = (units: bigint) => `"${shiftDecimals(units, divisibility)}"`;
  const premine = BigInt(etching.premine);
  if (counts === undefined) return `"premine":${amount(premine)}`;
  const { block_height, terms_height_start, terms_offset_start, terms_height_end, terms_offset_end } = etching;
  const mint = mintWindow(block_height, [terms_height_start, terms_offset_start], [terms_height_end, terms_offset_end]);
  return [
    `"current":${amount(premine + counts.minted - counts.burned)}`,
    `"minted":${amount(counts.minted)}`,
    `"total_mints":"${counts.mints}"`,
    `"mint_percentage":"${percentageOf(BigInt(counts.mints), BigInt(etching.terms_cap ?? 0))}"`,
    `"mintable":${isMintOpen(mint, tip + 1, counts.mints, etching.terms_cap)}`,
    `"burned":${amount(counts.burned)}`,
    `"total_burns":"${counts.burns}"`,
    `"premine":${amount(premine)}`,
  ].join(',');
}

/** The recorded server (docs/api.md) divides to 20 decimals, then rounds the percentage to 4. Both steps round halves up, as here. */
const PLACES = 10n ** 20n;
const SHOWN = 10n ** 14n;

function percentageOf(mints: bigint, cap: bigint): string {
  const share = cap === 0n ? 0n : (2n * mints * PLACES + cap) / (2n * cap);
  return shiftDecimals((share + SHOWN / 2n) / SHOWN, 4);
}

/** A rune that has the id, number or name that was looked up. */
export interface RuneEntry {
  /** Always 0 in a mirror without etchings. */
  readonly ordinal: number;
  readonly id: string;
}

/** Finds the runes that have an id, number or name. Only wrong data has several. */
export async function lookUpName(archive: Archive, name: string): Promise<RuneEntry[]> {
  const list = await findPagedList(archive, archive.root.lists?.names ?? [], name, 0, parseRunes);
  // Returns each rune once. In a mirror without etchings, each level with records of a rune has an entry for the rune.
  const runes = new Map((await list.read(0, list.total)).map((rune) => [rune.id, rune]));
  return [...runes.values()];
}

const parseRunes = (values: readonly string[]): RuneEntry[] =>
  orDamaged(() =>
    values.map((value) => {
      const [ordinal, id] = JSON.parse(value) as readonly [number, string];
      if (!Number.isSafeInteger(ordinal) || ordinal < 0 || typeof id !== 'string') throw new Error('not a rune');
      return { ordinal, id };
    }),
  );

export interface RuneName extends RuneNames {
  readonly divisibility: number;
  readonly symbol: string;
}

/** A rune in a document. `name` is omitted if it is the spaced name without spacers, as in all correct data. */
type Stored = readonly [id: string, number: number, spacedName: string, divisibility: number, symbol: string, name?: string];

/**
 * Reads the files of all names, some megabytes, before it returns, because a new build may remove them. The returned function yields all
 * runes, oldest first, some thousand at a time. Both reject with an ArchiveError for a damaged file.
 */
export async function openRuneNames(archive: Archive): Promise<() => AsyncGenerator<readonly RuneName[], void, undefined>> {
  const files = archive.root.lists?.etchings?.runes?.flatMap((level) => level.files);
  if (files === undefined) throw new ArchiveError('the root of the archive has no names of runes');
  const contents = await Promise.all(files.map(({ file, bytes }) => archive.part(file, bytes, 0, bytes)));
  return async function* () {
    for (const [i, file] of files.entries()) {
      const content = contents[i] ?? new Uint8Array();
      const members = placeMembers(await archive.page(content.subarray(file.bytes - file.directory)), file);
      for (const { offset, length } of members) {
        const lines = (await archive.page(content.subarray(offset, offset + length))).trimEnd().split('\n');
        yield orDamaged(() => lines.map((line) => nameOf(JSON.parse(line.slice(line.indexOf('\t') + 1)) as Stored)));
      }
    }
  };
}

function nameOf([id, number, spaced_name, divisibility, symbol, name = spaced_name.replaceAll('•', '')]: Stored): RuneName {
  return { id, number, name, spaced_name, divisibility, symbol };
}
