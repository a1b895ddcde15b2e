/**
 * Content negotiation by Accept-Encoding (RFC 9110, 12.5.3). Offers only gzip: fast brotli saves too little to be worth a second compressed
 * copy of every file in memory.
 */

const ITEM = /^(\*|[a-z-]+)(?:;q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?$/;

/**
 * True if the client accepts gzip and does not prefer the uncompressed body. False if the header is missing. Ignores malformed parts of the
 * header.
 */
export function takesGzip(header: string | undefined): boolean {
  if (header === undefined || header === '') return false;
  const weights = new Map<string, number>();
  for (const part of header.toLowerCase().split(',')) {
    const [, name, weight = '1'] = ITEM.exec(part.replace(/[ \t]/g, '')) ?? [];
    if (name !== undefined) weights.set(name === 'x-gzip' ? 'gzip' : name, Number(weight));
  }
  const weight = weights.get('gzip') ?? weights.get('*') ?? 0;
  return weight > 0 && weight >= (weights.get('identity') ?? 0);
}
