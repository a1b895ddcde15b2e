/** Invents runes with names like real ones: names begin with common words, have at least 13 letters, and some have spacers. */
import { createHash } from 'node:crypto';
import type { NamedRune } from '../../src/lists/searchFiles.ts';

const WORDS =
  'RUNE BITCOIN DOG SATOSHI THE PEPE CAT MEME PUPS MOON GOLD WIZARD BTC ORDINAL MAGIC HALVING INTERNET MONEY KING APE FROG PIZZA LORD DEGEN GOD LOVE BABY TRUMP GENESIS DIGITAL MINI SUPER FIRST BLOCK HODL LAMBO SHIBA ELON MUSK UNCOMMON RARE EPIC GIGA CHAD WHALE NODE MINER FREE WORLD PEACE TREE STONE WATER FIRE EARTH WIND STAR LIGHT NIGHT BLACK WHITE GREEN ORANGE PURPLE QUANTUM NINJA ZOMBIE VIKING YETI XENON JUNGLE OXYGEN'.split(
    ' ',
  );
const SYMBOLS = ['🐕', 'ᚱ', '⧉', '$', '🚀', undefined, undefined];

/** Returns the first `count` of an endless list of runes. Each name occurs once. */
export function inventedRunes(count: number): NamedRune[] {
  const names = new Set<string>();
  const runes: NamedRune[] = [];
  for (let n = 0; runes.length < count; n += 1) {
    const digest = createHash('sha256').update(`rune ${n}`).digest();
    const words: string[] = [];
    // Common words come first in the list of words, so a squared random number prefers them. Some names have no words.
    for (let i = 0; words.join('').length < 13 && i < 6; i += 1) {
      const part = digest.readUInt16BE(i * 4) / 2 ** 16;
      const letters = String.fromCharCode(...[1, 2, 3, 4].map((at) => 65 + ((digest[i * 4 + at] ?? 0) % 26)));
      words.push(digest[31] === undefined || digest[31] < 60 || i > 1 ? letters : (WORDS[Math.floor(part * part * WORDS.length)] ?? ''));
    }
    const name = words.join('').slice(0, 28);
    if (names.has(name)) continue;
    names.add(name);
    const spaced = (digest[30] ?? 0) < 180 && words.join('').length <= 28 ? words.join('•') : name;
    const id = `${840_000 + Math.floor(runes.length / 4)}:${(runes.length % 4) * 7 + 1}`;
    runes.push({ id, number: runes.length, name, spaced_name: spaced, symbol: SYMBOLS[(digest[29] ?? 0) % SYMBOLS.length] });
  }
  return runes;
}
