/**
 * Keys of runes in tables of names. A rune is found by its id (`840000:3`), its number, and its name in upper case
 * without spacers. These three never look alike, so one table has all of them.
 */

/** Mixes a text of ASCII characters into 32 bits: FNV-1a, then the last step of MurmurHash3, which spreads the bits. */
function mix(text: string, seed: number): number {
  let hash = seed;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Returns the key of an id, a number or a name: 48 bits, evenly distributed. */
export const nameKeyOf = (name: string): number => mix(name, 0x811c9dc5) * 0x10000 + (mix(name, 0x9747b28c) >>> 16);
