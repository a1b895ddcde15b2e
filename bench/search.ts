/**
 * Measures the explorer's search on invented runes: the number and size of the search files, the time to make them, the
 * bytes fetched per typed key, and the time from a key to its suggestions in Chromium with a slowed-down CPU. `npx tsx
 * bench/search.ts [RUNES] [SLOWDOWN]`
 */
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { findRunes, lettersOf, readSearchFile, searchFiles } from '../src/lists/searchFiles.ts';
import { closeBrowser, openPage } from '../test/browser/support.ts';
import { testBuild } from '../test/support/build.ts';
import { SAMPLE_INPUT } from '../test/support/cases.ts';
import { inventedRunes } from '../test/support/inventedRunes.ts';
import { startServer } from '../test/support/server.ts';

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
  await measureInBrowser(
    files,
    Array.from({ length: 20 }, (_, i) => runes[Math.floor(draw(`shown ${i}`) * runes.length)]?.name ?? ''),
  );
}

const SLOWED = Number(process.argv[3] ?? 6);

/**
 * Types names into the explorer of a mirror with these files. Prints the time from each key until its suggestions are
 * painted.
 */
async function measureInBrowser(files: ReadonlyMap<string, string>, names: readonly string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-search-'));
  await testBuild(join(folder, 'dist'), { inputs: [SAMPLE_INPUT] });
  for (const [path, text] of files) {
    mkdirSync(dirname(join(folder, 'dist', path)), { recursive: true });
    writeFileSync(join(folder, 'dist', path), text);
  }
  const host = await startServer(join(folder, 'dist'));
  const [first, next]: [number[], number[]] = [[], []];
  for (const name of names) {
    const { page, close } = await openPage(`http://127.0.0.1:${host.port}/`);
    const session = await page.context().newCDPSession(page);
    await session.send('Emulation.setCPUThrottlingRate', { rate: SLOWED });
    // Measures from the key press to the frame after the list has changed.
    await page.evaluate(`
      globalThis.times = [];
      const list = document.getElementById('suggestions');
      let pressed = 0;
      document.getElementById('query').addEventListener('keydown', (event) => { pressed = event.timeStamp; }, true);
      new MutationObserver(() => requestAnimationFrame(() => setTimeout(() => {
        if (pressed > 0 && !list.hidden) times.push(performance.now() - pressed);
        pressed = 0;
      }))).observe(list, { childList: true });`);
    await page.focus('#query');
    for (const letter of name.slice(0, 6)) {
      await page.keyboard.press(letter);
      await page.waitForTimeout(400);
    }
    const times = await page.evaluate<number[]>('times');
    first.push(times[0] ?? Number.POSITIVE_INFINITY);
    for (const time of times.slice(1)) next.push(time);
    await close();
  }
  for (const [what, all] of [
    ['first suggestions', ascending(first)],
    ['suggestions of later keys', ascending(next)],
  ] as const)
    console.log(
      `${what}, processor slowed ${SLOWED} times: median ${share(all, 0.5).toFixed(0)} ms, 95 % ${share(all, 0.95).toFixed(0)}, most ${all.at(-1)?.toFixed(0)} (${all.length} keys)`,
    );
  await closeBrowser();
  await host.close();
  rmSync(folder, { recursive: true });
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
