/**
 * Measures the files of the explorer's search on invented runes: number, sizes, time to make them, and bytes that are
 * fetched for each key of names that somebody types. `npx tsx bench/search.ts [RUNES]`
 */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { findRunes, lettersOf, readSearchFile, searchFiles } from '../src/pages/search.ts';
import { inventedRunes } from '../test/support/inventedRunes.ts';

const draw = (text: string): number => createHash('sha256').update(text).digest().readUInt32BE() / 2 ** 32;
const share = (numbers: readonly number[], part: number): number =>
  numbers[Math.min(numbers.length - 1, Math.floor(numbers.length * part))] ?? 0;
const ascending = (numbers: readonly number[]): number[] => [...numbers].sort((a, b) => a - b);

async function main(): Promise<void> {
  const runes = inventedRunes(Number(process.argv[2] ?? 200_000));
  const begin = performance.now();
  const files = new Map(searchFiles(runes));
  const milliseconds = performance.now() - begin;
  const sizes = ascending([...files.values()].map((text) => Buffer.byteLength(text)));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  console.log(`${runes.length} runes: ${files.size} files, ${total} bytes, made in ${milliseconds.toFixed(0)} ms`);
  console.log(`bytes of a file: median ${share(sizes, 0.5)}, largest ${sizes.at(-1)}`);
  const keys: number[] = [];
  const packed: number[] = [];
  for (let i = 0; i < 1000; i += 1) {
    const { name } = runes[Math.floor(draw(`typed ${i}`) * runes.length)] ?? { name: '' };
    const read = new Set<string>();
    for (let typed = 2; typed <= name.length; typed += 1) {
      let bytes = 0;
      let compressed = 0;
      const found = await findRunes(lettersOf(name.slice(0, typed)) ?? '', async (path) => {
        const text = files.get(path);
        if (text !== undefined && !read.has(path)) {
          bytes += Buffer.byteLength(text);
          compressed += gzipSync(text).length;
        }
        read.add(path);
        return text === undefined ? undefined : readSearchFile(text);
      });
      if (typed === name.length && !found.some(([spaced]) => spaced.replaceAll('•', '') === name)) throw new Error(`${name} not found`);
      keys.push(bytes);
      packed.push(compressed);
    }
  }
  for (const [what, all] of [
    ['bytes', ascending(keys)],
    ['bytes, compressed', ascending(packed)],
  ] as const) {
    const fetched = all.filter((bytes) => bytes > 0);
    console.log(
      `${what} a key: 99 % ${share(all, 0.99)}, most ${all.at(-1)}; ${((fetched.length / all.length) * 100).toFixed(0)} % of the keys fetch a file, median ${share(fetched, 0.5)}`,
    );
  }
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
