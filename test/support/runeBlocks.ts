/** Builds raw blocks with runes messages. */
import { compact } from '../rehearsal/blockWriter.ts';
import { messageScript as messageOf } from '../rehearsal/scripts.ts';
import { outpointOf, sealed } from './memoryLedger.ts';

export interface Input {
  /** Outpoint of 36 bytes. */
  readonly outpoint: Uint8Array;
  readonly witness?: readonly Uint8Array[];
}

export interface Transaction {
  readonly inputs: readonly Input[];
  readonly outputs: readonly Uint8Array[];
}

const uint = (value: number, bytes: number): Uint8Array => Uint8Array.from({ length: bytes }, (_, i) => Math.floor(value / 256 ** i) % 256);

const prefixed = (bytes: Uint8Array): Uint8Array => Buffer.concat([compact(bytes.length), bytes]);

export function transactionBytes({ inputs, outputs }: Transaction): Uint8Array {
  const segwit = inputs.some(({ witness }) => witness);
  return Buffer.concat([
    uint(2, 4),
    segwit ? uint(0x0100, 2) : uint(0, 0),
    compact(inputs.length),
    ...inputs.map(({ outpoint }) => Buffer.concat([outpoint, uint(0, 1), uint(0xffffffff, 4)])),
    compact(outputs.length),
    ...outputs.map((script) => Buffer.concat([uint(546, 8), prefixed(script)])),
    ...(segwit ? inputs.map(({ witness = [] }) => Buffer.concat([compact(witness.length), ...witness.map(prefixed)])) : []),
    uint(0, 4),
  ]);
}

/** Returns a block of these transactions after a coinbase that pays nobody and differs at each height. */
export function blockBytes(
  height: number,
  transactions: readonly Transaction[],
  coinbase: readonly Uint8Array[] = [Uint8Array.of(0x51)],
): Uint8Array {
  const first = Buffer.from(transactionBytes({ inputs: [{ outpoint: outpointOf('00'.repeat(32), 0xffffffff) }], outputs: coinbase }));
  // The sequence number of the coinbase's input makes its id unique.
  first.writeUInt32LE(height, 4 + 1 + 36 + 1);
  return sealed(
    Buffer.concat([
      new Uint8Array(68),
      uint(1_700_000_000 + height, 4),
      new Uint8Array(8),
      compact(1 + transactions.length),
      first,
      ...transactions.map(transactionBytes),
    ]),
  );
}

/** Returns a script with a message of these integers, in one push with a length of four bytes. */
export const messageScript = (integers: readonly (bigint | number)[]): Uint8Array => messageOf(integers, 0);

/** Returns a taproot script that is different for each number. */
export const taproot = (number: number): Uint8Array => Buffer.concat([Uint8Array.of(0x51, 32), new Uint8Array(31), uint(number, 1)]);
