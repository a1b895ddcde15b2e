/**
 * The lists of the API, the options of a build, and the spelling of ids.
 *
 * A list has all records of one transaction, of one block, or of one operation within a block. The writer makes the
 * files of each list, and the reader maps requests to them. Both take the paths from `paths.ts`.
 */

/** The two spellings of responses; a build uses one of them (decisions.md, "Dialects"). */
export const DIALECTS = ['contract', 'hiro'] as const;
export type Dialect = (typeof DIALECTS)[number];

/** The kinds of rune activity. The position in this list is the code that the renderer passes to the writer. */
export const OPERATIONS = ['etching', 'mint', 'burn', 'send', 'receive'] as const;
export type Operation = (typeof OPERATIONS)[number];

export type ActivityList =
  | { readonly kind: 'transaction' /** 64 lower-case hex digits, no prefix */; readonly txId: string }
  | {
      readonly kind: 'block';
      /** A height without leading zeros ("840000"), or a hash of 64 lower-case hex digits, no prefix. */
      readonly block: string;
      readonly operation?: Operation;
    };

/**
 * How a build stores lists. `files` has a file for every page of every list. `packed` has each record once, in pages of
 * the largest size, and an index of the transactions (pages/packed.ts).
 */
export const LAYOUTS = ['files', 'packed'] as const;
export type Layout = (typeof LAYOUTS)[number];

/** Extensions of the compressed files beside a page, the smallest file first. */
export const ENCODINGS = ['br', 'gz'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** Options of a build that readers need. */
export interface Site {
  readonly layout: Layout;
  readonly dialect: Dialect;
  /** In ascending order; the first is the API's default limit, the last its maximum. */
  readonly pageSizes: readonly number[];
  /** True when blocks can be filtered by operation. */
  readonly operationPages: boolean;
  /** The compressed files beside each page, in the order of ENCODINGS. */
  readonly compress: readonly Encoding[];
  /** True when the build also has all records as Parquet files. */
  readonly parquet: boolean;
}

/** Options of a build plus facts about its data, as the page map needs them. Read from the build's manifest. */
export interface BuiltSite extends Site {
  /** How many hex digits of a tx id select an index file; 0 in layout `files`, which has no index. */
  readonly prefixDigits: number;
  /** The highest block height in the data; -1 without data. */
  readonly tip: number;
}

/** A reorganisation may replace this many of the highest blocks. None has been deeper than six blocks since 2013. */
const UNSETTLED_BLOCKS = 6;

/** True when a block is settled: so deep in the chain that it is not expected to change. */
export const isSettled = (height: number, site: BuiltSite): boolean => height <= site.tip - UNSETTLED_BLOCKS;

/**
 * Reads the options of a build from its manifest. Throws for anything that is not a manifest of this program. Checked
 * by hand, because the schema library would be 90 % of an edge function's bundle.
 */
export function siteOf(manifest: unknown): BuiltSite {
  const fields = Object(manifest) as Readonly<Record<string, unknown>>;
  const { generator, page_sizes, operation_pages } = fields;
  const dialect = DIALECTS.find((name) => name === fields['dialect']);
  const layout = LAYOUTS.find((name) => name === fields['layout']);
  const prefixDigits = fields['transaction_prefix'] ?? 0;
  const compress = fields['compress'] ?? [];
  const parquet = fields['parquet'] ?? false;
  if (
    generator !== 'rune-activity-mirror' ||
    layout === undefined ||
    dialect === undefined ||
    typeof operation_pages !== 'boolean' ||
    !arePageSizes(page_sizes) ||
    !areEncodings(compress) ||
    typeof parquet !== 'boolean' ||
    !isPrefixLength(prefixDigits, layout)
  ) {
    throw new Error('not a manifest of this version of rune-activity-mirror');
  }
  const tip = tipOf(fields['heights']);
  return { layout, dialect, pageSizes: page_sizes, operationPages: operation_pages, compress, parquet, prefixDigits, tip };
}

/**
 * Returns the last height in the manifest's ranges. When it is malformed, -1 makes all blocks unsettled, which only
 * costs caching.
 */
function tipOf(heights: unknown): number {
  const run: unknown = Array.isArray(heights) ? heights.at(-1) : undefined;
  const tip: unknown = Array.isArray(run) ? run[1] : undefined;
  return Number.isSafeInteger(tip) ? Number(tip) : -1;
}

const isPrefixLength = (digits: unknown, layout: Layout): digits is number =>
  layout === 'files' ? digits === 0 : Number.isInteger(digits) && Number(digits) >= 1 && Number(digits) <= 16;

/** True for distinct encodings in the order of ENCODINGS. */
export const areEncodings = (value: unknown): value is readonly Encoding[] =>
  Array.isArray(value) && value.join() === ENCODINGS.filter((encoding) => value.includes(encoding)).join();

/** The largest page size that a build may have. */
const MAX_PAGE_SIZE = 100_000;

/** True for distinct page sizes in ascending order. */
export function arePageSizes(sizes: unknown): sizes is readonly number[] {
  if (!Array.isArray(sizes) || sizes.length === 0) return false;
  return sizes.every(
    (size: unknown, i) => Number.isSafeInteger(size) && Number(size) > Number(sizes[i - 1] ?? 0) && Number(size) <= MAX_PAGE_SIZE,
  );
}

/** Returns the default limit: the smallest page size of the build. */
export const defaultLimit = (site: Site): number => site.pageSizes[0] ?? 20;

/** Returns the maximum limit: the largest page size of the build. */
export const maximumLimit = (site: Site): number => site.pageSizes.at(-1) ?? defaultLimit(site);

/** Spells a hash or tx id as the dialect does in responses and paths. */
export const spellHex = (hex: string, dialect: Dialect): string => (dialect === 'contract' ? `0x${hex}` : hex);

const HEX_ID = /^(?:0x)?([0-9a-f]{64})$/;

/** Parses 64 hex digits in any case, with or without `0x`, into 64 lower-case digits. Undefined for anything else. */
export const parseHexId = (text: string): string | undefined => (text.length <= 66 ? HEX_ID.exec(text.toLowerCase())?.[1] : undefined);

/**
 * Parses the block id of a request: a hash (64 digits are always hex), or else a height in decimal digits. Removes
 * leading zeros. Heights too large for any data all become the same height. Undefined for anything else.
 */
export function parseBlockId(text: string): string | undefined {
  const hash = parseHexId(text);
  if (hash !== undefined) return hash;
  if (!/^[0-9]+$/.test(text)) return undefined;
  const height = text.replace(/^0+(?=[0-9])/, '');
  return height.length > BEYOND_ANY_HEIGHT.length ? BEYOND_ANY_HEIGHT : height;
}

/** True when a block id is a height, not a hash. */
export const isHeight = (block: string): boolean => block.length < 64;

/** 2^53: heights in input are at most 2^53 - 1. A path of thousands of digits would fail on most file systems. */
const BEYOND_ANY_HEIGHT = '9007199254740992';
