/** A window of a list: at most `limit` of the list's `total` entries, from entry `offset` on. */
export interface Page<Entry> {
    readonly limit: number;
    readonly offset: number;
    readonly total: number;
    readonly results: readonly Entry[];
}
// Generated from the schemas of the API by `npm run docs`.
/** Id, number and names of a rune. */
export interface Rune {
    /** Height of the block and index of the transaction that etched the rune, as in `840000:3`. */
    readonly id: string;
    /** Number of the rune, in the order of etchings, from 0. */
    readonly number: number;
    /** Name without spacers. */
    readonly name: string;
    /** Name with spacers, the bullets between letters. */
    readonly spaced_name: string;
}
/** Block, transaction and output of the event. */
export interface ActivityLocation {
    /**
     * Dialect `contract`: Block hash, in lower case, with `0x`. Dialect `hiro`: Block hash, in lower case, without
     * `0x`.
     */
    readonly block_hash: string;
    /** Block height. */
    readonly block_height: number;
    /**
     * Dialect `contract`: Transaction id, in lower case, with `0x`. Dialect `hiro`: Transaction id, in lower case,
     * without `0x`.
     */
    readonly tx_id: string;
    /** Index of the transaction in the block, from 0. */
    readonly tx_index: number;
    /** Index of the output in the transaction. Left out if there is no output, as in etchings, mints and some burns. */
    readonly vout?: number;
    /**
     * Dialect `contract`: Id of the transaction of the output, with `0x`; `vout` is its index. Left out if there is no
     * output. Dialect `hiro`: The output as `txid:vout`, without `0x`. Left out if there is no output.
     */
    readonly output?: string;
    /** Block time, in seconds since 1970 (UTC). */
    readonly timestamp: number;
}
/** One event of a rune. Fields without a value are left out, never null. */
export interface Activity {
    readonly rune: Rune;
    /**
     * Address that received, sent or burned the amount. Left out in etchings, in mints, in burns of runes that no
     * address held, and if a script has no address.
     */
    readonly address?: string;
    /**
     * Address that received the amount sent. Only in sends, and left out if the script of the output has no address.
     */
    readonly receiver_address?: string;
    /**
     * Amount of the rune as a decimal number, with the decimals of the rune. A string, because it may need 128 bits.
     */
    readonly amount?: string;
    /** Kind of the event. */
    readonly operation: 'etching' | 'mint' | 'burn' | 'send' | 'receive';
    readonly location: ActivityLocation;
}
/** A window of a list. */
export interface ActivityPage {
    /** The limit that was applied, in records. */
    readonly limit: number;
    /** The offset that was applied, in records. */
    readonly offset: number;
    /** Number of records in the list, whatever the window. 0 for an id that this mirror does not have. */
    readonly total: number;
    /** The records of the window; empty if the offset is past the end. */
    readonly results: readonly Activity[];
}
/** One event of the rune of the list. Fields without a value are left out, never null. */
export interface RuneActivity {
    /**
     * Address that received, sent or burned the amount. Left out in etchings, in mints, in burns of runes that no
     * address held, and if a script has no address.
     */
    readonly address?: string;
    /**
     * Address that received the amount sent. Only in sends, and left out if the script of the output has no address.
     */
    readonly receiver_address?: string;
    /**
     * Amount of the rune as a decimal number, with the decimals of the rune. A string, because it may need 128 bits.
     */
    readonly amount?: string;
    /** Kind of the event. */
    readonly operation: 'etching' | 'mint' | 'burn' | 'send' | 'receive';
    readonly location: ActivityLocation;
}
/** A window of the activity of a rune. */
export interface RuneActivityPage {
    /** The limit that was applied, in records. */
    readonly limit: number;
    /** The offset that was applied, in records. */
    readonly offset: number;
    /** Number of records in the list, whatever the window. 0 for an id that this mirror does not have. */
    readonly total: number;
    /** The records of the window; empty if the offset is past the end. */
    readonly results: readonly RuneActivity[];
}
/** A rune. */
export interface Etching {
    /** Height of the block and index of the transaction that etched the rune, as in `840000:3`. */
    readonly id: string;
    /** Name without spacers. */
    readonly name: string;
    /** Name with spacers, the bullets between letters. */
    readonly spaced_name: string;
    /** Number of the rune, in the order of etchings, from 0. */
    readonly number: number;
    /** Decimals of amounts. */
    readonly divisibility: number;
    /** Currency symbol; `¤` if the rune has none. */
    readonly symbol: string;
    /** True if the rune takes part in future changes of the protocol. */
    readonly turbo: boolean;
    /** Terms of mints; all are null if the rune cannot be minted. */
    readonly mint_terms: {
        /** Amount of a mint. */
        readonly amount: string | null;
        /**
         * Dialect `contract`: Largest number of mints, a whole number. Dialect `hiro`: Largest number of mints, divided
         * by 10^divisibility.
         */
        readonly cap: string | null;
        /** First block in which the rune can be minted. */
        readonly height_start: number | string | null;
        /** First block in which the rune can no longer be minted. */
        readonly height_end: number | string | null;
        /** Blocks from the etching to the first block in which the rune can be minted. */
        readonly offset_start: number | string | null;
        /** Blocks from the etching to the first block in which the rune can no longer be minted. */
        readonly offset_end: number | string | null;
    };
    /** Supply of the rune. Only `premine` if the mirror lacks older blocks. */
    readonly supply: {
        /** Premine plus minted amount, minus burned amount. */
        readonly current?: string;
        /** Sum of all mints. */
        readonly minted?: string;
        /** Number of mints. */
        readonly total_mints?: string;
        /** Mints in percent of the cap. */
        readonly mint_percentage?: string;
        /** True if the rune can be minted in the next block. */
        readonly mintable?: boolean;
        /** Sum of all burns. */
        readonly burned?: string;
        /** Number of burns. */
        readonly total_burns?: string;
        /** Amount that the etching itself created. */
        readonly premine: string;
    };
    /** Block and transaction of the etching. */
    readonly location: {
        /** Block hash. */
        readonly block_hash: string;
        /** Block height. */
        readonly block_height: number;
        /** Transaction id; zeros for the rune that the protocol itself etched. */
        readonly tx_id: string;
        /** Index of the transaction in the block, from 0. */
        readonly tx_index: number;
        /** Block time, in seconds since 1970 (UTC). */
        readonly timestamp: number;
    };
}
/** A window of the list of etchings. */
export interface EtchingPage {
    /** The limit that was applied. */
    readonly limit: number;
    /** The offset that was applied. */
    readonly offset: number;
    /** Number of etchings. */
    readonly total: number;
    /** The etchings of the window, newest first. */
    readonly results: readonly Etching[];
}
/** Balance of an address in a rune. */
export interface Balance {
    readonly rune: Rune;
    /**
     * Amount that the address received, minus the amounts that it sent and burned. A decimal number with the decimals
     * of the rune.
     */
    readonly balance: string;
    /** The address. Bech32 that is all upper case is returned in lower case. */
    readonly address: string;
}
/** A window of the balances of an address. */
export interface BalancePage {
    /** The limit that was applied. */
    readonly limit: number;
    /** The offset that was applied. */
    readonly offset: number;
    /** Number of runes that the address has. */
    readonly total: number;
    /** The balances of the window, the largest number of smallest units first. */
    readonly results: readonly Balance[];
}
/** Balance of an address that has a rune. A request for one address also finds it if its balance is 0 now. */
export interface Holder {
    /**
     * Amount that the address received, minus the amounts that it sent and burned. A decimal number with the decimals
     * of the rune.
     */
    readonly balance: string;
    /** The address. Bech32 that is all upper case is returned in lower case. */
    readonly address: string;
}
/** A window of the holders of a rune. */
export interface HolderPage {
    /**
     * Height of the block after which the list is exact. Only for a rune with many holders that changed lately. Without
     * it, the list is exact after the highest block.
     */
    readonly block_height?: number;
    /** The limit that was applied. */
    readonly limit: number;
    /** The offset that was applied. */
    readonly offset: number;
    /** Number of addresses that have the rune. */
    readonly total: number;
    /** The holders of the window, the largest balance first. */
    readonly results: readonly Holder[];
}
/**
 * An output. If it has no runes, `runes` is empty: the output is spent, never had runes, or is not in the chain up to
 * this block. Address and location are left out if `spent` is null.
 */
