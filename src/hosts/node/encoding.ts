/**
 * Which compressed form of a body a client gets, by its Accept-Encoding header (RFC 9110, 12.5.3).
 */

/** The forms that there can be, best first. */
export const ENCODINGS = ['br', 'gzip'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** What stands at the end of an ETag, inside its quotes: each form of a body has a strong ETag of its own. */
export const ETAG_ENDINGS: Readonly<Record<Encoding, string>> = { br: '-br', gzip: '-gz' };

const ITEM = /^(\*|[a-z-]+)(?:;q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?$/;

/**
 * The form to send, of those that are available: the one with the highest weight, and `br` of two alike. Undefined for the body as it is: when the
 * client takes nothing else, likes that better, or says nothing. Parts of the header that are malformed are ignored.
 */
export function pickEncoding(header: string | undefined, available: readonly Encoding[]): Encoding | undefined {
  if (header === undefined || header === '') return undefined;
  const weights = new Map<string, number>();
  for (const part of header.toLowerCase().split(',')) {
    const [, name, weight = '1'] = ITEM.exec(part.replace(/[ \t]/g, '')) ?? [];
    if (name !== undefined) weights.set(name === 'x-gzip' ? 'gzip' : name, Number(weight));
  }
  let best: Encoding | undefined;
  let bestWeight = weights.get('identity') ?? 0;
  for (const encoding of ENCODINGS) {
    if (!available.includes(encoding)) continue;
    const weight = weights.get(encoding) ?? weights.get('*') ?? 0;
    if (weight > 0 && (best === undefined ? weight >= bestWeight : weight > bestWeight)) {
      best = encoding;
      bestWeight = weight;
    }
  }
  return best;
}
