/**
 * The tables and views that one file makes and another reads: their columns, and which files make and change them. A
 * search for their names finds the readers. `test/architecture.test.ts` compares the files with the SQL of the source,
 * `test/columns.test.ts` the columns with those of a build.
 *
 * Not here: relations of one file only, and those that a caller names, such as `raw_3` and `canonical_0` of
 * src/input/readSource.ts.
 */
import { ACTIVITY_FIELDS, EVENT_INDEX, type Field, RUNE_DETAILS, RUNE_FIELDS } from '../contract/fields.ts';
import { OPERATIONS } from '../pages/lists.ts';

type ColumnType = 'VARCHAR' | 'BIGINT' | 'INTEGER' | 'HUGEINT' | 'BOOLEAN';
/** Columns in their order. */
type ColumnTypes = Readonly<Record<string, ColumnType>>;

/** Returns the columns of fields. Text keeps the digits of amounts, which no number type has. */
export const columnsOf = (fields: readonly Field[]): ColumnTypes =>
  Object.fromEntries(fields.map(({ column, kind }) => [column, kind === 'integer' ? 'BIGINT' : kind === 'flag' ? 'BOOLEAN' : 'VARCHAR']));

interface Relation {
  readonly columns: ColumnTypes;
  /** The file that makes it. Files are relative to src. */
  readonly madeBy: string;
  /** Other files that insert or delete rows. */
  readonly changedBy?: readonly string[];
}

/**
 * Input files. `id` is the `source` of their records; times are in nanoseconds; `digest` is the SHA-256 of the content.
 */
const FILES = {
  id: 'INTEGER',
  name: 'VARCHAR',
  form: 'VARCHAR',
  size: 'BIGINT',
  mtime: 'VARCHAR',
  ctime: 'VARCHAR',
  inode: 'VARCHAR',
  digest: 'VARCHAR',
} as const;

/** The blocks of each input file. `records` is 0 when the build left out all rows of the block. */
const HELD = { source: 'INTEGER', block_height: 'BIGINT', block_hash: 'VARCHAR', records: 'BIGINT' } as const;

/** Ledger rows without a rune, which builds leave out: `records` counts them by file, block and rune. */
const LEFT_OUT = { source: 'INTEGER', block_height: 'BIGINT', rune_id: 'VARCHAR', records: 'BIGINT' } as const;

/**
 * The runes tables of all inputs, a row for each rune. `premine` and terms are integers of up to 128 bits as text: cast
 * them to UHUGEINT. A term is NULL and `symbol` is `¤` if the rune has none. If `is_complete` is false, any column
 * after `divisibility` may be NULL because no input has it.
 */
const RUNES: ColumnTypes = { ...columnsOf([...RUNE_FIELDS, ...RUNE_DETAILS]), is_complete: 'BOOLEAN' };

/**
 * Blocks as they were written. `operations`: records of each operation in the order of OPERATIONS, with commas. `files`
 * and `bytes`: those of the block's pages and its transactions'; 0 in layout `archive`. `packed`: bytes of the compressed
 * pages in the archive; 0 without one. `digest` is the published digest of the records, and `spent_digest` that of the
 * outputs that the block spends, which are not in records; empty if the input does not say.
 */
const WRITTEN = {
  block_height: 'BIGINT',
  block_hash: 'VARCHAR',
  records: 'BIGINT',
  transactions: 'BIGINT',
  operations: 'VARCHAR',
  digest: 'VARCHAR',
  spent_digest: 'VARCHAR',
  files: 'BIGINT',
  bytes: 'BIGINT',
  packed: 'BIGINT',
} as const;

/** `timestamp`: seconds since 1970. */
const BLOCKS = { ...WRITTEN, timestamp: 'BIGINT' } as const;

/**
 * Records by block, rune and operation. A rune with two names, which only wrong data has, has two rows. What was minted
 * and burned is in smallest units: the upper part counts 10^18. `decimals` is that of the amounts, -1 when they differ.
 */
const BLOCK_RUNES: ColumnTypes = {
  block_height: 'BIGINT',
  rune_id: 'VARCHAR',
  number: 'BIGINT',
  name: 'VARCHAR',
  spaced_name: 'VARCHAR',
  ...Object.fromEntries(OPERATIONS.map((operation) => [operation, 'INTEGER'] as const)),
  minted_upper: 'HUGEINT',
  minted_lower: 'HUGEINT',
  burned_upper: 'HUGEINT',
  burned_lower: 'HUGEINT',
  decimals: 'INTEGER',
};

