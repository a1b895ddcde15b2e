/** Bitcoin's networks: first block with runes, format of addresses, and difficulty. */
import type { DifficultyRules } from './proofOfWork.ts';

export interface Network {
  /** Height of the first block in which messages are valid. */
  readonly firstHeight: number;
  readonly bech32: string;
  /** Version bytes of base58 addresses. */
  readonly p2pkh: number;
  readonly p2sh: number;
  /** True if the rune UNCOMMON•GOODS (1:0) exists from the first block on. */
  readonly seeded: boolean;
  readonly difficulty: DifficultyRules;
}

const testNetwork = { firstHeight: 0, bech32: 'tb', p2pkh: 0x6f, p2sh: 0xc4, seeded: false } as const;
const difficulty = { retargets: true, hasEasyBlocks: false, firstHash: undefined } as const;
/** Hash of block 840000. */
const FIRST_OF_MAIN = '0000000000000000000320283a032748cef8227873ff4872689bf23f1cda83a5';

/** Networks, by their name in Bitcoin Core's `getblockchaininfo`. */
export const NETWORKS = {
  main: {
    firstHeight: 840_000,
    bech32: 'bc',
    p2pkh: 0x00,
    p2sh: 0x05,
    seeded: true,
    difficulty: { ...difficulty, limit: 0x1d00ffff, firstHash: FIRST_OF_MAIN },
  },
  signet: { ...testNetwork, difficulty: { ...difficulty, limit: 0x1e0377ae } },
  testnet4: { ...testNetwork, difficulty: { ...difficulty, limit: 0x1d00ffff, hasEasyBlocks: true } },
  regtest: { ...testNetwork, bech32: 'bcrt', difficulty: { ...difficulty, limit: 0x207fffff, retargets: false } },
} as const satisfies Readonly<Record<string, Network>>;

export type NetworkName = keyof typeof NETWORKS;

/** Names such as `toString` are no networks, although `in` would find them. */
export const isNetwork = (name: string): name is NetworkName => Object.hasOwn(NETWORKS, name);
