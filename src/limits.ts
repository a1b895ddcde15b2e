/**
 * Every size, count and depth at which the program changes what it does. They are parameters, so that tests cross each of
 * them with little data. They are not flags: an operator has no reason to change them.
 *
 * A limit is a number that is still within it: work changes above it. Limits that change published bytes are in the root
 * of an archive or in the state of a build, so readers and later builds use those of the files. Constants of formats
 * and of the runes protocol are where the format or the rule is.
 */

import { areLevelSteps, type LevelSteps } from './archive/levels.ts';

/** Limits that change no published byte. */
export interface WorkLimits {
  /** Bytes of a pull's journal. Above it, settled blocks move to sorted files. Each pull reads the whole journal when it begins. */
  readonly journalBytes: number;
  /** Bytes of journal records in memory. Above it, they are written to the disk with the rows before them. */
  readonly pendingBytes: number;
  /** Bytes of a page of a sorted file. An entry that does not fit begins a page, and may be longer than one. Look-ups read a page. */
  readonly sortedPageBytes: number;
  /** A sorted file is merged with newer ones if it is smaller than this multiple of their size. Fewer files make look-ups faster. */
  readonly mergeBelow: number;
  /** Blocks between two commits of a pull from a node. A killed pull reads at most these again. */
  readonly blocksPerCommit: number;
  /** Numbers of runes in a text. A pull that begins reads its runes as texts, because a row for each takes 1.7 times as long. */
  readonly runesPerText: number;
  /** Text files of a scan. More are read in several scans, because DuckDB allocates buffers for every file of one. */
  readonly filesPerScan: number;
  /** Records of a source. A larger one whose blocks are scattered is sorted, because every batch of blocks scans it. */
  readonly unsortedRecords: number;
  /** Records in a batch of whole blocks, about 5 MB of JSON. A larger build renders several, and writes them in threads. */
  readonly batchRecords: number;
  /** Rows of lists that are sorted at once. More are divided by key first, which reads and writes each once more. */
  readonly sortedAtOnce: number;
  /** Records that are numbered and joined with their pages at once, which takes memory. */
  readonly listedAtOnce: number;
  /**
   * The newest blocks whose spent outputs the state keeps. A level of lists that has to be made again needs those of its
   * blocks. A reorganisation that reaches below the newest two levels makes a full build.
   */
  readonly spentBlocks: number;
  /**
   * Entries of a table of ids for each new transaction. Above it, a build looks the transactions up one by one. Below it,
   * it reads the whole table next to them: a look-up takes as long as reading this many entries.
   */
  readonly entriesPerLookUp: number;
  /** Records of neighbouring Parquet files that one table has. Without such a table, each file would scan all records that were read. */
  readonly recordsAside: number;
  /** Paths of outdated files in memory. Above it, they are listed as removed, and the files are removed. */
  readonly removedAtOnce: number;
  /** Lines about records that a verification collects in files. Above it, it loads them into its store. */
  readonly linesPerLoad: number;
  /** Blocks of 4,096 bytes of an old table that are read at once. */
  readonly tableBlocksAtOnce: number;
}

/** Limits that change published bytes. */
export interface PublishedLimits {
  /** Heights of a segment of an archive. Readers keep the directory of a segment, which has a line for each block. */
  readonly segmentBlocks: number;
  /** Entries in a page of a list of documents. A page takes a reader a few milliseconds. Holders of runes with fewer are exact at the tip. */
  readonly listPage: number;
  /** Characters of the lines in a member of a file of documents. A longer document is alone in one. Readers inflate a member to find a document. */
  readonly documentMember: number;
  /**
   * Entries of a sorted table for each number in the root that says how many have the same first bits. Above it, the root
   * has twice as many numbers. Readers compute the place of a key from them: with these, one read of 16 KB finds it.
   */
  readonly entriesPerCount: number;
  /** Levels of the table of ids, in blocks. Finer steps write less with each block, and give readers more levels. */
  readonly tableLevels: LevelSteps;
  /** Levels of lists, in blocks. Lists have more entries for each block than tables, so a finer newest level keeps a block's files small. */
  readonly listLevels: LevelSteps;
}

