/** Bitcoin's networks: first block with runes, and the format of addresses. */
export interface Network {
  /** Height of the first block in which messages are valid. */
  readonly firstHeight: number;
  readonly bech32: string;
  /** Version bytes of base58 addresses. */
  readonly p2pkh: number;
  readonly p2sh: number;
  /** True where UNCOMMON•GOODS (1:0) exists from the first block on. */
  readonly seeded: boolean;
}

const testNetwork = { firstHeight: 0, bech32: 'tb', p2pkh: 0x6f, p2sh: 0xc4, seeded: false } as const;

/** Networks by their name in Bitcoin Core's `getblockchaininfo`. */
export const NETWORKS = {
  main: { firstHeight: 840_000, bech32: 'bc', p2pkh: 0x00, p2sh: 0x05, seeded: true },
  signet: testNetwork,
  testnet4: testNetwork,
  regtest: { ...testNetwork, bech32: 'bcrt' },
} as const satisfies Readonly<Record<string, Network>>;