export interface OutputAnswer {
    /** Height of the last block that the mirror has read. The answer applies after this block. */
    readonly block_height: number;
    /** Hash of this block. */
    readonly block_hash: string;
    /** The outpoint, `txid:vout`. */
    readonly output: string;
    /** The address; left out if the script of the output has none. */
    readonly address?: string;
    /** Block and transaction of the output. */
    readonly location?: {
        /** Block hash. */
        readonly block_hash: string;
        /** Block height. */
        readonly block_height: number;
        /** Transaction id. */
        readonly tx_id: string;
        /** Index of the transaction in the block, from 0. */
        readonly tx_index: number;
        /** Block time, in seconds since 1970 (UTC). */
        readonly timestamp: number;
    };
    /** The runes of the output, the oldest first. */
    readonly runes: readonly {
        readonly rune: Rune;
        /** Amount of the rune in the output: a decimal number with the decimals of the rune. */
        readonly balance: string;
    }[];
    /**
     * False if the output holds runes, true if it held runes and is spent. Null if no output of this name is known to
     * have held runes up to this block: whether it exists is unknown.
     */
    readonly spent: boolean | null;
    /**
     * The runes that the output held, the oldest first. Only if `spent` is true, or null if it is unknown whether the
     * output held runes.
     */
    readonly held?: readonly {
        readonly rune: Rune;
        /** Amount of the rune in the output: a decimal number with the decimals of the rune. */
        readonly balance: string;
    }[] | null;
}
/** A window of the unspent outputs of an address. */
export interface OutputPage {
    /** Height of the last block that the mirror has read. The answer applies after this block. */
    readonly block_height: number;
    /** Hash of this block. */
    readonly block_hash: string;
    /** The limit that was applied. */
    readonly limit: number;
    /** The offset that was applied. */
    readonly offset: number;
    /** Number of unspent outputs with runes that the address has. */
    readonly total: number;
    /** The outputs of the window, newest first. */
    readonly results: readonly {
        /** The outpoint, `txid:vout`. */
        readonly output: string;
        /** The address; left out if the script of the output has none. */
        readonly address?: string;
        /** Block and transaction of the output. */
        readonly location: {
            /** Block hash. */
            readonly block_hash: string;
            /** Block height. */
            readonly block_height: number;
            /** Transaction id. */
            readonly tx_id: string;
            /** Index of the transaction in the block, from 0. */
            readonly tx_index: number;
            /** Block time, in seconds since 1970 (UTC). */
            readonly timestamp: number;
        };
        /** The runes of the output, the oldest first. */
        readonly runes: readonly {
            readonly rune: Rune;
            /** Amount of the rune in the output: a decimal number with the decimals of the rune. */
            readonly balance: string;
        }[];
    }[];
}
/** Contents and options of a mirror. */
export interface MirrorManifest {
    /** Always `rune-activity-mirror`. */
    readonly generator: 'rune-activity-mirror';
    /** Version of the files. A program that reads another version needs an update, or the mirror a new build. */
    readonly format: 4;
    /** Version of the program. */
    readonly version: string;
    /** True if the mirror has the invented blocks of the sample of this program. Left out otherwise. */
    readonly sample?: true;
    /** Layout of the files. All layouts give the same responses. */
    readonly layout: 'files' | 'archive';
    /** Dialect of responses: in `contract`, hashes begin with `0x`. */
    readonly dialect: 'contract' | 'hiro';
    /** Page sizes, ascending. The first is the default limit, the last the largest. */
    readonly page_sizes: readonly number[];
    /** True if blocks have lists by operation. */
    readonly operation_pages: boolean;
    /** Public URL of the mirror, used in links of its feed. Left out if it was not given. */
    readonly site_url?: string;
    /** Ledger rows as Parquet files. Left out if there are none. `files` and `bytes` do not count these files. */
    readonly rows?: {
        /** Path of the list of these files. */
        readonly index: string;
        /** SHA-256 of this list. */
        readonly sha256: string;
    };
    /** Files of what each of the newest blocks touched. Left out in older mirrors. */
    readonly changes?: {
        /** SHA-256 of the list of these files, `runes/v1/changes/index.json`. */
        readonly sha256: string;
    };
    /** The archive with all lists. Only in layout `archive`. */
    readonly archive?: {
        /** Name of the root, which names all other files. */
        readonly root: string;
        /** Size of the content of the root, in bytes. */
        readonly bytes: number;
    };
    /** The archive with etchings and other lists. Only in layout `files`, if it has any. */
    readonly list_root?: {
        /** Name of the root, which names all other files. */
        readonly root: string;
        /** Size of the content of the root, in bytes. */
        readonly bytes: number;
    };
    /** Ranges of consecutive heights with activity: first and last, both included. */
    readonly heights: readonly (readonly [number, number])[];
    /** Last block that was read, even if it has no activity. Left out if there are no blocks. */
    readonly tip?: {
        /** Height of the block. */
        readonly height: number;
        /** Hash of this block. */
        readonly hash: string;
    };
    /** Blocks with activity. */
    readonly blocks: number;
    /** Transactions with activity. */
    readonly transactions: number;
    /** Records. */
    readonly records: number;
    /**
     * Ledger rows of the input whose rune is not in its runes table. No response has them. Left out if there are none.
     */
    readonly left_out?: {
        /** Number of rows that were left out. A row that is in several files counts once. */
        readonly rows: number;
        /** Ids of their runes, most rows first. */
        readonly runes: readonly string[];
        /** Number of runes that are not listed in `runes`. */
        readonly more_runes: number;
    };
    /** Which blocks were read, and which rules made their records, as far as the input says. */
    readonly sources?: readonly {
        /**
         * `ord`: from a Bitcoin Core node. `bitcoin-indexer`: from a database of bitcoin-indexer. `server`: from a
         * mirror or server of this API that does not name its rules.
         */
        readonly rules: 'ord' | 'bitcoin-indexer' | 'server';
        /** Ranges of heights that were read, ascending: first and last, both included. Some may have no activity. */
        readonly blocks: readonly (readonly [number, number])[];
    }[];
    /** Name of the network in Bitcoin Core, such as `main`. Left out if the input does not name it. */
    readonly network?: string;
    /** Optional parts of the API that the mirror has. Requests for other parts get 501. Left out if there are none. */
    readonly lists?: {
        /** Etchings. Left out if the input has no complete runes table. */
        readonly etchings?: {
            /** Number of etchings. */
            readonly total: number;
            /**
             * True if the supply of etchings has the counts of mints and burns. Left out if the data lacks older
             * blocks.
             */
            readonly counts?: true;
        };
        /** Activity by rune, and by rune and address, of the blocks in `heights`. */
        readonly rune_activity?: Readonly<Record<string, never>>;
        /** Activity by address, of the blocks in `heights`. */
        readonly address_activity?: Readonly<Record<string, never>>;
        /** Balances of addresses. Left out if the data lacks older blocks. */
        readonly balances?: {
            /**
             * Runes with a balance below zero after the highest block, because the data is wrong. Such balances are in
             * no list. Left out if there are no such runes.
             */
            readonly unbalanced?: {
                /** Ids of these runes, the oldest first. */
                readonly runes: readonly string[];
                /** Number of runes that are not listed in `runes`. */
                readonly more_runes: number;
            };
        };
        /** Holders of runes. Left out if the data lacks older blocks. */
        readonly holders?: {
            /**
             * A list of holders that is not exact after the highest block names the block after which it is exact. That
             * block is this one or a later one.
             */
            readonly block_height?: number;
        };
        /** Unspent outputs with runes. Left out if the data is not from a Bitcoin Core node. */
        readonly outputs?: Readonly<Record<string, never>>;
    };
    /** Number of files with pages, including paths by block hash, and of files in `archive/`. */
    readonly files: number;
    /** Total size of these files, in bytes. */
    readonly bytes: number;
    /** SHA-256 over the digests of all blocks. Mirrors with the same digest have the same data. */
    readonly digest: string;
    /**
     * Signed note of the operator: covers all other fields and, by the root, the archive. Left out if the mirror is not
     * signed.
     */
    readonly note?: string;
}
// End of the generated types.
/** Kind of a rune's activity. */
export type Operation = Activity['operation'];
/** A block and one of its transactions. */
export type TransactionLocation = Etching['location'];
/** An unspent output with runes. */
export type UnspentOutput = OutputPage['results'][number];
/** A rune with the fields that a wallet needs to show amounts. */
export interface RuneName extends Rune {
    /** Number of decimals. */
    readonly divisibility: number;
    readonly symbol: string;
}
/** An output that a wallet wants to spend. */
export interface OutputToClassify {
    /** Outpoint, `txid:vout`. */
    readonly outpoint: string;
    /**
     * Height of the output's block. Without it, the output is unconfirmed, so its class is `unknown`. So is the class
     * for the heights 0 and -1, which Electrum servers give unconfirmed outputs.
     */
    readonly height?: number | undefined;
    /**
     * Hash of the output's block, with or without `0x`. The class is `unknown` if the mirror has another block at this
     * height, or does not know the block's hash because no rune moved in the block.
     */
    readonly blockHash?: string | undefined;
}
/**
 * Class of an output. `runes`: the output holds these runes. `none`: it holds no runes. `spent`: it held runes and is
 * spent. `unknown`: the mirror cannot tell, so do not spend the output.
 */
