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
  /** Bytes of a pull's journal, which each pull reads. Above this size, settled blocks move to sorted files. */
  readonly journalBytes: number;
  /** Bytes of journal records in memory. Above this size, first the rows of blocks and then the records go to disk. */
  readonly pendingBytes: number;
  /** Bytes per page of a sorted file. A look-up reads one page. A longer entry gets its own page. */
  readonly sortedPageBytes: number;
  /**
   * A sorted file is merged with newer files if it is smaller than this multiple of their total size. Fewer files are
   * faster to search.
   */
  readonly mergeBelow: number;
  /** Outputs of a start in memory. More are sorted in parts, which are merged on disk. */
  readonly startOutputs: number;
  /** Outputs of a start that a node is asked for. If the mirror lies about one in 1,000, it is found but for 1 in 3 million. */
  readonly locatedOutputs: number;
  /** Blocks between two commits of a pull from a node. After a kill, at most this many blocks are read again. */
  readonly blocksPerCommit: number;
  /**
   * Runes per text. A pull reads runes as texts with a line per rune, because a row per rune takes 1.7 times as long.
   */
  readonly runesPerText: number;
  /** Text files per scan. More files need several scans, because DuckDB allocates buffers for every file of a scan. */
  readonly filesPerScan: number;
  /** Bytes of input that a build reads. For more, it returns freed memory to the system, which takes CPU time. */
  readonly keptInput: number;
  /** Records of a mirror that is verified, or rows that are sorted. For more, freed memory is returned to the system. */
  readonly keptRecords: number;
  /** Records of a source. Each batch of blocks scans the source, so a larger source with scattered blocks is sorted. */
  readonly unsortedRecords: number;
  /** Records per batch of complete blocks, about 5 MB of JSON. A build of several batches writes in threads. */
  readonly batchRecords: number;
  /** Rows per sort of lists. More rows are first divided by key, which reads and writes each row once more. */
  readonly sortedAtOnce: number;
  /** Records that one step numbers and joins with their pages. More records take several steps, to limit memory. */
  readonly listedAtOnce: number;
  /**
   * Number of newest blocks whose spent outputs the state keeps. To build a level of lists again, a build needs the
   * spent outputs of the level's blocks. A reorganisation below the newest two levels causes a full build.
   */
  readonly spentBlocks: number;
  /**
   * Entries of a table of ids per new transaction. Above this number, a build looks up each transaction. Below it, a
   * build reads the complete table, because a look-up takes as long as reading this many entries.
   */
  readonly entriesPerLookUp: number;
  /** Most bytes of a row of another mirror on average, without spent outputs, before and after unpacking. */
  readonly rowBytes: number;
  /** Most bytes of the spent outputs of a block on average. A block has room for 24,400 rune inputs, 3.4 MB as text. */
  readonly spentBytes: number;
  /** Longest time to read a file of another mirror's rows, in milliseconds. */
  readonly rowsReadMs: number;
  /** Paths of outdated files in memory. Above this number, a build lists the paths as removed and removes the files. */
  readonly removedAtOnce: number;
  /** Lines about records that a verification collects in files. Above this number, the store loads the lines. */
  readonly linesPerLoad: number;
  /** Blocks (of 4,096 bytes) per read of an old table. */
  readonly tableBlocksAtOnce: number;
}

/** Limits that change published bytes. */
export interface PublishedLimits {
  /** Heights per segment of an archive. Readers cache a segment's directory, which has one line per block. */
  readonly segmentBlocks: number;
  /** Entries per page of a list. Readers need milliseconds per page. Lists of fewer holders are exact at the tip. */
  readonly listPage: number;
  /** Characters per member of a document file. Readers inflate a member. A longer document gets its own member. */
  readonly documentMember: number;
  /** Characters per member of the names of all runes, which are read together. Longer members hardly compress better. */
  readonly runesMember: number;
  /**
   * Entries of a sorted table per count in the root. A count is the number of entries whose keys have the same first
   * bits. Above the limit, the root has twice as many counts. From the counts, readers compute the position of a key,
   * so that one read of 16 KB finds the key.
   */
  readonly entriesPerCount: number;
  /** Newest blocks with a file of what they touched, about a day of blocks. A client that is further behind reads lists again. */
  readonly changesBlocks: number;
  /** Entries of each list in such a file. Anyone can make a block that touches ten times as much. */
  readonly changesEntries: number;
  /** Levels of the table of ids, in blocks. Finer steps write less per block, but give readers more levels. */
  readonly tableLevels: LevelSteps;
  /** Levels of lists, in blocks. Lists have more entries per block than tables, so their newest level is finer. */
  readonly listLevels: LevelSteps;
}

