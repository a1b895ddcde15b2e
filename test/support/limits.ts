/** Limits for test builds and pulls, some so low that little data crosses them. */
import { areLevelSteps } from '../../src/format/levels.ts';
import { LIMITS, type LimitName, type Limits, type ReaderLimits, type ServerLimits } from '../../src/limits.ts';

/** Returns the default limits with these changes. Throws if a limit is not above zero or if limits contradict each other. */
export function limitsWith(changes: Partial<Limits>): Limits {
  const limits = { ...LIMITS, ...changes };
  for (const [name, value] of Object.entries(limits)) {
    const isValid = typeof value === 'number' ? value > 0 : areLevelSteps(value);
    if (!isValid) throw new Error(`the limit ${name} is ${JSON.stringify(value)}`);
  }
  return limits;
}

/** The default limits, changed by the JSON in the environment variable LIMITS. The exhaustive tier runs the folder `tiny` with TINY. */
export const TEST_LIMITS = limitsWith(JSON.parse(process.env['LIMITS'] ?? '{}') as Partial<Limits>);

/** Number of records that recorded data has several times. */
const RECORDED = 500;

/** TEST_LIMITS for recorded data, whose blocks have thousands of records: parts of ten records would take minutes. */
export const RECORDED_LIMITS = limitsWith({
  ...TEST_LIMITS,
  sortedAtOnce: Math.max(TEST_LIMITS.sortedAtOnce, RECORDED),
  listedAtOnce: Math.max(TEST_LIMITS.listedAtOnce, RECORDED),
  servedAtOnce: Math.max(TEST_LIMITS.servedAtOnce, RECORDED),
});

/** Limits that a short chain crosses, some of them a thousand times. */
export const TINY = {
  changesBytes: 1024,
  sortedPageBytes: 200,
  blocksPerCommit: 2,
  blocksBeforeThread: 30,
  batchRecords: 5,
  filesPerScan: 2,
  keptInput: 100,
  keptRecords: 1,
  servedAtOnce: 10,
  sortedAtOnce: 50,
  listedAtOnce: 10,
  segmentBlocks: 4,
  listPage: 4,
  documentMember: 300,
  runesMember: 100,
  lookUpMember: 200,
  changesBlocks: 6,
  changesEntries: 3,
  linesPerLoad: 20,
  lineBytes: 500,
  tableLevels: { steps: [32, 8], unsettled: 2 },
  listLevels: { steps: [64, 16, 4], unsettled: 4 },
} satisfies Partial<Limits>;

/** Limits that the answers of a few blocks cross. */
export const TINY_READER = { cachedBytes: 4096, readWhole: 1024, smallFile: 256, nearBytes: 16 } satisfies Partial<ReaderLimits>;
export const TINY_SERVER = {
  partBytes: 4096,
  pageBytes: 4096,
  answerBytes: 20_000,
  fileBytes: 4096,
  streamedBytes: 1024,
  openFiles: 2,
  freeParts: 1,
} satisfies Partial<ServerLimits>;

/** Limits of readers and of the server that the suite `server` must exceed. */
const SERVED = ['cachedBytes', 'fileBytes', 'streamedBytes', 'openFiles', 'freeParts'] as const;

/** Limits that each suite must exceed when it runs with small limits (crossed.ts). The key is the name of the suite's file. */
export const CROSSED: Readonly<Record<string, readonly LimitName[]>> = {
  histories: [
    'batchRecords',
    'keptInput',
    'keptRecords',
    'servedAtOnce',
    'segmentBlocks',
    'tableLevels',
    'changesEntries',
    'listPage',
    'documentMember',
    'listLevels',
    'listedAtOnce',
    'sortedAtOnce',
  ],
  server: ['batchRecords', 'segmentBlocks', 'tableLevels', 'sortedAtOnce', 'readWhole', 'smallFile', 'nearBytes', ...SERVED],
  nodeKill: ['changesBytes'],
};

/** For each limit that is not in CROSSED: the test that exceeds the limit or shows its effect, and a text that occurs in this test. */
export const CROSSED_ELSEWHERE: Readonly<Partial<Record<LimitName, readonly [file: string, text: string]>>> = {
  sortedPageBytes: ['exhaustive/project/tinyLimits', "'sortedPageBytes'"],
  mergeBelow: ['exhaustive/project/tinyLimits', "'mergeBelow'"],
  blocksBeforeThread: ['exhaustive/pull/coreNode', 'blocksBeforeThread'],
  filesPerScan: ['project/limits', 'filesPerScan'],
  blocksPerCommit: ['exhaustive/project/rehearsal', 'crossed.has(name)'],
  linesPerLoad: ['exhaustive/project/rehearsal', 'crossed.has(name)'],
  lineBytes: ['verify/verify', 'lineBytes'],
  runesMember: ['exhaustive/lists/runeNames', 'runesMember'],
  changesBlocks: ['exhaustive/serve/changes', 'changesBlocks'],
  rowBytes: ['exhaustive/pull/rowsOfMirrors', 'rowBytes'],
  spentBytes: ['exhaustive/pull/rowsOfMirrors', 'spentBytes'],
  rowsReadMs: ['exhaustive/pull/rowsOfMirrors', 'rowsReadMs'],
  lookUpMember: ['engine/archive', 'lookUpMember'],
  keptPages: ['serve/fairServer', 'keptPages'],
  transactionPages: ['exhaustive/lists/outputStates', 'held: null'],
  groupBytes: ['serve/groupedReads', "'groupBytes'"],
  concurrentReads: ['serve/groupedReads', "'concurrentReads'"],
  transactions: ['exhaustive/serve/pending', 'there are more than 1 transactions'],
  transactionBytes: ['exhaustive/serve/pending', 'transactionBytes'],
  lookUps: ['exhaustive/serve/pending', 'lookUps'],
  movedRows: ['exhaustive/serve/pending', 'movedRows'],
  spentRunes: ['exhaustive/serve/pending', 'spentRunes'],
  requestsAtOnce: ['exhaustive/serve/pending', 'requestsAtOnce'],
  // These caches work like the cache that `cachedBytes` limits. They too have tiny sizes in the suite `server`.
  checkedOutputs: ['exhaustive/pull/continueRows', 'checkedOutputs'],
  partBytes: ['serve/server', 'startServer'],
  pageBytes: ['serve/server', 'startServer'],
  answerBytes: ['serve/server', 'startServer'],
};
