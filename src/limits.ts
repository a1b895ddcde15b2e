/**
 * Every size, count and depth at which the program changes its behaviour. They are parameters, so that tests can cross
 * them with little data. They are not flags, because an operator has no reason to change them.
 *
 * A limit is inclusive: behaviour changes above it. Limits that change published bytes are stored in the root of an
 * archive or in the state of a build. Readers and later builds use the stored limits. Constants of formats and of the
 * runes protocol are defined beside the format or the rule.
 */

import { areLevelSteps, type LevelSteps } from './format/levels.ts';

/** Limits that change no published byte. */
export interface WorkLimits {
  /**
   * Maximum size of a pull's journal, in bytes, because each pull reads the journal. Above it, settled blocks move to
   * sorted files.
   */
  readonly journalBytes: number;
  /**
   * Maximum size of the journal records in memory, in bytes. Above it, a pull writes first the rows of the blocks and
   * then the records to disk.
   */
  readonly pendingBytes: number;
  /** Maximum size of a page of a sorted file, in bytes. A look-up reads one page. A longer entry gets its own page. */
  readonly sortedPageBytes: number;
  /**
   * A sorted file is merged with newer files if it is smaller than this multiple of their total size. Fewer files are
   * faster to search.
   */
  readonly mergeBelow: number;
  /**
   * Maximum number of outputs of a start that are sorted in memory. More outputs are sorted in parts, which are merged
   * on disk.
   */
  readonly startOutputs: number;
  /**
   * Number of random outputs of a start that a pull compares with the node. If the mirror lies about one in 1,000
   * outputs, the comparison misses this in one of 3 million pulls.
   */
  readonly locatedOutputs: number;
  /**
   * Number of blocks between two commits of a pull from a node. After a kill, the next pull reads at most this many
   * blocks again.
   */
  readonly blocksPerCommit: number;
  /**
   * Maximum number of runes in a text. A pull reads runes as texts with one line per rune, because reading one row per
   * rune takes 1.7 times as long.
   */
  readonly runesPerText: number;
  /**
   * Maximum number of text files in a scan. More files need several scans, because DuckDB allocates buffers for every
   * file of a scan.
   */
  readonly filesPerScan: number;
  /**
   * Maximum size of the input, in bytes, for which a build keeps freed memory. For more input, it returns freed memory
   * to the system, which takes CPU time.
   */
  readonly keptInput: number;
  /**
   * Maximum number of records to verify, or of rows to sort, for which the process keeps freed memory. For more, it
   * returns freed memory to the system.
   */
  readonly keptRecords: number;
  /**
   * Maximum number of records of a source with scattered blocks that is not sorted. Each batch of blocks scans the
   * whole source, so sorting a larger source saves time.
   */
  readonly unsortedRecords: number;
  /**
   * Number of records after which a batch of complete blocks ends: about 5 MB of JSON. A build with several batches
   * writes them in threads.
   */
  readonly batchRecords: number;
  /**
   * Maximum number of rows in one sort of lists. More rows are first divided by key, which reads and writes each row
   * once more.
   */
  readonly sortedAtOnce: number;
  /**
   * Maximum number of records that one step numbers and joins with their pages. More records take several steps, to
   * limit memory.
   */
  readonly listedAtOnce: number;
  /**
   * Number of newest blocks whose spent outputs the state keeps. To build a level of lists again, a build needs the
   * spent outputs of the level's blocks. A reorganisation below the newest two levels causes a full build.
   */
  readonly spentBlocks: number;
  /**
   * Number of entries of a table of ids that a build reads in the time of one look-up. If the table has more entries
   * per new transaction, the build looks up each transaction. Otherwise it reads the complete table.
   */
  readonly entriesPerLookUp: number;
  /**
   * Maximum average size of another mirror's rows, in bytes, without their spent outputs. Applies before and after
   * unpacking.
   */
  readonly rowBytes: number;
  /**
   * Maximum average size of the spent outputs of a block, in bytes. A block has room for 24,400 inputs with runes,
   * which are 3.4 MB as text.
   */
  readonly spentBytes: number;
  /** Maximum time to read a file of another mirror's rows, in milliseconds. */
  readonly rowsReadMs: number;
  /**
   * Maximum number of paths of outdated files in memory. Above it, a build lists the paths as removed and removes the
   * files.
   */
  readonly removedAtOnce: number;
  /** Maximum number of lines about records that a verification collects in files before the store loads the lines. */
  readonly linesPerLoad: number;
  /** Maximum number of blocks (of 4,096 bytes) per read of a table of the last build. */
  readonly tableBlocksAtOnce: number;
}

