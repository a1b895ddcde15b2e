/**
 * What the API can list, and how ids are spelled.
 *
 * A list is everything that one transaction, one block, or one operation within one block did. The writer makes
 * the files of each list and the reader maps requests to them; both take the paths from `paths.ts`.
 */

/** The two spellings of a response; a build has one (decisions.md, "Dialects"). */
export const DIALECTS = ['contract', 'hiro'] as const;
export type Dialect = (typeof DIALECTS)[number];

/** The kinds of rune activity. The order is the order of the codes that the renderer gives to the writer. */
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
 * How a build lays out its files: `files` has every page of every list as a file, `packed` each record once, in pages of the largest size,
 * and an index of the transactions (pages/packed.ts).
 */
export const LAYOUTS = ['files', 'packed'] as const;
export type Layout = (typeof LAYOUTS)[number];

/** Endings of the compressed files that may lie beside a page, the smallest first. */
export const ENCODINGS = ['br', 'gz'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** What the makers of a build choose. */
export interface Site {
  readonly layout: Layout;
  readonly dialect: Dialect;
  /** Ascending; the first is the API's default limit, the last its maximum. */
  readonly pageSizes: readonly number[];
  /** Whether blocks can be filtered by operation. */
  readonly operationPages: boolean;
  /** The compressed files that lie beside the pages, in the order of ENCODINGS. */
  readonly compress: readonly Encoding[];
  /** Whether all records lie beside the API as Parquet files too. */
  readonly parquet: boolean;
}

/** What the page map has to know of a build. It stands in the build's manifest. */
export interface BuiltSite extends Site {
  /** How many hex digits of a tx id name its part of the index; 0 in layout `files`, which has none. */
  readonly prefixDigits: number;
  /** The highest block height in the data; -1 when there is none. */
  readonly tip: number;
}

/** How many of the highest blocks the chain may still replace: a reorganisation deeper than six blocks has not been seen since 2013. */
const UNSETTLED_BLOCKS = 6;

/** Whether a block of this height is not expected to change any more. */
export const isSettled = (height: number, site: BuiltSite): boolean => height <= site.tip - UNSETTLED_BLOCKS;

/**
 * What a build's manifest says about it. Throws for anything that is no manifest of this program. Checked by hand because it runs in
 * edge functions, where the schema library would be 90 % of the bundle.
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
    throw new Error('this is not a manifest of rune-activity-mirror, or one of another version');
  }
  const tip = tipOf(fields['heights']);
  return { layout, dialect, pageSizes: page_sizes, operationPages: operation_pages, compress, parquet, prefixDigits, tip };
}

/** The last height of the manifest's runs of heights. A text that is none makes all blocks unsettled, which is never wrong. */
function tipOf(heights: unknown): number {
  const run: unknown = Array.isArray(heights) ? heights.at(-1) : undefined;
  const tip: unknown = Array.isArray(run) ? run[1] : undefined;
  return Number.isSafeInteger(tip) ? Number(tip) : -1;
}

const isPrefixLength = (digits: unknown, layout: Layout): digits is number =>
  layout === 'files' ? digits === 0 : Number.isInteger(digits) && Number(digits) >= 1 && Number(digits) <= 16;

/** Whether these are encodings in the order of ENCODINGS, none twice. */
export const areEncodings = (value: unknown): value is readonly Encoding[] =>
  Array.isArray(value) && value.join() === ENCODINGS.filter((encoding) => value.includes(encoding)).join();

/** The largest page size that a build may have. */
const MAX_PAGE_SIZE = 100_000;

/** Whether this is a list of page sizes: ascending whole numbers, none twice. */
export function arePageSizes(sizes: unknown): sizes is readonly number[] {
  if (!Array.isArray(sizes) || sizes.length === 0) return false;
  return sizes.every(
    (size: unknown, i) => Number.isSafeInteger(size) && Number(size) > Number(sizes[i - 1] ?? 0) && Number(size) <= MAX_PAGE_SIZE,
  );
}

/** The default limit: the smallest page size of the build. */
export const defaultLimit = (site: Site): number => site.pageSizes[0] ?? 20;

/** The maximum limit: the largest page size of the build. */
export const maximumLimit = (site: Site): number => site.pageSizes.at(-1) ?? defaultLimit(site);

/** A hash or tx id as the dialect spells it in responses and therefore in paths. */
export const spellHex = (hex: string, dialect: Dialect): string => (dialect === 'contract' ? `0x${hex}` : hex);

const HEX_ID = /^(?:0x)?([0-9a-f]{64})$/;

/** 64 hex digits in any case, with or without `0x`, as 64 lower-case digits; undefined for anything else. */
export const parseHexId = (text: string): string | undefined => (text.length <= 66 ? HEX_ID.exec(text.toLowerCase())?.[1] : undefined);

/**
 * A block id of a request: a hash (64 hex digits; decimal digits count as hex), or else a height in decimal digits.
 * Leading zeros of a height are dropped, and all heights that no data can have are one. Undefined for anything else.
 */
export function parseBlockId(text: string): string | undefined {
  const hash = parseHexId(text);
  if (hash !== undefined) return hash;
  if (!/^[0-9]+$/.test(text)) return undefined;
  const height = text.replace(/^0+(?=[0-9])/, '');
  return height.length > BEYOND_ANY_HEIGHT.length ? BEYOND_ANY_HEIGHT : height;
}

/** Whether a block of a list is named by its height, and not by its hash. */
export const isHeight = (block: string): boolean => block.length < 64;

/** 2^53: input holds heights up to 2^53 - 1. A path of thousands of digits would be an error on most file systems. */
const BEYOND_ANY_HEIGHT = '9007199254740992';
