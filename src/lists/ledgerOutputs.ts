/** Parses the document of an unspent output. Returns only the values that the ledger needs (ledgerText.ts). */
import { type OutputPlace, parseOutput } from './unspentOutputs.ts';

export interface LedgerOutput {
  /** `txid:vout`. */
  readonly output: string;
  readonly place: OutputPlace;
  readonly address: string | undefined;
  /** Rune ids, and balances in smallest units. */
  readonly runes: readonly (readonly [id: string, units: string])[];
}

/**
 * Parses the document of an outpoint. Returns undefined if the output is spent. `line` has the values of the document,
 * with a tab before each. A ledger has millions of outputs and needs only some of the fields. So this function finds
 * the fields by their separators, in half the time of parsing all JSON. If the line has an unexpected form, parses the
 * result of `valuesOf` instead, and throws if these values are invalid.
 */
export function parseLedgerOutput(output: string, line: string, valuesOf: () => readonly string[]): LedgerOutput | undefined {
  const plain = parsePlain(output, line);
  if (plain !== undefined) return plain;
  const parsed = parseOutput(output, valuesOf());
  return parsed && { ...parsed, runes: parsed.runes.map(([id, , , , , units]) => [id, String(BigInt(units))]) };
}

/** Parses a line whose numbers are digits and whose texts have no escapes. Returns undefined for other lines. */
function parsePlain(output: string, line: string): LedgerOutput | undefined {
  const end = endOfValue(line, 1);
  const heightEnd = line.indexOf(',', 2);
  const hashEnd = heightEnd + 66;
  const txEnd = line.indexOf(',', hashEnd + 2);
  const timeEnd = line.indexOf(',', txEnd + 1);
  const isList = line.startsWith('[', 1) && line.startsWith(']', end - 1) && timeEnd > 0 && timeEnd < end;
  if (!isList || !line.startsWith('"', heightEnd + 1) || !line.startsWith('",', hashEnd)) return undefined;
  const [height, txIndex, timestamp] = [natural(line, 2, heightEnd), natural(line, hashEnd + 2, txEnd), natural(line, txEnd + 1, timeEnd)];
  const hash = line.slice(heightEnd + 2, hashEnd);
  const address = line.slice(timeEnd + 1, end - 1);
  const text = address.slice(1, -1);
  const isPlace = height !== undefined && txIndex !== undefined && timestamp !== undefined;
  if (!isPlace || !isWord(hash) || (address !== 'null' && !(address === `"${text}"` && isWord(text)))) return undefined;
  const runes: (readonly [string, string])[] = [];
  for (let at = end + 1; at < line.length; ) {
    const to = endOfValue(line, at);
    const id = line.slice(at + 2, line.indexOf('",', at + 2));
    const unitsAt = line.lastIndexOf('"', to - 3) + 1;
    const units = line.slice(unitsAt, to - 2);
    const isRune = line.startsWith('["', at) && line.startsWith(',"', unitsAt - 2) && line.startsWith('"]', to - 2);
    if (!isRune || unitsAt <= at + 2 + id.length || !isWord(id) || !areDigits(units, 0, units.length)) return undefined;
    runes.push([id, units]);
    at = to + 1;
  }
  return {
    output,
    place: [height, hash, txIndex, timestamp],
    address: address === 'null' ? undefined : text,
    runes,
  };
}

function endOfValue(line: string, at: number): number {
  const end = line.indexOf('\t', at);
  return end < 0 ? line.length : end;
}

/** Code of the character 0. */
const ZERO = 48;

/** True if the characters are the decimal digits of an integer, without leading zeros. */
function areDigits(text: string, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if (!(text.charCodeAt(i) >= ZERO && text.charCodeAt(i) <= ZERO + 9)) return false;
  return to - from === 1 || (to > from && text.charCodeAt(from) !== ZERO);
}

/** Parses an integer. Returns undefined for other characters, and for more digits than a number represents exactly. */
function natural(text: string, from: number, to: number): number | undefined {
  if (to - from > 15 || !areDigits(text, from, to)) return undefined;
  let value = 0;
  for (let i = from; i < to; i++) value = 10 * value + text.charCodeAt(i) - ZERO;
  return value;
}

/** True for text of printable ASCII characters that JSON does not escape. */
function isWord(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x21 || code > 0x7e || code === 0x22 || code === 0x5c) return false;
  }
  return true;
}
