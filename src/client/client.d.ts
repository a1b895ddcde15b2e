/** The kinds of rune activity. */
export type Operation = 'etching' | 'mint' | 'burn' | 'send' | 'receive';
/** A window of a list: `results` has at most `limit` of the list's `total` entries, beginning at entry `offset`. */
export interface Page<Entry> {
    readonly limit: number;
    readonly offset: number;
    readonly total: number;
    readonly results: readonly Entry[];
}
/** Id, number and names of a rune. */
export interface Rune {
    readonly id: string;
    readonly number: number;
    readonly name: string;
    readonly spaced_name: string;
}
/** A block and one of its transactions. */
export interface TransactionLocation {
    readonly block_hash: string;
    readonly block_height: number;
    readonly tx_id: string;
    readonly tx_index: number;
    /** Seconds since 1970. */
    readonly timestamp: number;
}
/** One record: something that happened to a rune. Hashes begin with `0x` in dialect `contract` but not in `hiro`. */
export interface Activity {
    readonly rune: Rune;
    /** Left out in etchings, in mints, in burns of runes that no address held, and if a script has no address. */
    readonly address?: string;
    /** Only in sends, and left out if the script of the output has no address. */
    readonly receiver_address?: string;
    /** In units of the rune, as a decimal string with the rune's number of decimals. It may be too large for `Number`. */
    readonly amount?: string;
    readonly operation: Operation;
    readonly location: TransactionLocation & {
        readonly vout?: number;
        /** The output in hex. In dialect `hiro` the index follows: `txid:vout`. */
        readonly output?: string;
    };
}
/** A window of records. Its `total` is 0 for an id that the mirror does not have. */
export interface ActivityPage extends Page<Activity> {
}
/** A window of the activity of a rune, newest first. Its records have no `rune`. */
export interface RuneActivityPage extends Page<Omit<Activity, 'rune'>> {
}
/** A rune. Amounts are decimal strings in units of the rune, as in `Activity`. */
export interface Etching extends Rune {
    readonly divisibility: number;
    readonly symbol: string;
    readonly turbo: boolean;
    readonly mint_terms: {
        readonly amount: string | null;
        /** A number of mints; in dialect `hiro` divided by 10^divisibility. */
        readonly cap: string | null;
        /** Heights and offsets above 2^53 are rounded, because they are numbers. */
        readonly height_start: number | null;
        readonly height_end: number | null;
        readonly offset_start: number | null;
        readonly offset_end: number | null;
    };
    /** Only `premine` if the mirror lacks older blocks. */
    readonly supply: {
        readonly current?: string;
        readonly minted?: string;
        readonly total_mints?: string;
        readonly mint_percentage?: string;
        /** True if the next block may mint. */
        readonly mintable?: boolean;
        readonly burned?: string;
        readonly total_burns?: string;
        readonly premine: string;
    };
    readonly location: TransactionLocation;
}
/** A window of the list of etchings, newest first. */
export interface EtchingPage extends Page<Etching> {
}
/** What an address has of a rune. */
export interface Balance {
    readonly rune: Rune;
    /** In units of the rune, as amounts in `Activity`. */
    readonly balance: string;
    readonly address: string;
}
/** A window of the balances of an address, the largest number of smallest units first. */
export interface BalancePage extends Page<Balance> {
}
/** An address that has a rune, or had it. */
export interface Holder {
    /** In units of the rune, as amounts in `Activity`. */
    readonly balance: string;
    readonly address: string;
}
/** A window of the holders of a rune, the largest balance first. */
export interface HolderPage extends Page<Holder> {
    /** Set for a rune with many holders: the list is exact after this block, not after the highest. */
    readonly block_height?: number;
}
/** An unspent output with runes. */
export interface UnspentOutput {
    /** The outpoint, `txid:vout`. */
    readonly output: string;
    /** Left out if the script of the output has no address. */
    readonly address?: string;
    readonly location: TransactionLocation;
    readonly runes: readonly {
        readonly rune: Rune;
        readonly balance: string;
    }[];
}
/** What a mirror knows of an output, after its highest block. */
export interface OutputAnswer extends Partial<UnspentOutput> {
    /** The highest block of the mirror. */
    readonly block_height: number;
    readonly block_hash: string;
    readonly output: string;
    /** Empty if the output is spent, never had runes, or is not in the chain up to this block. */
    readonly runes: UnspentOutput['runes'];
}
/** A window of the unspent outputs of an address, newest first. */
export interface OutputPage extends Page<UnspentOutput> {
    /** The highest block of the mirror. */
    readonly block_height: number;
    readonly block_hash: string;
}
/** The manifest, `runes/v1/manifest.json`: the options of the build and what the mirror covers. */
export interface MirrorManifest {
    readonly generator: 'rune-activity-mirror';
    /** Version of the files. This module reads only the version that it was built for. */
    readonly format: 1;
    readonly version: string;
    /** Set when the mirror has invented blocks, of the sample of this program. */
    readonly sample?: true;
    readonly layout: 'files' | 'archive';
    readonly dialect: 'contract' | 'hiro';
    /** Ascending; the first is the default limit, the last the largest. */
    readonly page_sizes: readonly number[];
    /** True when blocks can be filtered by operation. */
    readonly operation_pages: boolean;
    readonly compress?: readonly ('br' | 'gz')[];
    /** The public URL of the mirror, with a trailing slash; set when the build has the option `site_url`. */
    readonly site_url?: string;
    /** Set when `activity/` also has all records as Parquet files. */
    readonly parquet?: true;
    /** In layout `archive`: the file that names all others, and its size in bytes. */
    readonly archive?: {
        readonly root: string;
        readonly bytes: number;
    };
    /** In layout `files` with lists by rune and by address: the same, for the files of these lists. */
    readonly list_root?: {
        readonly root: string;
        readonly bytes: number;
    };
    /** Ranges of consecutive heights with activity: first and last height, both inclusive. */
    readonly heights: readonly (readonly [first: number, last: number])[];
    /** The last block that was read, also if it has no activity. Older mirrors do not say it. */
    readonly tip?: {
        readonly height: number;
        readonly hash: string;
    };
    readonly blocks: number;
    readonly transactions: number;
    readonly records: number;
    /**
     * Input rows without records in this mirror, because the input's runes table lacks their rune. `runes` names up to 20
     * of these runes.
     */
    readonly left_out?: {
        readonly rows: number;
        readonly runes: readonly string[];
        readonly more_runes: number;
    };
    /** Which blocks were read, and by which rules: ranges of heights, both ends included. A block that was read may be empty. */
    readonly sources?: readonly {
        readonly rules: 'ord' | 'bitcoin-indexer' | 'server';
        readonly blocks: readonly (readonly [first: number, last: number])[];
    }[];
    /** Further parts of the API that the mirror has. Requests for others get 501. */
    readonly lists?: {
        /** `counts` is set when the supply of etchings has the counts of mints and burns. */
        readonly etchings?: {
            readonly total: number;
            readonly counts?: true;
        };
        /** `unbalanced` names runes that have a balance below zero, because the data is wrong. Such balances are left out. */
        readonly balances?: {
            readonly unbalanced?: {
                readonly runes: readonly string[];
                readonly more_runes: number;
            };
        };
        /** A list of holders that is not exact after the highest block is so after the block `block_height`, or a later one. */
        readonly holders?: {
            readonly block_height?: number;
        };
        /** Unspent outputs. */
        readonly outputs?: Readonly<Record<string, never>>;
        /** Of the blocks in `heights`. */
        readonly rune_activity?: Readonly<Record<string, never>>;
        readonly address_activity?: Readonly<Record<string, never>>;
    };
    readonly files: number;
    readonly bytes: number;
    /** 64 hex digits. Two mirrors with the same digest have the same data. */
    readonly digest: string;
}
/** Selects a window of a list. */
export interface WindowQuery {
    /** In entries of the list; 0 by default. */
    readonly offset?: number | undefined;
    /** 1 to the mirror's largest page size; by default its smallest page size. */
    readonly limit?: number | undefined;
    /** Cancels the request; the promise then rejects with the signal's reason. */
    readonly signal?: AbortSignal | undefined;
}
/** Selects a window of a rune's activity. */
export interface RuneActivityQuery extends WindowQuery {
    /** Only records with this address, compared as it is. Bech32 may be in upper case. */
    readonly address?: string | undefined;
}
/** Selects a window of activity. Set exactly one of `transaction` and `block`. */
export interface MirrorQuery extends WindowQuery {
    /** 64 hex digits, with or without `0x`. */
    readonly transaction?: string | undefined;
    /** A height, or a hash as 64 hex digits, with or without `0x`. */
    readonly block?: string | number | undefined;
    /** Filters the records of a block. Ignored for a transaction. */
    readonly operation?: Operation | undefined;
}
export interface ActivityQuery extends MirrorQuery {
    /** The URL before `/runes/v1`, with or without a trailing slash. In a browser it may be relative to the page. */
    readonly base: string | URL;
}
export interface MirrorOptions {
    /** Replaces the global `fetch`, for example to send an API key. */
    readonly fetch?: typeof globalThis.fetch | undefined;
    /**
     * How long the manifest may be used from memory, in milliseconds; 10,000 by default.
     * In layout `archive`, a new block or transaction may stay unknown for that long.
     */
    readonly freshMs?: number | undefined;
}
/** An answer that is not a list: the mirror refuses the request or cannot be read. */
export declare class MirrorError extends Error {
    readonly name = "MirrorError";
    /**
     * 400 when the request is invalid, 501 when the mirror lacks that part of the API; `message` is then the API's own.
     * 503 when the mirror cannot be read; `cause` may tell why.
     */
    readonly statusCode: number;
    /** The reason phrase of the status: `Bad Request`, `Service Unavailable`. */
    readonly error: string;
    constructor(statusCode: number, error: string, message: string, options?: {
        cause?: unknown;
    });
}
/**
 * Fetches a window of the activity of a transaction or block. Rejects with a MirrorError, with a TypeError when the
 * query names no list or `base` is not a valid URL, or with the signal's reason. Queries with the same base share a
 * Mirror and its memory.
 */
