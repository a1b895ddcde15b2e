/**
 * Reads URLs of other explorers. These name a type and then an id, as in `https://mempool.space/tx/<id>`,
 * `https://ordinals.com/rune/DOG•GO•TO•THE•MOON` or `https://unisat.io/runes/market?tick=...`.
 */

/** Subject of a URL. `id` is a transaction id, block, address or outpoint, or a rune's id, number or name. */
export type NamedInUrl = { readonly kind: 'rune' | 'other'; readonly id: string } | { readonly kind: 'unknown' };

const RUNES = /^(?:runes?|tick)$/;
/** The next part is a rune, even if it is a common word of URLs, such as BLOCK or TOKEN. */
const NAMED = /^(?:rune|tick)$/;
const OTHERS = /^(?:tx|txid|transactions?|outputs?|outpoint|blocks?|block-height|address|addresses)$/;
const isKind = (word: string): boolean => RUNES.test(word) || OTHERS.test(word);

/** Parts between a type and its id. */
const BETWEEN = new Set(['detail', 'details', 'market', 'info', 'etchings', 'v1', 'bitcoin', 'mainnet', 'token', 'name', 'height', 'hash']);

/** Finds the id in a URL. Undefined for text that is not a URL. */
export function idInUrl(text: string): NamedInUrl | undefined {
  const url = /^https?:\/\//i.test(text) ? text : /^[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}\/\S/i.test(text) ? `https://${text}` : undefined;
  if (url === undefined) return undefined;
  let parts: string[];
  try {
    const { pathname, searchParams } = new URL(url);
    // Query parameters come first, because they name the subject of a market's page or of this explorer's page.
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
    // An inscription is shown as its transaction.
    return { kind, id: kind === 'rune' ? id : id.replace(/^((?:0x)?[0-9a-f]{64})i[0-9]+$/i, '$1') };
  }
  return { kind: 'unknown' };
}
