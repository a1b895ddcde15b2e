/**
 * Etchings, as documents (format/documents.ts). The key is the ordinal of a rune, and the only value has the facts of the etching, from
 * which answers are rendered. A level (format/levels.ts) has the etchings that changed in its blocks, as they are after its last block. So
 * if several levels have an etching, the document of the newest level counts.
 *
 * All values of an etching except the supply come from the runes table. All values follow the rules of ord and of the recorded server
 * (docs/api.md, "Etchings").
 */
import { ArchiveError } from '../format/archiveError.ts';
import type { Archive } from '../format/archiveReader.ts';
import { findDocuments, orDamaged } from '../format/documents.ts';
import type { EtchingTables } from '../format/listTables.ts';
import { shiftDecimals } from '../pages/decimalAmounts.ts';
import { renderEnvelope } from '../pages/envelope.ts';
import type { Dialect } from '../pages/mirrorOptions.ts';
import type { FurtherRequest } from '../pages/optionalEndpoints.ts';
import { spellHex } from '../pages/parseIds.ts';
import { isMintOpen, mintWindow } from '../runes/mintTerms.ts';
import type { RuneNames } from '../runes/name.ts';
import { lookUpName } from './names.ts';

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
  const { etchings, names = [], tip = -1 } = archive.root.lists ?? {};
  const render = (etching: Etching) => orDamaged(() => renderEtching(etching, dialect, tip));
  if (etchings === undefined) throw new ArchiveError('the root of the archive has no etchings');
  if (window !== undefined) {
    // The list begins with the newest etching.
    const end = Math.max(etchings.total - window.offset, 0);
    const found = await readEtchings(archive, etchings, Math.max(end - window.limit, 0), end);
    return renderEnvelope(window, etchings.total, found.reverse().map(render));
  }
  for (const { ordinal } of await lookUpName(archive, names, rune)) {
    const [etching] = await readEtchings(archive, etchings, ordinal, ordinal + 1);
    if (etching !== undefined && isNamed(etching, rune)) return render(etching);
  }
  return undefined;
}

/** True when `rune` is the id, number or name of this etching. */
export const isNamed = (
  { id, number, name }: { readonly id?: unknown; readonly number?: unknown; readonly name?: unknown },
  rune: string,
) => id === rune || String(number) === rune || name === rune;

/** The mints and burns of a rune up to a block. Amounts are in smallest units. */
interface Counts {
  readonly mints: number;
  readonly burns: number;
  readonly minted: bigint;
  readonly burned: bigint;
}

/** A term of minting: an integer of up to 128 bits in decimal digits; null if the rune does not have the term. */
type Term = string | null;

interface Etching extends RuneNames {
  readonly divisibility: number;
  readonly symbol: string;
  readonly turbo: boolean;
  /** In smallest units. */
  readonly terms_amount: Term;
  /** Maximum number of mints. */
  readonly terms_cap: Term;
  readonly terms_height_start: Term;
  readonly terms_height_end: Term;
  readonly terms_offset_start: Term;
  readonly terms_offset_end: Term;
  /** In smallest units, in decimal digits. */
  readonly premine: string;
  /** 64 hex digits without prefix, like `tx_id`. */
  readonly block_hash: string;
  readonly block_height: number;
  readonly tx_id: string;
  readonly tx_index: number;
  /** Seconds since 1970. */
  readonly timestamp: number;
  /** Undefined when the mirror does not know all mints and burns. */
  readonly counts: Counts | undefined;
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
    `"height_start":${etching.terms_height_start ?? 'null'}`,
    `"height_end":${etching.terms_height_end ?? 'null'}`,
    `"offset_start":${etching.terms_offset_start ?? 'null'}`,
    `"offset_end":${etching.terms_offset_end ?? 'null'}`,
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

/**
 * The recorded server (docs/api.md) divides to 20 decimals, and then rounds the percentage to 4 decimals. Both steps round halves up. Both
 * steps are repeated here, so that answers have the same digits.
 */
const PLACES = 10n ** 20n;
const SHOWN = 10n ** 14n;

function percentageOf(mints: bigint, cap: bigint): string {
  const share = cap === 0n ? 0n : (2n * mints * PLACES + cap) / (2n * cap);
  return shiftDecimals((share + SHOWN / 2n) / SHOWN, 4);
}