export type OutputClass = {
    readonly kind: 'runes';
    readonly runes: UnspentOutput['runes'];
    /** Missing if the script of the output has no address. */
    readonly address?: string;
} | {
    readonly kind: 'none' | 'spent';
} | {
    readonly kind: 'unknown';
    readonly reason: string;
};
/** The class of an output, and the outpoint as the caller wrote it. */
export type ClassifiedOutput = OutputClass & {
    readonly outpoint: string;
};
/** A request that can be cancelled. */
export interface Cancellable {
    /** Cancels the request. The promise then rejects with the signal's reason. */
    readonly signal?: AbortSignal | undefined;
}
/** Selects a window of a list. */
export interface WindowQuery extends Cancellable {
    /** Number of entries to skip. 0 by default. */
    readonly offset?: number | undefined;
    /** From 1 to the mirror's largest page size. The default is the mirror's smallest page size. */
    readonly limit?: number | undefined;
}
/** Selects a window of a rune's activity. */
export interface RuneActivityQuery extends WindowQuery {
    /** Selects the records with exactly this address. A bech32 address may be in upper case. */
    readonly address?: string | undefined;
}
/** Selects a window of activity. Set exactly one of `transaction` and `block`. */
export interface MirrorQuery extends WindowQuery {
    /** 64 hex digits, with or without `0x`. */
    readonly transaction?: string | undefined;
    /** Height, or a hash of 64 hex digits, with or without `0x`. */
    readonly block?: string | number | undefined;
    /** Selects the records of a block with this operation. Ignored for a transaction. */
    readonly operation?: Operation | undefined;
}
export interface ActivityQuery extends MirrorQuery {
    /** URL before `/runes/v1`, with or without a trailing slash. In a browser it may be relative to the page. */
    readonly base: string | URL;
}
export interface MirrorOptions {
    /** Replaces the global `fetch`, for example to send an API key. */
    readonly fetch?: typeof globalThis.fetch | undefined;
    /**
     * Milliseconds for which the client uses a manifest before it reads the manifest again. 10,000 by default. In
     * layout `archive`, a new block or transaction may stay unknown for this time.
     */
    readonly freshMs?: number | undefined;
    /** Longest time until a file of the mirror has arrived, in milliseconds. 60,000 by default. */
    readonly timeoutMs?: number | undefined;
    /**
     * Public keys of the operator, as `keygen` prints them. With keys, the client accepts only answers that it can
     * prove by a signature of one of these keys. The mirror must have layout `archive`.
     */
    readonly keys?: readonly string[] | undefined;
    /** With keys: longest time since the manifest was signed, in milliseconds. No limit by default. */
    readonly maxAge?: number | undefined;
    /**
     * With keys: stores the newest state that each key signed, for example in `localStorage`. By default, the `Mirror`
     * keeps these states in memory. The client refuses a state that is older than a stored state of any of its keys.
     */
    readonly remember?: MirrorMemory | undefined;
}
/** A state of a mirror that a key signed. */
export interface SignedState {
    /** Time of signing, such as `2026-11-24T00:41:07Z`. */
    readonly time: string;
    /** Name of the root of the archive. */
    readonly root: string;
}
/**
 * Stores the newest signed state of each key. `key` is the text of a public key. Both functions may be asynchronous.
 * Clients that share this object use it one after another. If several processes share the states, `set` must not
 * replace a state by an older one.
 */