/** Limits of readers. They change no published byte. The client uses no other part of this file. */
export interface ReaderLimits {
  /**
   * Bytes of parsed directories, table blocks and small files in memory, without the root. A worker has 128 MB in all.
   */
  readonly cachedBytes: number;
  /** Pages and documents of one answer that a host may keep in memory. An answer with 60 records needs fewer. */
  readonly keptPages: number;
  /** Bytes of an archive up to which readers fetch and keep complete files, without range requests. */
  readonly readWhole: number;
  /** Largest gap in bytes between two pages that one request reads together, because a second request costs more. */
  readonly nearBytes: number;
  /**
   * Pages of a transaction that are read to find what an output held. Anyone can make transactions of any length, and an
   * answer must not cost more than other answers. With the table of ids and the directory, it takes up to 30 reads.
   */
  readonly transactionPages: number;
  /** Bytes that one request reads for many outputs. A file of an archive has 8 MB, so such a file takes a few requests. */
  readonly groupBytes: number;
  /** Concurrent requests for many outputs. Hosts answer more requests one after another, or refuse them. */
  readonly concurrentReads: number;
}

/** Limits of the client for unconfirmed transactions. They bound what one call reads, and change no published byte. */
export interface PendingLimits {
  /** Transactions. The time of some steps rises with the square. Nodes relay at most 64 that depend on each other. */
  readonly transactions: number;
  /** Bytes of all transactions, as many as a block has. */
  readonly transactionBytes: number;
  /** Outputs, runes and names that are looked up in the mirror. Each takes several requests. */
  readonly lookUps: number;
  /** Rows of all transactions. A stranger's transaction may move many runes to many outputs. */
  readonly movedRows: number;
  /** Runes of all outputs of the mirror that the transactions spend. A stranger's output may have thousands. */
  readonly spentRunes: number;
  /** Requests to the mirror, or to an Esplora server, at the same time. */
  readonly requestsAtOnce: number;
  /** Requests to an Esplora server. */
  readonly esploraRequests: number;
  /** Bytes of all answers of an Esplora server. */
  readonly esploraBytes: number;
  /** Milliseconds until all answers of an Esplora server must have arrived. */
  readonly esploraMs: number;
}

/** Limits of the local server. They change no published byte. */
export interface ServerLimits {
  /** Bytes of parsed directories and table blocks in memory, without the root. */
  readonly partBytes: number;
  /** Bytes of inflated pages and documents of an archive in memory, with their compressed form. */
  readonly pageBytes: number;
  /** Bytes of answers from an archive in memory. An answer larger than a quarter of this size is not cached. */
  readonly answerBytes: number;
  /** Bytes of page files in memory. */
  readonly fileBytes: number;
  /** Bytes of a file above which the file is streamed. For a smaller file, one read costs less. */
  readonly streamedBytes: number;
  /** Open files of an archive. A process may usually have a thousand open files. */
  readonly openFiles: number;
  /** Folders that the server remembers, for one second each, as being inside the build. */
  readonly folders: number;
  /** Requests of a connection that wait for earlier answers. One more request closes the connection. */
  readonly pending: number;
  /** Open connections. The server closes further connections immediately. */
  readonly connections: number;
  /** Bytes of request line and headers together. The documentation promises this value, which is Node's default. */
  readonly headerBytes: number;
  /** File parts that an answer may read or inflate before it waits for others. 60 records need at most 132. */
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
