/** Converts names of runes to numbers in base 26 (A = 0, AA = 26), and back. Computes which names a height allows. */
import type { Network } from './networks.ts';

/** Identifiers of a rune, which API answers and rows contain. */
export interface RuneNames {
  readonly id: string;
  readonly number: number;
  readonly name: string;
  readonly spaced_name: string;
}

/** First reserved name. Etchings without a name get reserved names, which have 27 letters or more. */
export const FIRST_RESERVED = 6402364363415443603228541259936211926n;

/** Number of blocks until names with one letter less may be etched: a twelfth of the 210,000 blocks between halvings. */
const INTERVAL = 17_500;
const LONGEST = 12;

/** Smallest name of n + 1 letters, by n from 0 to 12. */
const FIRST_OF_LENGTH = Array.from({ length: LONGEST + 1 }, (_, n) => (26n ** BigInt(n + 1) - 26n) / 25n);

/** Converts a name from a number to letters. */
export function nameText(name: bigint): string {
  let text = '';
  for (let rest = name + 1n; rest > 0n; rest = (rest - 1n) / 26n) text = String.fromCharCode(65 + Number((rest - 1n) % 26n)) + text;
  return text;
}

/** Converts a name from letters A to Z to a number. */
export function nameNumber(text: string): bigint {
  let name = -1n;
  for (const letter of text) name = (name + 1n) * 26n + BigInt(letter.charCodeAt(0) - 65);
  return name;
}

/** Inserts • after each letter whose bit is set in `spacers`, except the last letter. */
export function spacedName(text: string, spacers: number): string {
  let spaced = '';
  for (let i = 0; i < text.length; i++) spaced += text[i] + (i < text.length - 1 && spacers & (1 << i) ? '•' : '');
  return spaced;
}

/** Returns the smallest name that may be etched: at first 13 letters long, then step by step shorter. */
export function minimumName(height: number, network: Network): bigint {
  const progress = height + 1 - network.firstHeight;
  if (progress < 0) return FIRST_OF_LENGTH[LONGEST] ?? 0n;
  if (progress >= LONGEST * INTERVAL) return 0n;
  const length = LONGEST - Math.floor(progress / INTERVAL);
  const [start, end] = [FIRST_OF_LENGTH[length] ?? 0n, FIRST_OF_LENGTH[length - 1] ?? 0n];
  return start - ((start - end) * BigInt(progress % INTERVAL)) / BigInt(INTERVAL);
}

/** Returns the name of a rune that is etched without a name. */
export const reservedName = (height: number, txIndex: number): bigint => FIRST_RESERVED + ((BigInt(height) << 32n) | BigInt(txIndex));

/** Returns the bytes that a commitment to a name pushes: least significant first, without trailing zeros. */
export function commitmentOf(name: bigint): Uint8Array {
  const bytes: number[] = [];
  for (let rest = name; rest > 0n; rest >>= 8n) bytes.push(Number(rest & 0xffn));
  return Uint8Array.from(bytes);
}