/**
 * The runes up to the tip, in the order of their etchings: by block, transaction and number. `ordinal` counts from 0;
 * `row_hash` is a hash of the row in the runes table.
 */
const ETCHINGS = { ordinal: 'BIGINT', id: 'VARCHAR', block_height: 'BIGINT', row_hash: 'HUGEINT' } as const;

/** `first`: the number of the transaction's first record in its block. */
const TRANSACTIONS = { tx_id: 'VARCHAR', block_height: 'BIGINT', records: 'BIGINT', first: 'BIGINT' } as const;

/** Outputs that a block spends, as `txid:vout`. `address` is NULL if the output has none. */
const SPENT = { block_height: 'BIGINT', output: 'VARCHAR', address: 'VARCHAR' } as const;

/** Parquet files by the first height of their range; `digest` is the SHA-256 of the content. */
const RANGES = { first: 'BIGINT', bytes: 'BIGINT', digest: 'VARCHAR' } as const;

/**
 * Canonical records: one row each, whatever the form of the input (contract/fields.ts has the fields). `ord` orders the
 * records of a transaction.
 */
const RECORDS: ColumnTypes = { source: 'INTEGER', ...columnsOf([...ACTIVITY_FIELDS, EVENT_INDEX]), ord: 'BIGINT' };

/**
 * Every relation that crosses files. Names with `state.` are in the cache; views with `known_` show the same rows, or
 * none in a full build.
 */
