/** Tests that the block hash covers each byte of a block, including its witnesses. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decompress } from 'fzstd';
import { describe, expect, it } from 'vitest';
import { commitmentOf, nameNumber } from '../../src/runes/name.ts';
import { checkWitnesses, readBlock } from '../../src/runes/parseBlock.ts';
import { ROOT } from '../support/cli.ts';
import { chainOf } from '../support/fakeNode.ts';
import { hash256, outpointOf, sealed } from '../support/memoryLedger.ts';
import { blockBytes, messageScript, taproot, transactionBytes } from '../support/runeBlocks.ts';
import { randomFor } from '../support/seed.ts';
import { committed } from '../support/witnessBlocks.ts';

const check = (bytes: Uint8Array) => checkWitnesses(readBlock(bytes, hash256), hash256);
const witness = [commitmentOf(nameNumber('A'.repeat(13))), Uint8Array.of(0xc0), new Uint8Array(300)];
const transactions = [1, 2, 3, 4].map((i) => ({
  inputs: [{ outpoint: outpointOf('11'.repeat(32), i), witness: i === 2 ? [] : witness }],
  outputs: [messageScript([2, 1, 6, i]), taproot(i)],
}));
// The transaction `plain` has no witness. `mixed` has several inputs, some of them without a witness.
const plain = { inputs: [{ outpoint: outpointOf('22'.repeat(32), 1) }], outputs: [taproot(9)] };
const mixed = { inputs: [...(transactions[0]?.inputs ?? []), ...plain.inputs], outputs: [taproot(8)] };
const [block] = committed(chainOf(0, [[...transactions.filter((_, i) => i !== 1), plain, mixed]]));
const bytes = block?.bytes ?? new Uint8Array();

describe.each(['849236', '866342'])('the real block %s', (name) => {
  const real = decompress(readFileSync(join(ROOT, `test/fixtures/indexing/blocks/${name}.bin.zst`)));

  it('has the witnesses that its coinbase commits to, and no others', () => {
    check(real);
    const { transactions, bytes: whole } = readBlock(real, hash256);
    const last = Math.max(...transactions.map(({ witness }) => witness));
    const changed = Buffer.from(whole);
    // The third byte of a witness belongs to its first element.
    changed[last + 3] = (changed[last + 3] ?? 0) ^ 1;
    expect(() => check(changed)).toThrow(/has other witnesses than its coinbase commits to/);
  });
});

it('any changed, missing or added byte of a block is detected', () => {
  check(bytes);
  const random = randomFor('bytes of a block');
  for (let at = 80; at < bytes.length; at++) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ (1 + Math.floor(random() * 255));
    expect(() => check(changed), `byte ${at}`).toThrow();
    expect(() => check(Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)])), `without byte ${at}`).toThrow();
    expect(() => check(Buffer.concat([bytes.subarray(0, at), bytes.subarray(at - 1)])), `twice byte ${at - 1}`).toThrow();
  }
});

it('a block without a commitment has no witnesses', () => {
  check(blockBytes(1, [plain]));
  expect(() => check(blockBytes(1, transactions.slice(0, 1)))).toThrow(/has witnesses, but its coinbase commits to none/);
});

it('the last commitment of the coinbase counts, and a coinbase without the reserved value is refused', () => {
  const old = Buffer.concat([Buffer.from('6a24aa21a9ed', 'hex'), new Uint8Array(32)]);
  // Puts a wrong commitment before the right one, which `committed` adds. The last commitment counts.
  const [twice] = committed([{ hash: '', height: 1, bytes: blockBytes(1, transactions.slice(0, 1), [old]) }]);
  check(twice?.bytes ?? new Uint8Array());
  expect(() => check(blockBytes(1, [plain], [old]))).toThrow(/has other witnesses than its coinbase commits to/);
});

it('a block that does not begin with a coinbase is refused', () => {
  const first = { inputs: [{ outpoint: outpointOf('33'.repeat(32), 0) }], outputs: [taproot(1)] };
  const header = blockBytes(1, []).subarray(0, 80);
  expect(() => check(sealed(Buffer.concat([header, Uint8Array.of(1), transactionBytes(first)])))).toThrow(/does not begin with a coinbase/);
});
