/** Id of a rune as one number: block × 2^20 + transaction. Sorts like the id, because no block has 2^20 transactions. */
export type RuneId = number;

const TRANSACTIONS = 2 ** 20;

export const runeId = (block: number, tx: number): RuneId => block * TRANSACTIONS + tx;

export const blockOf = (id: RuneId): number => Math.floor(id / TRANSACTIONS);

/** Returns an id in the API's form, `block:tx`. */
export const runeIdText = (id: RuneId): string => `${Math.floor(id / TRANSACTIONS)}:${id % TRANSACTIONS}`;

/** Converts the id in a message. Returns -1 for an id that no rune can have. */
export const knownId = ({ block, tx }: { readonly block: bigint; readonly tx: bigint }): RuneId =>
  block >= 2n ** 32n || tx >= BigInt(TRANSACTIONS) ? -1 : runeId(Number(block), Number(tx));
