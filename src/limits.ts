/**
 * Sizes, counts and depths at which the program changes its behaviour. Functions take the limits as parameters, so that
 * tests can cross them with little data. The limits are not flags, because an operator has no reason to change them.
 *
 * A limit is inclusive: behaviour changes above it. The state of a build has the limits that change published bytes
 * (PUBLISHED). A later build with other published limits writes all files again. Readers of an archive do not need the
 * limits of the build: the root of the archive has all sizes that readers need. Constants of formats and of the runes
 * protocol are defined beside the format or the rule.
 */
import type { LevelSteps } from './format/levels.ts';

const KB = 1024;
const MB = 1024 * KB;

// The functions below are marked as pure, so that the bundler can remove the limits that a script does not use.

/** Limits of builds, pulls and verification. */
export const LIMITS = /* @__PURE__ */ (() => ({
  /**
   * Maximum size of a pull's journal (unspent/journal.ts), in bytes. Each pull reads the complete journal. Above this
   * size, blocks that no reorganisation can replace move to sorted files (unspent/sortedFile.ts).
   */
  journalBytes: 128 * MB,
  /**
   * Maximum size of the journal records in memory, in bytes. Above it, a pull writes to disk: first the rows of the
   * blocks, then the journal records.
   */
  pendingBytes: 32 * MB,
  /** Maximum size of a page of a sorted file, in bytes. A look-up reads one page. A longer entry gets its own page. */
  sortedPageBytes: 4 * KB,
  /**
   * A sorted file (unspent/sortedFile.ts) is merged with newer files if it is smaller than this multiple of their total
   * size. Fewer files are faster to search.
   */
  mergeBelow: 3,
  /**
   * Number of blocks that a pull parses in its main thread. A thread of its own parses further ones. Starting it takes as
   * long as parsing some dozens of blocks.
   */
  blocksBeforeThread: 250,
  /**
   * When a node continues rows: number of random unspent outputs that the pull compares with the node. If the rows lie
   * about one in 1,000 outputs, one of 3 million pulls fails to notice.
   */
  checkedOutputs: 15_000,
  /**
   * Number of blocks between two commits of a pull from a node. After a kill, the next pull reads at most this many
   * blocks again.
   */
  blocksPerCommit: 1000,
  /**
   * A pull reads the known runes from DuckDB as texts of many runes, with one line per rune, because reading one row
   * per rune takes 1.7 times as long. This limit is the maximum number of runes per text.
   */
  runesPerText: 10_000,
  /**
   * Maximum number of text files in a scan. More files need several scans, because DuckDB allocates buffers for every
   * file of a scan.
   */
  filesPerScan: 64,
  /**
   * Maximum size of the input, in bytes, for which a build's process keeps freed memory. For more input, it returns
   * freed memory to the system, which takes CPU time but keeps the process within its memory limit.
   */
  keptInput: 8 * MB,
  /**
   * Maximum number of records to verify, or of rows to sort, for which the process keeps freed memory. For more, it
   * returns freed memory to the system.
   */
  keptRecords: 200_000,
  /** Maximum number of records that one query sorts and renders, unless a single block has more. */
  servedAtOnce: 250_000,
  /**
   * Number of records after which a batch of complete blocks ends: about 5 MB of JSON. A build with several batches
   * writes them in threads.
   */
  batchRecords: 8192,
  /**
   * Maximum number of rows that are computed and sorted in one query. More rows are first written to files by ranges of
   * keys, and then sorted file by file (duckdb/sortedRows.ts).
   */
  sortedAtOnce: 6_000_000,
  /** Maximum number of records that one step of a build groups or joins, unless a single block has more (duckdb/blockRanges.ts). */
  listedAtOnce: 1_000_000,
  /**
   * A build compares the ids of new transactions with the ids of the last build (format/ids.ts). If these are more
   * than this number per new transaction, the build looks up each transaction. Otherwise it reads all ids, because one
   * look-up takes as long as reading this number of entries.
   */
  entriesPerLookUp: 200,
  /**
   * Maximum average size of another mirror's rows, in bytes per row, without the spent outputs. Together with
   * `spentBytes`, it bounds the size of a file before and after unpacking. A pull refuses a larger file.
   */
  rowBytes: 2 * KB,
  /**
   * Maximum average size of the spent outputs of a block in another mirror's rows, in bytes. A pull refuses a file with
   * more. A block has room for 24,400 inputs with runes, which are 3.4 MB as text.
   */
  spentBytes: 4 * MB,
  /** Maximum time to read a file of another mirror's rows, in milliseconds. The process that takes longer is killed. */
  rowsReadMs: 10 * 60_000,
  /**
   * Maximum number of records in the temporary file of a verification. Above it, DuckDB loads the file into its tables,
   * and a new file begins.
   */
  linesPerLoad: 200_000,
  // The limits below change published bytes (PUBLISHED).
  /**
   * Maximum number of heights in a segment of an archive (format/segmentDirectory.ts). Readers cache a segment's
   * directory, which has one line per block.
   */
  segmentBlocks: 1024,
  /**
   * Maximum number of entries in a page of a list. Readers need milliseconds per page. A list of holders that fits into
   * one page always shows the balances at the tip. Longer lists may be about a day behind (`lastRanked` in format/levels.ts).
   */
  listPage: 600,
  /**
   * Maximum number of characters in a gzip member of a document file (format/documents.ts). It is small, because
   * readers inflate complete members. A longer document gets its own member.
   */
  documentMember: 16 * KB,
  /**
   * Maximum number of characters in a member of the names of all runes. Clients read all members, so members may be
   * long. Even longer members hardly compress better.
   */
  runesMember: 256 * KB,
  /**
   * Maximum number of characters in a member of ids and names, whose directories are in the root. With longer members,
   * the root is shorter.
   */
  lookUpMember: 64 * KB,
  /**
   * Number of newest blocks that have a file of changes: about a day of blocks. A client that is further behind reads
   * its lists again.
   */
  changesBlocks: 144,
  /**
   * Maximum number of entries of each list in a file of changes. The limit keeps the file small, because anyone can
   * make a block that touches ten times as many runes, addresses or outputs.
   */
  changesEntries: 10_000,
  /**
   * Levels of ids (format/levels.ts), in blocks. With smaller steps, a build writes less per new block,
   * but readers search more levels.
   */
  tableLevels: { steps: [4096, 64], unsettled: 8 } as LevelSteps,
  /** Levels of lists, in blocks. Lists have more entries per block than tables, so their newest level is finer. */
  listLevels: { steps: [4032, 144, 16], unsettled: 8 } as LevelSteps,
}))();