/** Limits of readers. They change no published byte. The client has nothing else of this file. */
export interface ReaderLimits {
  /** Bytes of parsed directories, blocks of tables and small files in memory: well below the 128 MB of a worker. The root comes on top. */
  readonly cachedBytes: number;
  /** Size of an archive's files in bytes up to which readers fetch them whole and keep them, so hosts need no ranges. */
  readonly readWhole: number;
  /** Bytes between two pages up to which both are one read. A request costs more than to read these bytes. */
  readonly nearBytes: number;
}

/** Limits of the local server. They change no published byte. */
export interface ServerLimits {
  /** Bytes of parsed directories and blocks of tables in memory. The root comes on top. */
  readonly partBytes: number;
  /** Bytes of answers from an archive in memory. An answer of more than a quarter is not kept. */
  readonly answerBytes: number;
  /** Bytes of files of pages in memory. */
  readonly fileBytes: number;
  /** Bytes of a file above which it is streamed. To read a smaller file at once costs less. */
  readonly streamedBytes: number;
  /** Files of an archive that stay open, of the thousand that a process may usually have. */
  readonly openFiles: number;
  /** Folders of which the server remembers for a second that they are inside the build. */
  readonly folders: number;
  /** Requests of a connection that wait for earlier answers. One more closes the connection. */
  readonly pending: number;
  /** Open connections. Further ones are closed at once. */
  readonly connections: number;
  /** Bytes of the request line and headers together. It equals Node's default, but the documents promise it. */
  readonly headerBytes: number;
  /** Parts of files that an answer reads or inflates before it goes on in turns with others. An answer of 60 records has at most 132. */
  readonly freeParts: number;
}

export interface Limits extends WorkLimits, PublishedLimits {}

export type LimitName = keyof Limits | keyof ReaderLimits | keyof ServerLimits;

const KB = 1024;
const MB = 1024 * KB;

/** The limits of all commands. */
export const LIMITS: Limits = {
  journalBytes: 128 * MB,
  pendingBytes: 32 * MB,
  sortedPageBytes: 4 * KB,
  mergeBelow: 3,
  blocksPerCommit: 1000,
  runesPerText: 10_000,
  filesPerScan: 64,
  unsortedRecords: 200_000,
  batchRecords: 8192,
  sortedAtOnce: 6_000_000,
  listedAtOnce: 1_000_000,
  spentBlocks: 200,
  listPage: 600,
  documentMember: 16 * KB,
  entriesPerCount: 25_000,
  tableLevels: { steps: [4096, 64], unsettled: 8 },
  listLevels: { steps: [4032, 144, 16], unsettled: 8 },
  entriesPerLookUp: 200,
  recordsAside: 200_000,
  removedAtOnce: 10_000,
  linesPerLoad: 200_000,
  tableBlocksAtOnce: 64,
  segmentBlocks: 1024,
};

/** The limits of all readers, except where a host has its own. */
export const READER_LIMITS: ReaderLimits = { cachedBytes: 16 * MB, readWhole: MB, nearBytes: 64 * KB };

/** The limits of the local server. */
export const SERVER_LIMITS: ServerLimits = {
  partBytes: 64 * MB,
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

/** Returns the default limits with some changes. Throws when a limit is not above zero, or limits contradict each other. */
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

/** Returns the limits that change published bytes. A build with others is a full one. */
export const publishedLimits = ({
  segmentBlocks,
  listPage,
  documentMember,
  entriesPerCount,
  tableLevels,
  listLevels,
}: Limits): PublishedLimits => ({
  segmentBlocks,
  listPage,
  documentMember,
  entriesPerCount,
  tableLevels,
  listLevels,
});

/** How often each limit was crossed in this process. Tests require that small limits are crossed. */
export const crossings = new Map<LimitName, number>();

/** Counts that a limit was crossed. */
export const countCrossing = (name: LimitName): void => void crossings.set(name, (crossings.get(name) ?? 0) + 1);

/** True when a value is above a limit, which is counted. */
export function exceeds<Name extends LimitName>(limits: Readonly<Record<Name, number>>, name: Name, value: number): boolean {
  if (value <= limits[name]) return false;
  countCrossing(name);
  return true;
}
