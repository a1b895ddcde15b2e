/** Keys of documents (documents.ts). */

/**
 * Returns the key of an address: the percent-encoded address, because hosts may decode characters beyond ASCII in different ways. The key
 * of a real Bitcoin address is the address itself. Returns undefined for text that is not valid Unicode.
 */
export function keyOfAddress(address: string): string | undefined {
  try {
    // Builds make keys with DuckDB's url_encode, which also encodes these five characters.
    return encodeURIComponent(address).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
  } catch {
    return undefined;
  }
}

/**
 * Returns the key of a page of a list. `key` is the key of the list, and `page` is the index of the page. Keys of lists have only
 * characters that sort after the space, so the keys of the pages sort directly after `key`.
 */
export const pageKey = (key: string, page: number): string => `${key} ${String(page).padStart(8, '0')}`;

/** Returns the shortest prefix of `key` that sorts after the key `before`. Keys are ASCII. */
export function separatorOf(before: string, key: string): string {
  let length = 1;
  while (key.slice(0, length) <= before) length += 1;
  return key.slice(0, length);
}
