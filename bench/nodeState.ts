/**
 * Makes the state from which the pulls of bench/node.ts start: the folder of a pull that has read all blocks before the chain of
 * nodeChain.ts.
 */

import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Store } from '../src/duckdb/store.ts';
import { LIMITS } from '../src/limits.ts';
import { RowFiles } from '../src/pull/node/rowFiles.ts';
import { STATE_FOLDER, WORK_FOLDER } from '../src/pull/pulledFiles.ts';
import { commitIndex, EMPTY_INDEX } from '../src/rows/rowsFolder.ts';
import { nameNumber, nameText } from '../src/runes/name.ts';
import { runeIdText } from '../src/runes/runeId.ts';
import { DiskLedger } from '../src/unspent/diskLedger.ts';
import { BASE, oldOutput, oldRune } from './nodeChain.ts';

/** Number of outputs that one block adds to the ledger. */
const PER_BLOCK = 50_000;

/**
 * Writes a ledger with `outputs` unspent outputs and `runes` runes, unless it exists. Returns the seconds of each merge of the ledger's
 * sorted files.
 */
export async function makeState(folder: string, baseHash: string, outputs: number, runes: number): Promise<number[]> {
  const done = join(folder, 'done');
  if (existsSync(done)) return [];
  rmSync(folder, { recursive: true, force: true });
  const pulled = join(folder, 'pulled');
  mkdirSync(join(pulled, WORK_FOLDER), { recursive: true });
  await makeRunes(pulled, runes, baseHash);
  const blocks = Math.ceil(outputs / PER_BLOCK);
  const ledger = new DiskLedger({
    folder: join(pulled, STATE_FOLDER),
    network: 'regtest',
    firstHeight: BASE - blocks + 1,
    rowsFrom: BASE + 1,
    limits: LIMITS,
  });
  const seconds: number[] = [];
  const settle = async (height: number) => {
    const begin = performance.now();
    await ledger.settle(height);
    seconds.push((performance.now() - begin) / 1000);
  };
  for (let block = 0; block < blocks; block++) {
    const first = block * PER_BLOCK;
    const created = Array.from({ length: Math.min(PER_BLOCK, outputs - first) }, (_, i) => oldOutput(first + i));
    const mints = new Map(block === 0 ? Array.from({ length: runes }, (_, i) => [oldRune(i), 1 + (i % 1000)]) : []);
    const height = BASE - blocks + 1 + block;
    ledger.apply({ height, hash: height === BASE ? baseHash : '00'.repeat(32) }, { spent: [], created, runes: [], mints });
    if (ledger.isSettleDue) await settle(height);
  }
  await settle(BASE);
  ledger.close();
  rmSync(join(pulled, WORK_FOLDER), { recursive: true });
  writeFileSync(done, '');
  return seconds;
}

/** Writes the table of runes. All runes can be minted. */
async function makeRunes(pulled: string, runes: number, baseHash: string): Promise<void> {
  const store = await Store.open({ memoryLimit: '700MB', threads: 2, scratch: join(pulled, WORK_FOLDER) });
  const files = new RowFiles(pulled, store);
  const first = nameNumber('OLDRUNEAAAAAAA');
  for (let number = 0; number < runes; number++) {
    const id = runeIdText(oldRune(number));
    const [height = 0, index = 0] = id.split(':').map(Number);
    const name = nameText(first + BigInt(number));
    files.addRune({
      id,
      number,
      name,
      spaced_name: `${name.slice(0, 3)}•${name.slice(3)}`,
      block_hash: '00'.repeat(32),
      block_height: height,
      tx_index: index,
      tx_id: '00'.repeat(32),
      divisibility: 2,
      premine: 1_000_000n,
      symbol: '⧉',
      terms_amount: 1000n,
      terms_cap: 1_000_000_000n,
      terms_height_start: null,
      terms_height_end: null,
      terms_offset_start: null,
      terms_offset_end: null,
      turbo: true,
      cenotaph: false,
      timestamp: 1_700_000_000,
    });
  }
  await files.endFile({ first: 0, last: BASE }, BASE + 1);
  const runesFiles = (await files.finished()).map(([, file]) => file);
  const index = { ...EMPTY_INDEX, tip: { height: BASE, hash: baseHash }, runes: runesFiles };
  commitIndex(pulled, index, join(pulled, WORK_FOLDER, 'index.json'));
  store.close();
}
