/** Bitcoin's networks: first block with runes, and format of addresses. */

export interface Network {
  /** Height of the first block in which messages are valid. */
  readonly firstHeight: number;
  readonly bech32: string;
  /** Version bytes of base58 addresses. */
  readonly p2pkh: number;
  readonly p2sh: number;
  /** True if the rune UNCOMMON•GOODS (1:0) exists from the first block on. */
  readonly seeded: boolean;
  /** Hash of the first block with runes. Undefined if pulls begin at height 0. */
  readonly firstHash: string | undefined;
}

const testNetwork = { firstHeight: 0, bech32: 'tb', p2pkh: 0x6f, p2sh: 0xc4, seeded: false, firstHash: undefined } as const;

/** Networks, by their name in Bitcoin Core's `getblockchaininfo`. */
export const NETWORKS = {
  main: {
    firstHeight: 840_000,
    bech32: 'bc',
    p2pkh: 0x00,
    p2sh: 0x05,
    seeded: true,
    firstHash: '0000000000000000000320283a032748cef8227873ff4872689bf23f1cda83a5',
  },
  signet: testNetwork,
  testnet4: testNetwork,
  regtest: { ...testNetwork, bech32: 'bcrt' },
} as const satisfies Readonly<Record<string, Network>>;

export type NetworkName = keyof typeof NETWORKS;

/** Names such as `toString` are no networks, although `in` would find them. */
export const isNetwork = (name: string): name is NetworkName => Object.hasOwn(NETWORKS, name);