export type Limits = Readonly<typeof LIMITS>;
/** Limits that change published bytes. */
export type PublishedLimits = Pick<Limits, (typeof PUBLISHED)[number]>;
/** Limits that change no published byte. */
export type WorkLimits = Omit<Limits, keyof PublishedLimits>;

const PUBLISHED = [
  'segmentBlocks',
  'listPage',
  'documentMember',
  'runesMember',
  'lookUpMember',
  'changesBlocks',
  'changesEntries',
  'tableLevels',
  'listLevels',
] as const;

/**
 * Limits of all readers of an archive. Hosts may have their own limits instead. These limits change no published byte.
 */
export const READER_LIMITS = {
  /**
   * Maximum size of parsed directories and small files in memory, in bytes, without the root. A
   * Cloudflare worker has 128 MB in total.
   */
  cachedBytes: 16 * MB,
  /**
   * Maximum number of pages and documents of one answer that a host keeps in memory. A longer answer bypasses the
   * cache, because its pages would displace those of many other answers. An answer with 60 records needs fewer.
   */
  keptPages: 150,
  /**
   * Readers fetch and keep complete files of an archive, instead of requesting ranges, if the maximum size of its files
   * (`objectSize` of the root) is at most this number of bytes.
   */
  readWhole: MB,
  /**
   * When a reader needs the directory of a file of at most this size, in bytes, it fetches and keeps the complete file.
   * After the directory, the caller reads other parts of the file. Fetching a small file completely saves the requests
   * for these parts, each with half a kilobyte of headers.
   */
  smallFile: 8 * KB,
  /**
   * Largest gap in bytes between two pages that one request reads together. To read the gap costs less than to send
   * another request.
   */
  nearBytes: 64 * KB,
  /**
   * Maximum number of pages of a transaction that a reader reads to find the runes of an output. For a longer
   * transaction, the answer says that the mirror cannot tell the runes. Anyone can make transactions of any length, and
   * such an answer must not cost more than other answers. With the reads of ids and of the directory, the
   * answer takes up to 30 reads.
   */
  transactionPages: 25,
  /**
   * Maximum number of bytes per range request of the client's `classifyOutputs`. A file of an archive may have 8 MB, so
   * reading all of it takes several requests.
   */
  groupBytes: MB,
  /**
   * Maximum number of concurrent requests of a call of the client's `classifyOutputs`. Hosts answer further requests
   * one after another, or refuse them.
   */
  concurrentReads: 16,
};
export type ReaderLimits = Readonly<typeof READER_LIMITS>;

