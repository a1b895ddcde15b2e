/** Makes blocks whose coinbase commits to their witnesses, as on real networks. */
import { hashText } from '../../src/runes/bytes.ts';
import { merkleRoot, readBlock } from '../../src/runes/parseBlock.ts';
import type { FakeBlock } from './fakeNode.ts';
import { hash256, sealed } from './memoryLedger.ts';

const RESERVED = new Uint8Array(32).fill(7);

/** Returns copies of the blocks, with a commitment to the witnesses in each coinbase. This changes all block hashes. */
export function committed(blocks: readonly FakeBlock[]): FakeBlock[] {
  let previous: Uint8Array = new Uint8Array(32);
  return blocks.map(({ bytes, height }) => {
    const sealedBytes = sealed(withCommitment(bytes), previous);
    previous = hash256(sealedBytes.subarray(0, 80));
    return { hash: hashText(previous), height, bytes: sealedBytes };
  });
}

/** Adds a commitment to the coinbase of a block. The coinbase must have no witness, and fewer than 252 outputs. */
function withCommitment(bytes: Uint8Array): Uint8Array {
  const { transactions } = readBlock(bytes, hash256);
  const starts = transactions.map(({ start }) => start);
  const ids = starts.slice(1).map((start, i) => hash256(bytes.subarray(start, starts[i + 2])));
  const root = merkleRoot(Buffer.concat([new Uint8Array(32), ...ids]), hash256);
  const commitment = hash256(Buffer.concat([root, RESERVED]));
  const output = Buffer.concat([new Uint8Array(8), Buffer.from('266a24aa21a9ed', 'hex'), commitment]);
  const coinbase = Buffer.from(bytes.subarray(starts[0], starts[1]));
  // Offset of the number of outputs, after the version, the number of inputs, and an input without a script.
  const count = 4 + 1 + 36 + 1 + 4;
  coinbase[count] = (coinbase[count] ?? 0) + 1;
  const witness = Buffer.concat([Uint8Array.of(1, 32), RESERVED]);
  return Buffer.concat([
    bytes.subarray(0, starts[0]),
    coinbase.subarray(0, 4),
    Uint8Array.of(0, 1),
    coinbase.subarray(4, -4),
    output,
    witness,
    coinbase.subarray(-4),
    bytes.subarray(starts[1] ?? bytes.length),
  ]);
}