/** Limits that change published bytes. */
export interface PublishedLimits {
  /**
   * Maximum number of heights in a segment of an archive. Readers cache a segment's directory, which has one line per
   * block.
   */
  readonly segmentBlocks: number;
  /**
   * Maximum number of entries in a page of a list. Readers need milliseconds per page. A list of holders that fits into
   * one page is always up to date with the tip.
   */
  readonly listPage: number;
  /**
   * Maximum number of characters in a member of a document file, because readers inflate a complete member. A longer
   * document gets its own member.
   */
  readonly documentMember: number;
  /**
   * Maximum number of characters in a member of the names of all runes. Clients read all members, so members may be
   * long, but still longer members hardly compress better.
   */
  readonly runesMember: number;
  /**
   * Maximum average number of entries of a sorted table per count in the root. A count is the number of entries whose
   * keys have the same first bits. Above this limit, the root has twice as many counts. From the counts, readers
   * compute the position of a key, so that one read of 16 KB finds the key.
   */
  readonly entriesPerCount: number;
  /**
   * Number of newest blocks that have a file of changes: about a day of blocks. A client that is further behind reads
   * its lists again.
   */
  readonly changesBlocks: number;
  /**
   * Maximum number of entries of each list in a file of changes. Anyone can make a block that touches ten times as many
   * runes, addresses or outputs.
   */
  readonly changesEntries: number;
  /** Levels of the table of ids, in blocks. Finer steps write less per block, but give readers more levels. */
  readonly tableLevels: LevelSteps;
  /** Levels of lists, in blocks. Lists have more entries per block than tables, so their newest level is finer. */
  readonly listLevels: LevelSteps;
}

/** Limits of readers. They change no published byte. The client uses no other part of this file. */
export interface ReaderLimits {
  /**
   * Maximum size of parsed directories, table blocks and small files in memory, in bytes, without the root. A
   * Cloudflare worker has 128 MB in total.
   */
  readonly cachedBytes: number;
  /**
   * Maximum number of pages and documents of one answer that a host keeps in memory. An answer with 60 records needs
   * fewer.
   */
  readonly keptPages: number;
  /**
   * Maximum file size of an archive, in bytes, for which readers fetch and keep complete files instead of requesting
   * ranges.
   */
  readonly readWhole: number;
  /** Largest gap in bytes between two pages that one request reads together, because a second request costs more. */
  readonly nearBytes: number;
  /**
   * Maximum number of pages of a transaction that a reader reads to find what an output held. Anyone can make
   * transactions of any length, and such an answer must not cost more than other answers. Together with the table of
   * ids and the directory, the answer takes up to 30 reads.
   */
  readonly transactionPages: number;
  /**
   * Maximum number of bytes that one request reads for many outputs. A file of an archive may have 8 MB, so it takes a
   * few requests.
   */
  readonly groupBytes: number;
  /**
   * Maximum number of concurrent requests for many outputs. Hosts answer further requests one after another, or refuse
   * them.
   */
  readonly concurrentReads: number;
}

/** Limits of the client for unconfirmed transactions. They bound what one call reads, and change no published byte. */
export interface PendingLimits {
  /**
   * Maximum number of transactions. The time of some steps grows with the square of this number. Nodes relay at most 64
   * transactions that depend on each other.
   */
  readonly transactions: number;
  /** Maximum total size of all transactions, in bytes: the maximum size of a block. */
  readonly transactionBytes: number;
  /**
   * Maximum number of outputs, runes and names that one call looks up in the mirror. Each look-up takes several
   * requests.
   */
  readonly lookUps: number;
  /** Maximum number of rows of all transactions. A stranger's transaction may move many runes to many outputs. */
  readonly movedRows: number;
  /**
   * Maximum number of runes in all outputs of the mirror that the transactions spend. A stranger's output may hold
   * thousands of runes.
   */
  readonly spentRunes: number;
  /** Maximum number of concurrent requests to the mirror, or to an Esplora server. */
  readonly requestsAtOnce: number;
  /** Maximum number of requests to an Esplora server. */
  readonly esploraRequests: number;
  /** Maximum total size of all answers of an Esplora server, in bytes. */
  readonly esploraBytes: number;
  /** Maximum time until all answers of an Esplora server have arrived, in milliseconds. */
  readonly esploraMs: number;
}

/** Limits of the local server. They change no published byte. */
export interface ServerLimits {
  /** Maximum size of parsed directories and table blocks in memory, in bytes, without the root. */
  readonly partBytes: number;
  /**
   * Maximum size of inflated pages and documents of an archive in memory, in bytes, including their compressed form.
   */
  readonly pageBytes: number;
  /**
   * Maximum size of answers from an archive in memory, in bytes. An answer larger than a quarter of this size is not
   * cached.
   */
  readonly answerBytes: number;
  /** Maximum size of page files in memory, in bytes. */
  readonly fileBytes: number;
  /** Maximum size of a file that is sent from one read, in bytes. Larger files are streamed. */
  readonly streamedBytes: number;
  /** Maximum number of open files of an archive. A process may usually have a thousand open files. */
  readonly openFiles: number;
  /** Maximum number of folders that the server remembers, for one second each, as being inside the build. */
  readonly folders: number;
  /**
   * Maximum number of requests of a connection that wait for earlier answers. One more request closes the connection.
   */
  readonly pending: number;
  /** Maximum number of open connections. The server closes further connections immediately. */
  readonly connections: number;
  /**
   * Maximum size of request line and headers together, in bytes. The documentation promises this value, which is Node's
   * default.
   */
  readonly headerBytes: number;
  /**
   * Maximum number of file parts that an answer reads or inflates before it waits for other answers. An answer with 60
   * records needs at most 132 parts.
   */
  readonly freeParts: number;
}