/**
 * Limits of the client for unconfirmed transactions. They bound the input of a call and what the call reads. They
 * change no published byte.
 */
export const PENDING_LIMITS = /* @__PURE__ */ (() => ({
  /**
   * Maximum number of transactions of a call. The time of some steps grows with the square of this number. Nodes relay
   * at most 64 transactions that depend on each other.
   */
  transactions: 200,
  /** Maximum total size of the transactions of a call, in bytes: the maximum size of a block. More are refused. */
  transactionBytes: 4 * MB,
  /**
   * Maximum number of outputs, runes and names that one call looks up in the mirror. Each look-up takes several
   * requests. Further look-ups fail.
   */
  lookUps: 1000,
  /**
   * Maximum number of ledger rows that the transactions of a call make. A stranger's transaction may move many runes to
   * many outputs.
   */
  movedRows: 100_000,
  /**
   * Maximum total number of runes in the mirror's outputs that the transactions spend. A stranger's output may hold
   * thousands of runes.
   */
  spentRunes: 20_000,
  /** Maximum number of concurrent requests to the mirror, or to an Esplora server. */
  requestsAtOnce: 8,
  /** Maximum number of requests of a call to an Esplora server. One more request fails. */
  esploraRequests: 1000,
  /** Maximum total size of all answers of an Esplora server, in bytes. */
  esploraBytes: 32 * MB,
  /** Maximum time until all answers of an Esplora server have arrived, in milliseconds. */
  esploraMs: 30_000,
}))();
export type PendingLimits = Readonly<typeof PENDING_LIMITS>;

/** Limits of the local server. They change no published byte. */
export const SERVER_LIMITS = /* @__PURE__ */ (() => ({
  /** Maximum size of parsed directories and table blocks in memory, in bytes, without the root. */
  partBytes: 64 * MB,
  /**
   * Maximum size of inflated pages and documents of an archive in memory, in bytes, including their compressed form.
   */
  pageBytes: 64 * MB,
  /**
   * Maximum size of answers from an archive in memory, in bytes. An answer larger than a quarter of this size is not
   * cached.
   */
  answerBytes: 64 * MB,
  /** Maximum size of page files in memory, in bytes. */
  fileBytes: 128 * MB,
  /** Maximum size of a file that is sent from one read, in bytes. Larger files are streamed. */
  streamedBytes: 256 * KB,
  /** Maximum number of open files of an archive. A process may usually have a thousand open files. */
  openFiles: 256,
  /** Maximum number of folders for which the server remembers, for one second, whether they are inside the build. */
  folders: 10_000,
  /**
   * Maximum number of requests of a connection that wait for the answers to earlier requests of this connection. One
   * more request closes the connection.
   */
  pending: 1000,
  /** Maximum number of open connections. The server closes further connections immediately. */
  connections: 20_000,
  /**
   * Maximum size of request line and headers together, in bytes. The documentation promises this value, which is Node's
   * default.
   */
  headerBytes: 16 * KB,
  /**
   * Maximum number of file parts that an answer reads or inflates without waiting. For further parts, it takes turns
   * with other answers. An answer with 60 records needs at most 132 parts.
   */
  freeParts: 200,
}))();
export type ServerLimits = Readonly<typeof SERVER_LIMITS>;

export type LimitName = keyof Limits | keyof ReaderLimits | keyof PendingLimits | keyof ServerLimits;

/** Returns the limits that change published bytes. A build with other limits than the last one is a full build. */
export const publishedLimits = (limits: Limits): PublishedLimits =>
  Object.fromEntries(PUBLISHED.map((name) => [name, limits[name]])) as unknown as PublishedLimits;

/** Number of times that each limit was crossed in this process. Tests require that small limits are crossed. */
export const crossings = new Map<LimitName, number>();

export const countCrossing = (name: LimitName): void => void crossings.set(name, (crossings.get(name) ?? 0) + 1);

/** True if a value is above a limit. If so, counts the crossing. */
export function exceeds<Name extends LimitName>(limits: Readonly<Record<Name, number>>, name: Name, value: number): boolean {
  if (value <= limits[name]) return false;
  countCrossing(name);
  return true;
}
