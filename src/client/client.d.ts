/** What a record says that happened to a rune. */
export type Operation = 'etching' | 'mint' | 'burn' | 'send' | 'receive';
/** One thing that happened to a rune. Hashes begin with `0x` in dialect `contract`, and not in `hiro`. */
export interface Activity {
    readonly rune: {
        readonly id: string;
        readonly number: number;
        readonly name: string;
        readonly spaced_name: string;
    };
    readonly address?: string;
    readonly receiver_address?: string;
    /** A decimal number of whole runes, with as many decimals as the rune has. Too large for `Number`. */
    readonly amount?: string;
    readonly operation: Operation;
    readonly location: {
        readonly block_hash: string;
        readonly block_height: number;
        readonly tx_id: string;
        readonly tx_index: number;
        readonly vout?: number;
        /** The output as hex; in dialect `hiro` with its index, `txid:vout`. */
        readonly output?: string;
        /** Seconds since 1970. */
        readonly timestamp: number;
    };
}
/** A window of a list: `results` are the records from number `offset` on, at most `limit`, of `total`. */
export interface ActivityPage {
    readonly limit: number;
    readonly offset: number;
    /** 0 for an id that the mirror does not have. */
    readonly total: number;
    readonly results: readonly Activity[];
}
/** What a mirror holds: `runes/v1/manifest.json`. */
export interface MirrorManifest {
    readonly generator: 'rune-activity-mirror';
    readonly version: string;
    readonly layout: 'files' | 'packed';
    readonly dialect: 'contract' | 'hiro';
    /** Ascending; the first is the default limit, the last the largest. */
    readonly page_sizes: readonly number[];
    /** Whether blocks can be asked for by operation. */
    readonly operation_pages: boolean;
    readonly compress?: readonly ('br' | 'gz')[];
    /** The public address of the mirror, with a slash at its end, when its build was told. */
    readonly site_url?: string;
    /** Whether all records lie in `activity/` as Parquet files too. */
    readonly parquet?: true;
    readonly transaction_prefix?: number;
    /** Runs of consecutive heights with activity, both ends included. */
    readonly heights: readonly (readonly [first: number, last: number])[];
    readonly blocks: number;
    readonly transactions: number;
    readonly records: number;
    /** Ledger rows of the input that are in no answer, because their rune is not in its runes table. `runes` names up to 20 of their runes. */
    readonly left_out?: {
        readonly rows: number;
        readonly runes: readonly string[];
        readonly more_runes: number;
    };
    readonly files: number;
    readonly bytes: number;
    /** 64 hex digits: two mirrors with the same digest hold the same data. */
    readonly digest: string;
}
/** A window of a mirror's list. Exactly one of `transaction` and `block` is given. */
export interface MirrorQuery {
    /** 64 hex digits, with or without `0x`. */
    readonly transaction?: string | undefined;
    /** A height, or a hash as 64 hex digits, with or without `0x`. */
    readonly block?: string | number | undefined;
    /** In records; 0 unless given. */
    readonly offset?: number | undefined;
    /** 1 to the mirror's largest page size; its smallest page size unless given. */
    readonly limit?: number | undefined;
    /** Of a block, only these records. A transaction's list has all of them, whatever this says. */
    readonly operation?: Operation | undefined;
    /** Ends the waiting; the promise then rejects with the signal's reason. */
    readonly signal?: AbortSignal | undefined;
}
export interface ActivityQuery extends MirrorQuery {
    /** The address before `/runes/v1`, with or without a slash at its end; in a browser it may be relative to the page. */
    readonly base: string | URL;
}
export interface MirrorOptions {
    /** Another way to fetch, such as one that sends a key. */
    readonly fetch?: typeof globalThis.fetch | undefined;
    /**
     * How long the manifest and the index of layout `packed` may be used from memory, in milliseconds: 10,000 unless given. A block or transaction that is
     * new to a mirror of layout `packed` may be unknown for so long.
     */
    readonly freshMs?: number | undefined;
}
/** Why there is no answer. */
export declare class MirrorError extends Error {
    readonly name = "MirrorError";
    /** 400 when the request is wrong (`message` is the API's own); 503 when the mirror cannot be read, now or at all (`cause` may tell more). */
    readonly statusCode: number;
    /** The status in words: `Bad Request`, `Service Unavailable`. */
    readonly error: string;
    constructor(statusCode: number, error: string, message: string, options?: {
        cause?: unknown;
    });
}
/**
 * A window of a transaction's or a block's activity. Rejects with a MirrorError, with a TypeError for a query that names no list or no address, and with
 * the signal's reason. Queries of one base share a Mirror, and so what is in its memory.
 */
export declare function activity({ base, ...query }: ActivityQuery): Promise<ActivityPage>;
/**
 * A mirror, by the address before `/runes/v1`. Only its files are fetched, so its host needs no code; it must let this origin read them (CORS). What is
 * read is asked for again each time (`cache: 'no-cache'`), but for the manifest and the index while they are fresh.
 *
 * In layout `packed` all that goes into an answer is of one build. In layout `files` a window that is no page is cut out of two; while the host is
 * replacing its files, or has a cache that mixes builds, pages of two builds cannot always be told apart: a correction that changes neither the
 * number of records nor the block is seen in one and not in the other.
 */
export declare class Mirror {
    #private;
    /** Throws a TypeError when `base` is no address. */
    constructor(base: string | URL, { fetch, freshMs }?: MirrorOptions);
    /** A window of a transaction's or a block's activity; see `activity`. */
    activity(query: MirrorQuery): Promise<ActivityPage>;
    /**
     * The status and the body, to the byte, that a server of the API gives for GET of a request target, such as
     * `/runes/v1/blocks/840000/activity?limit=5` or `/runes/v1/manifest.json`. Where that is 400, 404 or 503 it is no error here. Rejects with a
     * MirrorError when the mirror cannot be read at all.
     */
    get(target: string, signal?: AbortSignal): Promise<{
        status: number;
        body: string;
    }>;
    /** What the mirror holds. Rejects with a MirrorError. */
    manifest(): Promise<MirrorManifest>;
}
