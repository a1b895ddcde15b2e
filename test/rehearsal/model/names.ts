const INTERVAL = 17_500n;
/** Numeric values of the names A, AA, AAA and so on, by their number of letters. Index 0 has the value 0. */
const STEPS = [0n];
for (let letters = 1; letters <= 12; letters++) STEPS.push(26n * ((STEPS[letters - 1] ?? 0n) + 1n));

/** The first reserved name, which has 27 letters. Messages cannot request this name or a higher one. */
export const FIRST_RESERVED = 6402364363415443603228541259936211926n;

/** Returns the letters of a numeric name. 0 is A, 25 is Z, and 26 is AA. */
export function lettersOf(name: bigint): string {
  let letters = '';
  for (let n = name + 1n; n > 0n; n = (n - 1n) / 26n) letters = String.fromCharCode(65 + Number((n - 1n) % 26n)) + letters;
  return letters;
}

/** Puts a bullet after each letter whose bit in `spacers` is set, except after the last letter. */
export function spacedName(letters: string, spacers: number): string {
  return [...letters].map((letter, i) => (i < letters.length - 1 && (spacers >> i) & 1 ? `${letter}•` : letter)).join('');
}

/** Returns the smallest name that may be etched at a height. `first` is the height at which runes begin. */
export function minimumName(height: number, first: number): bigint {
  const progress = BigInt(height + 1 - first);
  if (progress < 0n) return STEPS[12] ?? 0n;
  if (progress >= 210_000n) return 0n;
  const length = 12 - Number(progress / INTERVAL);
  const longer = STEPS[length] ?? 0n;
  return longer - ((longer - (STEPS[length - 1] ?? 0n)) * (progress % INTERVAL)) / INTERVAL;
}

/** Returns the reserved name for an etching that has no name. */
export function reservedName(height: number, txIndex: number): bigint {
  return FIRST_RESERVED + ((BigInt(height) << 32n) | BigInt(txIndex));
}

/** Returns the bytes that a transaction must push to commit to a name: little-endian, without zeros at the end. */
export function commitmentOf(name: bigint): Buffer {
  const hex = name === 0n ? '' : name.toString(16);
  return Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex').reverse();
}
