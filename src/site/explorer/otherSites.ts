/**
 * Reads URLs of other explorers, so that users can paste them. A URL has a word for the type, then an id, as in
 * `https://mempool.space/tx/<id>`, `https://ordinals.com/rune/DOG•GO•TO•THE•MOON` or `https://unisat.io/runes/market?tick=...`.
 */

/** The subject of a URL. `id` is a transaction id, block, address or outpoint, or the id, number or name of a rune. */
export type NamedInUrl = { readonly kind: 'rune' | 'other'; readonly id: string } | { readonly kind: 'unknown' };

const RUNES = /^(?:runes?|tick)$/;
/**
 * After one of these words, the next part of a URL is a rune, even if it looks like a common word of URLs. Runes may be named BLOCK or
 * TOKEN.
 */
const NAMED = /^(?:rune|tick)$/;
const OTHERS = /^(?:tx|txid|transactions?|outputs?|outpoint|blocks?|block-height|address|addresses)$/;
const isKind = (word: string): boolean => RUNES.test(word) || OTHERS.test(word);

/** Words that URLs have between the type and the id. */
const BETWEEN = new Set(['detail', 'details', 'market', 'info', 'etchings', 'v1', 'bitcoin', 'mainnet', 'token', 'name', 'height', 'hash']);

/** Finds the id in a URL. Undefined for text that is not a URL. */
export function idInUrl(text: string): NamedInUrl | undefined {
  const url = /^https?:\/\//i.test(text) ? text : /^[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}\/\S/i.test(text) ? `https://${text}` : undefined;
  if (url === undefined) return undefined;
  let parts: string[];
  try {
    const { pathname, searchParams } = new URL(url);
    // Query parameters come first, because on market pages and in this explorer they have the subject.
    parts = [...[...searchParams].flat(), ...pathname.split('/').map(decodeURIComponent)];
  } catch {
    return { kind: 'unknown' };
  }
  for (const [i, part] of parts.entries()) {
    const word = part.toLowerCase();
    const after = parts.slice(i + 1).filter((one) => one !== '');
    const id = NAMED.test(word) ? after[0] : after.find((one) => !BETWEEN.has(one.toLowerCase()));
    if (!isKind(word) || id === undefined || (isKind(id.toLowerCase()) && !NAMED.test(word))) continue;
    const kind = RUNES.test(word) ? 'rune' : 'other';
    // For an inscription (`<txid>i0`), returns the id of its transaction.
    return { kind, id: kind === 'rune' ? id : id.replace(/^((?:0x)?[0-9a-f]{64})i[0-9]+$/i, '$1') };
  }
  return { kind: 'unknown' };
}
