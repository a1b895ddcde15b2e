/**
 * The case table of outputs: requests for a small chain that was pulled from a node. The table of cases.ts has no outputs, because its
 * input has none.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import { temporaryFolder, testBuild, writeFiles } from './build.ts';
import { type Case, checkCase, refused } from './cases.ts';
import { exportOf, rowsWithoutAddress } from './nodeRows.ts';
import type { Host } from './server.ts';

/** Hash of the last block of the chain in nodeRows.ts. */
const TIP = '0xe6fc49dc29b5183f9915206986f1be7c4eaa5d4db4b62ef1afa5542e212092fd';
const MOVED = 'f9d91920b37c323756a58541b421cfa79ec749bbd4e361249766c52240e49db0';
const MINTED = '3d0f30432bcef1fffcbe21ea2037f2cb758f403de8cd791e1fa9025d779efd03';
const MOVED_AT = {
  block_hash: `0x3f27380375d6244db99827ebb9ebfc55787b14de2e40e693fc3d845023991d99`,
  block_height: 2,
  tx_id: `0x${MOVED}`,
  tx_index: 2,
  timestamp: 1700000002,
};
const ADDRESS = 'bcrt1pqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqpq5vn2hg';
const NAMES = ['AAAAAAAAAAAAAAAAAAAANXMRLXX', 'AAAAAAAAAAAAAAAAAAABBUZIXVT'] as const;
const held = (id: string, number: 0 | 1, balance: string) => [
  { rune: { id, number, name: NAMES[number], spaced_name: NAMES[number] }, balance },
];

const output = (name: string, outpoint: string, answer: object): Case => ({
  name,
  target: `/runes/v1/outputs/${outpoint}`,
  status: 200,
  body: JSON.stringify({ block_height: 3, block_hash: TIP, output: `0x${outpoint.replace(/^0x/, '')}`, ...answer }),
});

const CASES: readonly Case[] = [
  output('an unspent output', `${MINTED}:1`, {
    location: { block_hash: TIP, block_height: 3, tx_id: `0x${MINTED}`, tx_index: 1, timestamp: 1700000003 },
    runes: held('2:1', 1, '7'),
    spent: false,
  }),
  output('a spent output, which got runes in several records', `0x${MOVED}:1`, {
    address: ADDRESS,
    location: MOVED_AT,
    runes: [],
    spent: true,
    held: held('1:1', 0, '0.94'),
  }),
  output('another spent output of the transaction, without an address', `${MOVED}:2`, {
    location: MOVED_AT,
    runes: [],
    spent: true,
    held: held('1:1', 0, '0.40'),
  }),
  output('an output of the transaction that never held runes', `${MOVED}:0`, { runes: [], spent: null }),
  output('an output that the transaction does not have', `${MOVED}:99999999999`, { runes: [], spent: null }),
  output('an output of an unknown transaction', `${'ab'.repeat(32)}:0`, { runes: [], spent: null }),
  refused('a malformed outpoint', `/runes/v1/outputs/${MOVED}`, 'params/output must match pattern "^[a-fA-F0-9]{64}:[0-9]+$"'),
];

/** Tests hosts with builds of each layout. `start` serves the build in a folder. `makeFolder` makes the parent folder of a build. */
export function describeOutputs(start: (folder: string) => Promise<Host>, makeFolder = temporaryFolder): void {
  describe.each(LAYOUTS)('the case table of outputs, layout %s', (layout) => {
    let host: Host;
    beforeAll(async () => {
      const folder = makeFolder();
      writeFiles(join(folder, 'in'), exportOf(rowsWithoutAddress()));
      await testBuild(join(folder, 'dist'), { inputs: [join(folder, 'in')], layout, lists: true });
      host = await start(join(folder, 'dist'));
    });
    afterAll(() => host.close());
    it.each(CASES)('$name', (one) => checkCase(host, one));
  });
}
