/**
 * Checks that the witnesses of a block are those that its coinbase commits to (BIP 141). The merkle root covers all other bytes of the
 * transactions. On some networks the first blocks are older than this rule. These blocks have no witnesses.
 */
import { type Hash256, hashText, sameBytes } from './bytes.ts';
import { type Block, BlockError, merkleRoot, scriptOf, type TransactionPlace, witnessEndsOf } from './parseBlock.ts';

/** First bytes of the output script that has the commitment: OP_RETURN, length and four marker bytes. */
const COMMITMENT = Uint8Array.of(0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed);
const HASH_BYTES = 32;
/** Outpoint in the input of a coinbase: a transaction id of zeros, and the highest index. */
const NO_OUTPUT = new Uint8Array(36).fill(0xff, HASH_BYTES);

/** Throws a BlockError if the first transaction is no coinbase, or if the witnesses do not match its commitment. */
export function checkWitnesses(block: Block, hash256: Hash256): void {
  const { bytes, transactions } = block;
  const [coinbase] = transactions;
  // Without this check, two adjacent hashes of the merkle tree (64 bytes) could pass for a transaction.
  if (coinbase?.inputs !== 1 || !sameBytes(bytes, block.inputs[0] ?? 0, NO_OUTPUT, 0, NO_OUTPUT.length))
    throw new BlockError(`block ${block.hash} does not begin with a coinbase`);
  const commitment = commitmentIn(block, coinbase);
  if (commitment === undefined) {
    if (transactions.every(({ witness }) => witness === 0)) return;
    throw new BlockError(`block ${block.hash} has witnesses, but its coinbase commits to none`);
  }
  // In this merkle tree, zeros replace the hash of the coinbase. The commitment is a hash of the tree's root and the coinbase's witness.
  const ids = new Uint8Array(HASH_BYTES * transactions.length);
  for (let i = 1; i < transactions.length; i++)
    ids.set(hash256(bytes.subarray(transactions[i]?.start, transactions[i + 1]?.start)), HASH_BYTES * i);
  const both = new Uint8Array(2 * HASH_BYTES);
  both.set(merkleRoot(ids, hash256));
  const [[reserved, ...more] = []] = witnessEndsOf(block, coinbase);
  const isReserved = reserved?.length === HASH_BYTES && more.length === 0;
  if (isReserved) both.set(reserved, HASH_BYTES);
  if (!isReserved || !sameBytes(hash256(both), 0, commitment, 0, HASH_BYTES))
    throw new BlockError(`block ${block.hash} has other witnesses than its coinbase commits to (${hashText(commitment, 0)})`);
}

/** Returns the hash in the coinbase's last output with a commitment. Undefined if no output has one. */
function commitmentIn(block: Block, coinbase: TransactionPlace): Uint8Array | undefined {
  for (let i = coinbase.outputs - 1; i >= 0; i--) {
    const script = scriptOf(block, coinbase, i);
    const end = COMMITMENT.length + HASH_BYTES;
    if (script.length >= end && sameBytes(script, 0, COMMITMENT, 0, COMMITMENT.length)) return script.subarray(COMMITMENT.length, end);
  }
  return undefined;
}
