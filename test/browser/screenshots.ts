/** Makes the pictures of docs/screenshots anew, from invented records, so that they show what the pages are now. */
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContextOptions } from 'playwright-core';
import { testBuild, writeFiles } from '../support/build.ts';
import { ROOT } from '../support/cli.ts';
import { type Activity, ndjson, record } from '../support/records.ts';
import { startServer } from '../support/server.ts';
import { closeBrowser, openPage } from './support.ts';

const FIRST = 911_400;
const BLOCKS = 72;
/** When the pictures are made, as the page sees it, in seconds: a few minutes after the last block. */
const NOW = 1_755_000_000;
const OPERATIONS = ['receive', 'send', 'send', 'send', 'send', 'send', 'mint', 'mint', 'mint', 'burn', 'etching'];
const WORDS = [
  'AMBER',
  'COMET',
  'DELTA',
  'EMBER',
  'FJORD',
  'GLADE',
  'HARBOR',
  'ISLAND',
  'JUNIPER',
  'KELP',
  'LANTERN',
  'MEADOW',
  'NIMBUS',
  'ORCHARD',
];

/** A number from 0 to 1 that follows from the text. */
const draw = (text: string): number => createHash('sha256').update(text).digest().readUInt32BE() / 2 ** 32;
const hexOf = (text: string): string => createHash('sha256').update(text).digest('hex');

function blockOf(n: number): Activity[] {
  const height = FIRST + n;
  const wave = 1 + 0.6 * Math.sin(n / 7) + (draw(`busy ${n}`) > 0.93 ? 1.6 : 0);
  const records = Array.from({ length: Math.round(36 * wave * (0.5 + draw(`size ${n}`))) + 3 }, (_, i): Activity => {
    const at = `${n} ${i}`;
    const operation = OPERATIONS[Math.floor(draw(`operation ${at}`) * OPERATIONS.length)] ?? 'send';
    const rune = Math.floor(draw(`rune ${at}`) ** 2.2 * WORDS.length);
    const words = ['INVENTED', WORDS[rune] ?? ''];
    const place = Math.floor((i + 1) / 3);
    const { location, address: _address, amount: _amount, ...fields } = record(height, place * 3 + 5);
    const txId = `0x${hexOf(`transaction ${n} ${place}`)}`;
    const addressOf = (who: string) => `bc1p${hexOf(`${who} ${at}`).slice(0, 58)}`;
    const amount = `${Math.floor(draw(`amount ${at}`) ** 4 * 90_000_000)}.${String(Math.floor(draw(`part ${at}`) * 100)).padStart(2, '0')}`;
    return {
      ...fields,
      rune: { id: `${840_000 + rune * 917}:${rune * 3 + 1}`, number: rune, name: words.join(''), spaced_name: words.join('•') },
      ...(operation === 'etching' || operation === 'mint' ? {} : { address: addressOf('address') }),
      ...(operation === 'send' ? { receiver_address: addressOf('receiver') } : {}),
      ...(operation === 'etching' ? {} : { amount }),
      operation,
      location: {
        ...location,
        block_hash: `0x0000000000000000000${hexOf(`block ${n}`).slice(0, 45)}`,
        tx_id: txId,
        output: txId,
        vout: i % 3,
        timestamp: NOW - 240 - (BLOCKS - 1 - n) * 612 - Math.floor(draw(`late ${n}`) * 300),
      },
    };
  });
  return records.flatMap((one) => withReceive(one)).reverse();
}

/** A record with the receive that a send and a mint have. */
function withReceive(one: Activity): Activity[] {
  const { receiver_address: to = `bc1p${hexOf(`minter ${one.location.tx_id}`).slice(0, 58)}`, ...rest } = one;
  const receive: Activity = { ...rest, operation: 'receive', address: to };
  return one.operation === 'send' ? [receive, one] : one.operation === 'mint' ? [one, receive] : [one];
}

const PICTURES: readonly (readonly [name: string, search: string, options: BrowserContextOptions])[] = [
  ['overview', '', { viewport: { width: 1280, height: 1180 } }],
  ['overview-dark', '', { viewport: { width: 1280, height: 1180 }, colorScheme: 'dark' }],
  ['block', `?block=${FIRST + BLOCKS - 6}`, { viewport: { width: 1280, height: 900 } }],
  ['phone', `?block=${FIRST + BLOCKS - 6}&operation=receive`, { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }],
];

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'screenshots-'));
  const to = join(ROOT, 'docs/screenshots');
  mkdirSync(to, { recursive: true });
  const [input, dist] = [join(folder, 'input'), join(folder, 'dist')];
  writeFiles(input, { 'invented.ndjson': ndjson(Array.from({ length: BLOCKS }, (_, n) => blockOf(n)).flat()) });
  await testBuild(dist, { inputs: [input] });
  const host = await startServer(dist);
  for (const [name, search, options] of PICTURES) {
    const { page, close } = await openPage(`http://127.0.0.1:${host.port}/${search}`, { ...options, reducedMotion: 'reduce' });
    // The same words for times, whenever they are made.
    await page.clock.setFixedTime(NOW * 1000);
    await page.reload({ waitUntil: 'networkidle' });
    await page.screenshot({ path: join(to, `${name}.png`) });
    await close();
  }
  await closeBrowser();
  await host.close();
  rmSync(folder, { recursive: true });
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