export interface MirrorMemory {
    get(key: string): SignedState | undefined | Promise<SignedState | undefined>;
    set(key: string, state: SignedState): unknown;
}
/** A transaction that is not in a block. */
export interface RawTransaction {
    /** Bytes of the transaction in hex, with or without witnesses. */
    readonly hex: string;
    /**
     * The outputs that the transaction spends, in the order of its inputs. Ignored for outputs that other transactions
     * of the query make.
     */
    readonly inputs?: readonly (ConfirmedOutput | undefined)[] | undefined;
}
/** The block and the script of an output. */
export interface ConfirmedOutput {
    /** Height of the output's block. Needed to know the output's runes. */
    readonly height?: number | undefined;
    /** Hash of the output's block. If it is given, the mirror must have this block at the same height. */
    readonly blockHash?: string | undefined;
    /**
     * Script of the output in hex. Needed only for etchings, which must reveal their name by spending a taproot output.
     * Without a script, or with an empty one, the client assumes taproot.
     */
    readonly script?: string | undefined;
}
/** Selects unconfirmed transactions. */
export interface PendingQuery extends Cancellable {
    /** At most 200 transactions, of at most 4 MB together, in any order. */
    readonly transactions: readonly RawTransaction[];
    /** `main` by default. */
    readonly network?: 'main' | 'signet' | 'testnet4' | 'regtest' | undefined;
}
/**
 * A rune. If an unconfirmed transaction etches the rune, `etching` replaces the id and the number. Such a rune has
 * names only if the etching gives a name.
 */