export declare function activity({ base, ...query }: ActivityQuery): Promise<ActivityPage>;
/**
 * A mirror, identified by the URL before `/runes/v1`. Only its files are fetched, so the host needs no code, but must
 * allow this origin to read them (CORS). Files are revalidated on every read (`cache: 'no-cache'`), except the manifest
 * while it is fresh, and the files of layout `archive`, which never change.
 *
 * In layout `archive` every answer comes from a single build. In layout `files` an unaligned window may need two pages.
 * While the host replaces its files, or when its cache mixes builds, these two pages may come from different builds.
 * The client notices this unless the builds have the same block and the same number of records.
 */
export declare class Mirror {
    #private;
    /** Throws a TypeError when `base` is not a valid URL. */
    constructor(base: string | URL, { fetch, freshMs }?: MirrorOptions);
    /** Fetches a window of the activity of a transaction or block; see the function `activity`. */
    activity(query: MirrorQuery): Promise<ActivityPage>;
    /** Fetches a window of the list of all runes, newest first. Rejects like `activity`. */
    etchings(window?: WindowQuery): Promise<EtchingPage>;
    /**
     * Fetches a rune by its id (`840000:3`), number or name. Resolves to undefined when there is no such rune. Rejects like
     * `activity`.
     */
    etching(rune: string | number, signal?: AbortSignal): Promise<Etching | undefined>;
    /** Fetches a window of the balances of an address. Rejects like `activity`. */
    balances(address: string, window?: WindowQuery): Promise<BalancePage>;
    /** Fetches a window of the holders of a rune, given by its id, number or name. Rejects like `activity`. */
    holders(rune: string | number, window?: WindowQuery): Promise<HolderPage>;
    /**
     * Fetches the balance of an address. Resolves to undefined when there is no such rune, or the address never had any of
     * it. Rejects like `activity`.
     */
    holder(rune: string | number, address: string, signal?: AbortSignal): Promise<Holder | undefined>;
    /**
     * Fetches what an output has, given as `txid:vout`. `height` is the height of its block: if the mirror does not have
     * that block yet, this rejects with a MirrorError (503) instead of answering that the output has no runes. Without it,
     * compare `block_height` of the answer yourself. Rejects like `activity`.
     */
    output(output: string, { height, signal }?: {
        readonly height?: number | undefined;
        readonly signal?: AbortSignal | undefined;
    }): Promise<OutputAnswer>;
    /** Fetches a window of the unspent outputs of an address. Rejects like `activity`. */
    outputs(address: string, window?: WindowQuery): Promise<OutputPage>;
    /**
     * Fetches a window of the activity of a rune, by its id (`840000:3`), number or name, newest first. The total of an
     * unknown rune is 0. Rejects like `activity`.
     */
    runeActivity(rune: string | number, { address, ...window }?: RuneActivityQuery): Promise<RuneActivityPage>;
    /** Fetches a window of the activity of an address, newest first. Rejects like `activity`. */
    addressActivity(address: string, window?: WindowQuery): Promise<ActivityPage>;
    /**
     * Returns the status and the exact body with which an API server answers GET for a target, for example
     * `/runes/v1/blocks/840000/activity?limit=5` or `/runes/v1/manifest.json`. Resolves for 400, 404 and 503 too. Rejects
     * with a MirrorError only when the mirror cannot be read at all.
     */
    get(target: string, signal?: AbortSignal): Promise<{
        status: number;
        body: string;
    }>;
    /** Fetches the manifest. Rejects with a MirrorError. */
    manifest(): Promise<MirrorManifest>;
}
