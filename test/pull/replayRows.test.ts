/** What the rows of a block say about the ledger, where generated chains do not say it. */
import { expect, it } from 'vitest';
import { BlockRows } from '../../src/pull/node/replayRows.ts';
import { outpointText } from '../../src/runes/bytes.ts';
import { NETWORKS } from '../../src/runes/networks.ts';

it('a block that spends its own output neither creates nor spends it', () => {
  const [first, second, older] = ['a', 'b', 'c'].map((digit) => `${digit.repeat(64)}:0`);
  const block = new BlockRows();
  block.add(['receive', first, '', '840000:1', '5', `${older}:`]);
  block.add(['receive', second, '', '840000:1', '5', `${first}:`]);
  const { spent, created } = block.changes(NETWORKS.regtest, 'input/pulled');
  expect([spent.map(outpointText), created.map(({ outpoint }) => outpointText(outpoint))]).toEqual([[older], [second]]);
});