export interface PendingRune extends Partial<Rune> {
    /** Id of the unconfirmed transaction that etches the rune. */
    readonly etching?: string;
}
/** An amount that an unconfirmed transaction moves. */
export interface PendingAmount {
    readonly rune: PendingRune;
    /** Decimal string in units of the rune, as in `Activity`. */
    readonly amount: string;
    /** Output, `txid:vout`. Missing in burns without an output. */
    readonly output?: string;
    /** Address of the output. In burns, the address of the sender. Missing if the script has no address. */
    readonly address?: string;
    /** Set if the amount depends on a mint or an etching, which may fail. The reason is in `possible` of the transaction. */
    readonly possible?: true;
}
/** Runes that an unconfirmed transaction moves. Ids have no prefix `0x`, whatever the dialect. */
export interface PendingTransaction {
    readonly tx_id: string;
    readonly unconfirmed: true;
    /**
     * `runes`: the transaction moves runes, or may do so (`possible`). `none`: it moves no runes. `unknown`: it may
     * move any runes. The field `unknown` then has the reasons, and the lists of amounts are empty.
     */
    readonly result: 'runes' | 'none' | 'unknown';
    readonly unknown: readonly string[];
    /** Runes that outputs get, sorted by output, then by rune. */
    readonly coming: readonly PendingAmount[];
    /** Runes of outputs that the transaction spends, sorted by input, then by rune. */
    readonly going: readonly PendingAmount[];
    readonly burned: readonly PendingAmount[];
    /** Runes whose amounts may be different, or 0, once the transaction is in a block. `why` is the reason. */
    readonly possible: readonly {
        readonly rune: PendingRune;
        readonly why: string;
    }[];
    /**
     * Other transactions of the answer that exclude this transaction, because they spend an output that this
     * transaction or one of its parents spends.
     */
    readonly conflicts: readonly string[];
}
/**
 * Runes of unconfirmed transactions, as if the next block had exactly these transactions, in this order. Hashes have no
 * prefix `0x`.
 */
