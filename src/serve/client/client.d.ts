import type { Answers } from '../../contract/answerSchemas.ts'; // The published file declares these types (site/clientTypes.ts).
/** A window of a list: at most `limit` of the list's `total` entries, from entry `offset` on. */
export interface Page<Entry> {
    readonly limit: number;
    readonly offset: number;
    readonly total: number;
    readonly results: readonly Entry[];
}
export type Rune = Answers['Rune'];
export type ActivityLocation = Answers['Location'];
export type Activity = Answers['Activity'];
export type ActivityPage = Answers['ActivityList'];
export type RuneActivity = Answers['RuneActivity'];
export type RuneActivityPage = Answers['RuneActivityList'];
export type Etching = Answers['Etching'];
export type EtchingPage = Answers['EtchingList'];
export type Balance = Answers['Balance'];
export type BalancePage = Answers['BalanceList'];
export type Holder = Answers['Holder'];
export type HolderPage = Answers['HolderList'];
export type OutputAnswer = Answers['Output'];
export type OutputPage = Answers['OutputList'];
export type MirrorManifest = Answers['Manifest'];
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