export const TABLES = {
  /** One row: program and settings of the last build, and the SHA-256 of its manifest. */
  'state.basis': { columns: { program: 'VARCHAR', settings: 'VARCHAR', manifest: 'VARCHAR' }, madeBy: 'state/state.ts' },
  'state.files': { columns: FILES, madeBy: 'state/state.ts', changedBy: ['state/update.ts'] },
  /** Ranges of heights that the sources of the input have read, also without records. Empty if the input does not say. */
  'state.read_blocks': { columns: { first: 'BIGINT', last: 'BIGINT' }, madeBy: 'state/state.ts', changedBy: ['state/update.ts'] },
  /** One row: the last block that was read, also if it has no records. None without blocks. */
  'state.tip': {
    columns: { block_height: 'BIGINT', block_hash: 'VARCHAR' },
    madeBy: 'state/state.ts',
    changedBy: ['state/update.ts', 'verify/balances.ts'],
  },
  'state.held': { columns: HELD, madeBy: 'state/state.ts', changedBy: ['state/update.ts'] },
  'state.left_out': { columns: LEFT_OUT, madeBy: 'state/state.ts', changedBy: ['state/update.ts'] },
  'state.runes': { columns: RUNES, madeBy: 'state/state.ts', changedBy: ['state/update.ts', 'verify/balances.ts'] },
  'state.blocks': { columns: BLOCKS, madeBy: 'state/state.ts', changedBy: ['state/update.ts'] },
  'state.block_runes': { columns: BLOCK_RUNES, madeBy: 'state/state.ts', changedBy: ['state/update.ts'] },
  'state.transactions': { columns: TRANSACTIONS, madeBy: 'state/state.ts', changedBy: ['state/update.ts'] },
  'state.ranges': { columns: RANGES, madeBy: 'state/state.ts', changedBy: ['bulk/build.ts'] },
  /** Outputs spent in the newest blocks, as far as files from a node say (archiver/outputs.ts). */
  'state.spent': { columns: SPENT, madeBy: 'state/state.ts', changedBy: ['archiver/outputs.ts'] },
  /** One row: from which height on `state.spent` is complete. None if a build had no outputs. */
  'state.spent_from': { columns: { first: 'BIGINT' }, madeBy: 'state/state.ts', changedBy: ['archiver/outputs.ts'] },

  known_files: { columns: FILES, madeBy: 'state/state.ts' },
  known_held: { columns: HELD, madeBy: 'state/state.ts' },
  known_left_out: { columns: LEFT_OUT, madeBy: 'state/state.ts' },
  known_runes: { columns: RUNES, madeBy: 'state/state.ts' },
  known_blocks: { columns: BLOCKS, madeBy: 'state/state.ts' },
  known_transactions: { columns: TRANSACTIONS, madeBy: 'state/state.ts' },
  known_ranges: { columns: RANGES, madeBy: 'state/state.ts' },

  /** The blocks of the files that this build read. */
  holds: { columns: HELD, madeBy: 'input/inputReader.ts' },
  left_out: { columns: LEFT_OUT, madeBy: 'input/inputReader.ts' },
  /** The runes tables of this build's input; made only when a ledger or a runes table was read. */
  runes: { columns: RUNES, madeBy: 'input/runes.ts' },
  /** Blocks that a changed, new or removed file has. */
  affected: { columns: { block_height: 'BIGINT' }, madeBy: 'input/load.ts' },
  /** Outputs that affected blocks spend, as far as files from a node say. */
  spent_outputs: { columns: SPENT, madeBy: 'input/makeActivity.ts' },
  /** Records of affected blocks, copies of blocks included. */
  activity: { columns: RECORDS, madeBy: 'input/makeActivity.ts' },
  /** The files of each affected block. */
  held: { columns: HELD, madeBy: 'input/makeActivity.ts', changedBy: ['input/consistency.ts'] },
  /** The blocks of every input file. */
  all_holds: { columns: HELD, madeBy: 'input/consistency.ts' },
  /** Records of affected blocks, each block from one file. */
  kept: { columns: RECORDS, madeBy: 'input/consistency.ts' },
  /** The blocks of `kept`. */
  blocks: { columns: { block_height: 'BIGINT', block_hash: 'VARCHAR', records: 'BIGINT' }, madeBy: 'input/consistency.ts' },
  /**
   * The transactions of `kept`. `numbered`: records with an event_index; `event_bits`: which event indexes they have;
   * `is_scattered`: whether other transactions' records stand between its own.
   */
  transactions: {
    columns: {
      block_height: 'BIGINT',
      tx_index: 'BIGINT',
      tx_id: 'VARCHAR',
      records: 'BIGINT',
      numbered: 'BIGINT',
      is_scattered: 'BOOLEAN',
      event_bits: 'BIGINT',
    },
    madeBy: 'input/consistency.ts',
  },

  /** Blocks that this build wrote. */
  written: { columns: WRITTEN, madeBy: 'state/update.ts' },
  /** Blocks whose rows in the state change, because they were written or removed. */
  replaced: { columns: { block_height: 'BIGINT' }, madeBy: 'state/update.ts' },
  /** The runes with mints or burns in replaced blocks, before or after the build. */
  /** Rows of replaced blocks from the state of the last build. */
  old_blocks: { columns: BLOCKS, madeBy: 'state/update.ts' },
  old_transactions: { columns: TRANSACTIONS, madeBy: 'state/update.ts' },
  /** The transactions of the blocks in `written`. */
  placed_transactions: { columns: TRANSACTIONS, madeBy: 'state/update.ts' },
  /**
   * Records from which levels of lists are made. `record` is the number in the block in served order, `page_offset` and
   * `page_bytes` the place of its page among those of the block, and `in_page` the number in the page.
   */
  listed_records: {
    columns: {
      block_height: 'BIGINT',
      record: 'BIGINT',
      rune_id: 'VARCHAR',
      address: 'VARCHAR',
      operation: 'VARCHAR',
      amount: 'VARCHAR',
      page_offset: 'BIGINT',
      page_bytes: 'BIGINT',
      in_page: 'BIGINT',
    },
    madeBy: 'archiver/listedRecords.ts',
    changedBy: ['verify/records.ts'],
  },
  /** The pages of the blocks in `listed_records`. */
  listed_pages: {
    columns: { block_height: 'BIGINT', page: 'BIGINT', page_offset: 'BIGINT', page_bytes: 'BIGINT' },
    madeBy: 'archiver/listedRecords.ts',
  },
  etchings: { columns: ETCHINGS, madeBy: 'etchings/facts.ts' },
  /** The etchings of the last build. */
  old_etchings: { columns: ETCHINGS, madeBy: 'etchings/facts.ts' },
  /** Counts of the blocks in `written`. */
  counted: { columns: { ...BLOCK_RUNES, timestamp: 'BIGINT' }, madeBy: 'stats/counting.ts' },
  /** The time of each block in `written`: the lowest of its records. In valid data all are equal. */
  times: { columns: { block_height: 'BIGINT', timestamp: 'BIGINT' }, madeBy: 'stats/counting.ts' },
} as const satisfies Readonly<Record<string, Relation>>;

export type TableName = keyof typeof TABLES;

/** Returns columns as CREATE TABLE takes them. */
export const definitionOf = (columns: ColumnTypes): string =>
  Object.entries(columns)
    .map(([name, type]) => `"${name}" ${type}`)
    .join(', ');