export interface PendingAnswer {
    /** Height of the mirror's highest block. */
    readonly block_height: number;
    readonly block_hash: string;
    /** Parents come before children. */
    readonly transactions: readonly PendingTransaction[];
}
/** A block of the chain. */
export interface BlockPoint {
    readonly height: number;
    /** With or without `0x`. */
    readonly hash: string;
}
/** Digest of the ledger after a block, 64 hex digits. */
export interface LedgerPoint extends BlockPoint {
    readonly digest: string;
}
/** Selects the changes of a mirror. */
export interface ChangesQuery {
    /**
     * Blocks that the caller knows: `since` of the last change, or a single block. At least one of these blocks must be
     * among the mirror's newest 144 blocks. Give several blocks, because a reorganisation may remove some of them.
     * Without `since`, the newest block is the first change.
     */
    readonly since?: BlockPoint | readonly BlockPoint[] | undefined;
    /**
     * Omits blocks that touch none of these addresses. Still yields removed blocks, and blocks with `more`, which may
     * touch these addresses. Also yields the newest block, so that the caller can store its `since`.
     */
    readonly addresses?: readonly string[] | undefined;
    /**
     * Milliseconds between two checks for new blocks: at least 1,000, and 30,000 by default. With 0, the iteration ends
     * after the newest block.
     */
    readonly intervalMs?: number | undefined;
    /** Ends the iteration, which then rejects with the signal's reason. */
    readonly signal?: AbortSignal | undefined;
}
/** The runes, addresses and outputs that a block touched. Each list is sorted by bytes. */
export interface BlockChange extends BlockPoint {
    readonly removed?: undefined;
    /** The nearest lower block whose hash the mirror knows. */
    readonly previous?: BlockPoint;
    /** Ids of runes. */
    readonly runes: readonly string[];
    readonly addresses: readonly string[];
    /** Outputs that received runes, `txid:vout`. */
    readonly made: readonly string[];
    /** Outputs with runes that the block spends. Missing unless all of the mirror's data is from a node. */
    readonly spent?: readonly string[];
    /** True if a list was cut after 10,000 entries. */
    readonly more?: true;
    /** Only with `addresses`: the addresses of the query that the block touched. Complete unless `more` is true. */
    readonly matches?: readonly string[];
    /** Blocks to pass as `since` to a query that continues after this change. */
    readonly since: readonly BlockPoint[];
}
/** A block that a reorganisation removed. */
export interface RemovedBlock extends BlockPoint {
    readonly removed: true;
    /** Blocks to pass as `since` to a query that continues after this change. */
    readonly since: readonly BlockPoint[];
}
/** A new block, or a removed one. */
export type Change = BlockChange | RemovedBlock;
/** Thrown if the mirror refuses a request or cannot be read. */
export declare class MirrorError extends Error {
    readonly name = "MirrorError";
    /**
     * HTTP status code. 400: the request is invalid. 501: the mirror lacks this part of the API. `message` is then the
     * message of the API. 404: the mirror no longer has the changes after `since` (`Mirror.changes`). 503: the mirror
     * cannot be read, or with keys a proof failed; `cause` may then have the reason.
     */
    readonly statusCode: number;
    /** Reason phrase of the status, such as `Bad Request`. */
    readonly error: string;
    constructor(statusCode: number, error: string, message: string, options?: {
        cause?: unknown;
    });
}
/**
 * Fetches a window of the activity of a transaction or block. Rejects with a MirrorError, or with the signal's reason.
 * Rejects with a TypeError if the query names no list or `base` is not a valid URL. Queries with the same base share a
 * Mirror and its cache.
 */
