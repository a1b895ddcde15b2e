/**
 * Whether a client gets a body compressed, by its Accept-Encoding header (RFC 9110, 12.5.3). Only gzip is offered: what a faster brotli saves beyond it is
 * not worth a second form of every file in memory.
 */

const ITEM = /^(\*|[a-z-]+)(?:;q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?$/;

/** False when the client takes no gzip, likes the body as it is better, or says nothing. Parts of the header that are malformed are ignored. */
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
