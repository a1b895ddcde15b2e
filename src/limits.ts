/**
 * Sizes, counts and times above which the program changes its behaviour: each number is a maximum. Functions take the limits as parameters,
 * so that tests can cross them with little data. They are no flags, because an operator has no reason to change them. Readers of an archive
 * find all sizes that they need in its root.
 */
import type { LevelSteps } from './format/levels.ts';

const KB = 1024;
const MB = 1024 * KB;

// The functions below are marked as pure, so that the bundler can remove the limits that a script does not use.

/** Limits of builds, pulls and verification that change no published byte. */
const WORK_LIMITS = /* @__PURE__ */ (() => ({
  /** Bytes of the changes of blocks in memory (unspent/changeTable.ts). Above it, settled blocks move to sorted files. */
  changesBytes: 128 * MB,
  /** Maximum size of a page of a sorted file, in bytes. A look-up reads one page. A longer entry gets its own page. */
  sortedPageBytes: 4 * KB,
  /** A sorted file is merged with newer ones if it is smaller than this multiple of their total size: fewer are faster to search. */
  mergeBelow: 3,
  /** Blocks that a pull parses before it starts a thread for this, which takes as long as parsing some dozens of blocks. */
  blocksBeforeThread: 250,
  /** Random unspent outputs that are compared when a node continues rows. A lie about one in 1,000 escapes one of 3 million pulls. */
  checkedOutputs: 15_000,
  /** Blocks between two commits of a pull from a node. After a kill, the next pull reads at most as many again. */
  blocksPerCommit: 1000,
  /** Text files in a scan. More need several scans, because DuckDB allocates buffers for each file of a scan. */
  filesPerScan: 64,
  /** Size of the input, in bytes, for which a build keeps freed memory. For more, it returns memory to the system, which takes time. */
  keptInput: 8 * MB,
  /** Records to verify, or rows to sort, for which the process keeps freed memory. For more, it returns memory to the system. */
  keptRecords: 200_000,
  /** Records that one query sorts and renders, unless a single block has more. */
  servedAtOnce: 250_000,
  /** Records after which a batch of complete blocks ends: about 5 MB of JSON. Threads write the batches, if there are several. */
  batchRecords: 8192,
  /** Rows that one query computes and sorts. More are written to files by ranges of keys, and sorted by file (duckdb/sortedRows.ts). */
  sortedAtOnce: 6_000_000,
  /** Records that one step of a build groups or joins, unless a single block has more (duckdb/blockRanges.ts). */
  listedAtOnce: 1_000_000,
  /** Average size of a row of another mirror, in bytes, without spent outputs, both packed and unpacked. A larger file is refused. */
  rowBytes: 2 * KB,
  /** Average size of a block's spent outputs in another mirror's rows. A block has room for 24,400 inputs with runes: 3.4 MB as text. */
  spentBytes: 4 * MB,
  /** Time to read a file of another mirror's rows, in milliseconds. The process that takes longer is killed. */
  rowsReadMs: 10 * 60_000,
  /** Records in the temporary file of a verification. Above it, DuckDB loads the file into its tables, and a new file begins. */
  linesPerLoad: 200_000,
  /** Bytes of a line of this file, unless a record is longer. DuckDB unpacks the records of 2,048 lines at once. */
  lineBytes: 4 * 1024,
}))();

/** Limits that change published bytes. */
const PUBLISHED_LIMITS = /* @__PURE__ */ (() => ({
  /** Heights in a segment of an archive (format/segmentDirectory.ts), whose directory has one line per block. */
  segmentBlocks: 1024,
  /** Entries in a page of a list. Holders that fit into one page are as of the tip, longer lists up to a day behind (`lastRanked`). */
  listPage: 600,
  /** Characters in a gzip member of documents (format/documents.ts): few, because readers inflate complete members. */
  documentMember: 16 * KB,
  /** Characters in a member of the names of all runes. Clients read all members, and longer ones hardly compress better. */
  runesMember: 256 * KB,
  /** Characters in a member of ids and names, whose directories are in the root. With longer members, the root is shorter. */
  lookUpMember: 64 * KB,
  /** Newest blocks that have a file of changes: about a day. A client that is further behind reads its lists again. */
  changesBlocks: 144,
  /** Entries of each list in a file of changes, because anyone can make a block that touches ten times as many runes or outputs. */
  changesEntries: 10_000,
  /** Levels of ids (format/levels.ts), in blocks. With smaller steps, a build writes less per block, but readers search more levels. */
  tableLevels: { steps: [4096, 64], unsettled: 8 } as LevelSteps,
  /** Levels of lists, in blocks. Lists have more entries per block than tables, so their newest level is finer. */
  listLevels: { steps: [4032, 144, 16], unsettled: 8 } as LevelSteps,
}))();

