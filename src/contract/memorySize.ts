/** Parses memory sizes as flags give them. */

/** Memory limit of a command without the flag `--memory-limit`. */
export const DEFAULT_MEMORY = '1GB';

const UNITS: Readonly<Record<string, number>> = { K: 1, M: 2, G: 3, T: 4 };

/** Converts a size such as `500MB` or `1.5 GiB` to bytes. Returns undefined for any other text. */
export function bytesOf(size: string): number | undefined {
  const [, number, unit = '', binary] = /^([0-9]+(?:[.][0-9]+)?) ?([KMGT])(i?)B$/.exec(size) ?? [];
  return number === undefined ? undefined : Number(number) * (binary === 'i' ? 1024 : 1000) ** (UNITS[unit] ?? 0);
}