export declare function activity({ base, ...query }: ActivityQuery): Promise<ActivityPage>;
/**
 * Classifies outputs with several mirrors (`Mirror.classify`). An output gets a class only if all mirrors return this
 * class, with the same runes. Otherwise its class is `unknown`. Rejects like `Mirror.classify`, and with a TypeError if
 * `mirrors` is empty. Agreement proves more if the mirrors have keys of different operators.
 */
export declare function classify(mirrors: readonly Mirror[], outputs: readonly OutputToClassify[], options?: Cancellable): Promise<ClassifiedOutput[]>;
/**
 * A mirror, identified by the URL before `/runes/v1`. The client fetches only files. So the host needs no code, but
 * must allow your page to read the files (CORS). Every read revalidates the file (`cache: 'no-cache'`), except a fresh
 * manifest, and files of layout `archive`, which never change.
 *
 * In layout `archive` every answer comes from a single build. In layout `files` a window may overlap two pages. These
 * pages may come from different builds while the host replaces its files, or when its cache mixes builds. The client
 * detects this, unless the block and the number of records are the same in both builds.
 */
export declare class Mirror {
    #private;
    /** Throws a TypeError if `base` is not a valid URL. */
    constructor(base: string | URL, options?: MirrorOptions);
    /** Fetches a window of the activity of a transaction or block. Rejects like the function `activity`. */
    activity(query: MirrorQuery): Promise<ActivityPage>;
    /** Fetches a window of the list of all runes, newest first. Rejects like `activity`. */
    etchings(window?: WindowQuery): Promise<EtchingPage>;
    /**
     * Fetches a rune by its id (`840000:3`), number or name. Resolves to undefined if the rune does not exist. Rejects
     * like `activity`.
     */
    etching(rune: string | number, signal?: AbortSignal): Promise<Etching | undefined>;
    /** Fetches a window of the balances of an address. Rejects like `activity`. */
    balances(address: string, window?: WindowQuery): Promise<BalancePage>;
    /** Fetches a window of the holders of a rune, given by its id, number or name. Rejects like `activity`. */
    holders(rune: string | number, window?: WindowQuery): Promise<HolderPage>;
    /**
     * Fetches the balance of an address in a rune. Resolves to undefined if the rune does not exist, or the address
     * never had any of the rune. Rejects like `activity`.
     */
    holder(rune: string | number, address: string, signal?: AbortSignal): Promise<Holder | undefined>;
    /**
     * Fetches the runes of an output, given as `txid:vout`. `height` is the height of the output's block. If the mirror
     * lacks that block, rejects with a MirrorError (503) instead of answering that the output has no runes. For 0, -1
     * and anything else that is not the height of an output's block, rejects with a MirrorError (400). Without `height`,
     * compare `block_height` of the answer with the height of the output yourself. Rejects like `activity`.
     */
    output(output: string, { height, signal }?: Cancellable & {
        readonly height?: number | undefined;
    }): Promise<OutputAnswer>;
    /**
     * Tells which of up to 1,000 outputs hold runes, so that a wallet does not spend runes by mistake. The result has
     * the order of `outputs`. Only outputs of the class `none` are safe to spend. They may still have inscriptions,
     * which a mirror does not know. The class is `unknown` if the mirror lacks the output's block or has another block
     * at its height, and after any failure; `reason` says why. Rejects only with a TypeError for more than 1,000
     * outputs, or with the signal's reason.
     */
    classify(outputs: readonly OutputToClassify[], { signal }?: Cancellable): Promise<ClassifiedOutput[]>;
    /**
     * Yields all entries of a list, in the list's order. `list` fetches a window, such as
     * `(window) => mirror.holders('DOG•GO•TO•THE•MOON', window)`. All entries are of the same build: if the mirror
     * changes meanwhile, throws a MirrorError (503), and the caller must start again. Also throws the errors of `list`.
     */
    all<Entry>(list: (window: WindowQuery) => Promise<Page<Entry>>, { signal }?: Cancellable): AsyncGenerator<Entry, void, undefined>;
    /** Fetches a window of the unspent outputs of an address. Rejects like `activity`. */
    outputs(address: string, window?: WindowQuery): Promise<OutputPage>;
    /**
     * Fetches a window of the activity of a rune, newest first. The rune is given by its id (`840000:3`), number or name.
     * The total of an unknown rune is 0. Rejects like `activity`.
     */
    runeActivity(rune: string | number, { address, ...window }?: RuneActivityQuery): Promise<RuneActivityPage>;
    /** Fetches a window of the activity of an address, newest first. Rejects like `activity`. */
    addressActivity(address: string, window?: WindowQuery): Promise<ActivityPage>;
    /**
     * Returns the runes that unconfirmed transactions move, as if the next block had exactly these transactions.
     * Rejects with a TypeError for bytes that are not transactions, or for too many of them. Otherwise rejects like
     * `activity`.
     */
    pending(query: PendingQuery): Promise<PendingAnswer>;
    /**
     * Yields each new block with the runes, addresses and outputs that it touches. After a reorganisation, first yields
     * the removed blocks, newest first. Looks for new blocks until `signal` aborts. Rejects with a MirrorError (404) if
     * none of the blocks of `since` is among the mirror's newest 144 blocks, and otherwise like `activity`. After an
     * error, call `changes` again with the last `since`.
     */
    changes(query?: ChangesQuery): AsyncGenerator<Change, void, undefined>;
    /**
     * Yields id, number, names, decimals and symbol of all runes, oldest first. Reads some megabytes for the runes of
     * mainnet. Rejects like `activity`.
     */
    runes({ signal }?: Cancellable): AsyncGenerator<RuneName, void, undefined>;
    /**
     * Returns the status and the exact body with which an API server would answer a GET request for a target such as
     * `/runes/v1/blocks/840000/activity?limit=5` or `/runes/v1/manifest.json`. Also resolves for 400, 404, 501 and 503.
     * Rejects with a MirrorError only if the mirror cannot be read at all.
     */
    get(target: string, signal?: AbortSignal): Promise<{
        status: number;
        body: string;
    }>;
    /** Fetches the manifest. Rejects with a MirrorError. */
    manifest(): Promise<MirrorManifest>;
}