export const LIMITS = /* @__PURE__ */ (() => ({ ...WORK_LIMITS, ...PUBLISHED_LIMITS }))();

export type Limits = Readonly<typeof LIMITS>;
export type PublishedLimits = Readonly<typeof PUBLISHED_LIMITS>;
export type WorkLimits = Readonly<typeof WORK_LIMITS>;

/** Limits of all readers of an archive. Hosts may have their own limits instead. These limits change no published byte. */
export const READER_LIMITS = {
  /** Parsed directories and small files in memory, in bytes, without the root. A Cloudflare worker has 128 MB in total. */
  cachedBytes: 16 * MB,
  /** Pages and documents of one answer that a host keeps. Longer answers bypass the cache, as they would displace many others. */
  keptPages: 150,
  /** Largest file of an archive (`objectSize` of the root) for which readers fetch complete files instead of ranges. */
  readWhole: MB,
  /** Size up to which a reader that needs a file's directory fetches all of it, which saves requests for its other parts. */
  smallFile: 8 * KB,
  /** Largest gap in bytes between two pages that one request reads together: reading the gap costs less than a request. */
  nearBytes: 64 * KB,
  /** Pages of a transaction that a reader reads for the runes of an output, as anyone can make long ones: an answer takes 30 reads. */
  transactionPages: 25,
  /** Bytes per range request of the client's `classifyOutputs`, which reads files of up to 8 MB. */
  groupBytes: MB,
  /** Concurrent requests of a call of the client's `classifyOutputs`. Hosts make further requests wait, or refuse them. */
  concurrentReads: 16,
};
export type ReaderLimits = Readonly<typeof READER_LIMITS>;

/** Limits of a call of the client for unconfirmed transactions: its input, and what it reads. They change no published byte. */
export const PENDING_LIMITS = /* @__PURE__ */ (() => ({
  /** Transactions of a call: some steps take the square of it. Nodes relay at most 64 transactions that depend on each other. */
  transactions: 200,
  /** Total size of the transactions of a call, in bytes: the maximum size of a block. More are refused. */
  transactionBytes: 4 * MB,
  /** Outputs, runes and names that a call looks up in the mirror, with several requests each. Further look-ups fail. */
  lookUps: 1000,
  /** Ledger rows that the transactions of a call make. A stranger's transaction may move many runes to many outputs. */
  movedRows: 100_000,
  /** Runes in the mirror's outputs that the transactions spend. A stranger's output may hold thousands of runes. */
  spentRunes: 20_000,
  /** Maximum number of concurrent requests to the mirror. */
  requestsAtOnce: 8,
}))();
export type PendingLimits = Readonly<typeof PENDING_LIMITS>;

/** Limits of the local server. They change no published byte. */
export const SERVER_LIMITS = /* @__PURE__ */ (() => ({
  /** Maximum size of parsed directories and table blocks in memory, in bytes, without the root. */
  partBytes: 64 * MB,
  /** Inflated pages and documents of an archive in memory, in bytes, with their compressed form. */
  pageBytes: 64 * MB,
  /** Answers from an archive in memory, in bytes. An answer larger than a quarter of it is not cached. */
  answerBytes: 64 * MB,
  /** Maximum size of page files in memory, in bytes. */
  fileBytes: 128 * MB,
  /** Maximum size of a file that is sent from one read, in bytes. Larger files are streamed. */
  streamedBytes: 256 * KB,
  /** Maximum number of open files of an archive. A process may usually have a thousand open files. */
  openFiles: 256,
  /** File parts that an answer reads or inflates without pauses for others. One with 60 records needs at most 132. */
  freeParts: 200,
}))();
export type ServerLimits = Readonly<typeof SERVER_LIMITS>;

export type LimitName = keyof Limits | keyof ReaderLimits | keyof PendingLimits | keyof ServerLimits;

/** Returns the limits that change published bytes. A build with other limits than the last one is a full build. */
export const publishedLimits = (limits: Limits): PublishedLimits =>
  Object.fromEntries(
    (Object.keys(PUBLISHED_LIMITS) as (keyof PublishedLimits)[]).map((name) => [name, limits[name]]),
  ) as unknown as PublishedLimits;

/** Number of times that each limit was crossed in this process. Tests require that small limits are crossed. */
export const crossings = new Map<LimitName, number>();

export const countCrossing = (name: LimitName): void => void crossings.set(name, (crossings.get(name) ?? 0) + 1);

/** True if a value is above a limit. If so, counts the crossing. */
export function exceeds<Name extends LimitName>(limits: Readonly<Record<Name, number>>, name: Name, value: number): boolean {
  if (value <= limits[name]) return false;
  countCrossing(name);
  return true;
}