export interface Limits extends WorkLimits, PublishedLimits {}

export type LimitName = keyof Limits | keyof ReaderLimits | keyof PendingLimits | keyof ServerLimits;

const KB = 1024;
const MB = 1024 * KB;

export const LIMITS: Limits = {
  journalBytes: 128 * MB,
  pendingBytes: 32 * MB,
  sortedPageBytes: 4 * KB,
  mergeBelow: 3,
  startOutputs: 500_000,
  locatedOutputs: 15_000,
  blocksPerCommit: 1000,
  runesPerText: 10_000,
  filesPerScan: 64,
  keptInput: 8 * MB,
  keptRecords: 200_000,
  unsortedRecords: 200_000,
  batchRecords: 8192,
  sortedAtOnce: 6_000_000,
  listedAtOnce: 1_000_000,
  spentBlocks: 200,
  listPage: 600,
  documentMember: 16 * KB,
  runesMember: 256 * KB,
  entriesPerCount: 25_000,
  changesBlocks: 144,
  changesEntries: 10_000,
  tableLevels: { steps: [4096, 64], unsettled: 8 },
  listLevels: { steps: [4032, 144, 16], unsettled: 8 },
  entriesPerLookUp: 200,
  rowBytes: 2 * KB,
  spentBytes: 4 * MB,
  rowsReadMs: 10 * 60_000,
  removedAtOnce: 10_000,
  linesPerLoad: 200_000,
  tableBlocksAtOnce: 64,
  segmentBlocks: 1024,
};

/** Limits of all readers, except for hosts with their own limits. */
export const READER_LIMITS: ReaderLimits = {
  cachedBytes: 16 * MB,
  keptPages: 150,
  readWhole: MB,
  nearBytes: 64 * KB,
  transactionPages: 25,
  groupBytes: MB,
  concurrentReads: 16,
};

export const PENDING_LIMITS: PendingLimits = {
  transactions: 200,
  transactionBytes: 4 * MB,
  lookUps: 1000,
  movedRows: 100_000,
  spentRunes: 20_000,
  requestsAtOnce: 8,
  esploraRequests: 1000,
  esploraBytes: 32 * MB,
  esploraMs: 30_000,
};

export const SERVER_LIMITS: ServerLimits = {
  partBytes: 64 * MB,
  pageBytes: 64 * MB,
  answerBytes: 64 * MB,
  fileBytes: 128 * MB,
  streamedBytes: 256 * KB,
  openFiles: 256,
  folders: 10_000,
  pending: 1000,
  connections: 20_000,
  headerBytes: 16 * KB,
  freeParts: 200,
};

/** Returns the default limits with changes. Throws if a limit is not above zero or if limits contradict each other. */
export function limitsWith(changes: Partial<Limits>): Limits {
  const limits = { ...LIMITS, ...changes };
  for (const [name, value] of Object.entries(limits)) {
    const isValid = typeof value === 'number' ? value > 0 : areLevelSteps(value);
    if (!isValid) throw new Error(`the limit ${name} is ${JSON.stringify(value)}`);
  }
  const { steps, unsettled } = limits.listLevels;
  const newest = unsettled + (steps.at(-2) ?? steps.at(-1) ?? 0);
  if (limits.spentBlocks < newest)
    throw new Error(`the limit spentBlocks is ${limits.spentBlocks}, but the newest two levels of lists have almost ${newest} blocks`);
  return limits;
}

/** Returns the limits that change published bytes. A build with other limits than the last one is a full build. */
export function publishedLimits(limits: Limits): PublishedLimits {
  const { segmentBlocks, listPage, documentMember, runesMember, entriesPerCount, changesBlocks, changesEntries, tableLevels, listLevels } =
    limits;
  return { segmentBlocks, listPage, documentMember, runesMember, entriesPerCount, changesBlocks, changesEntries, tableLevels, listLevels };
}

/** Number of times that each limit was crossed in this process. Tests require that small limits are crossed. */
export const crossings = new Map<LimitName, number>();

export const countCrossing = (name: LimitName): void => void crossings.set(name, (crossings.get(name) ?? 0) + 1);

/** True if a value is above a limit. Counts the crossing. */
export function exceeds<Name extends LimitName>(limits: Readonly<Record<Name, number>>, name: Name, value: number): boolean {
  if (value <= limits[name]) return false;
  countCrossing(name);
  return true;
}
