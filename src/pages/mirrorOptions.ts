/**
 * Options of a build that readers need: dialect, layout, page sizes, compressed files. A build takes them from its flags, and a reader from
 * the manifest.
 */
import type { RootName } from '../format/archiveReader.ts';
import { isFileName } from '../format/fileName.ts';
import { checkFormat } from '../format/formatVersion.ts';

/** The two spellings of responses, of which a build uses one (docs/api.md, "Dialects"). */
export const DIALECTS = ['contract', 'hiro'] as const;
export type Dialect = (typeof DIALECTS)[number];

/** Returns the name of a dialect for people: flags and messages say `0x`, manifests `contract`. */
export const dialectName = (dialect: Dialect): string => (dialect === 'contract' ? '0x' : dialect);

/** `files` has a file for every page of every list. `archive` (src/format) has each record once, compressed, in few files. */
export const LAYOUTS = ['files', 'archive'] as const;
export type Layout = (typeof LAYOUTS)[number];

export interface Site {
  readonly layout: Layout;
  readonly dialect: Dialect;
  /** Numbers of records per page, ascending. The first is the default limit of the API, the last its maximum. */
  readonly pageSizes: readonly number[];
  /** True when blocks can be filtered by operation. */
  readonly operationPages: boolean;
  /** True when the build also publishes ledger rows as Parquet files. */
  readonly parquet: boolean;
}

/** Options of a build plus facts about its data, for the page map (respond.ts). Read from the build's manifest. */
export interface BuiltSite extends Site {
  /** Name of the archive's root (format/root.ts) in layout `archive`; undefined in layout `files`. */
  readonly archive: RootName | undefined;
  /** Root of the archive with etchings and other lists. In layout `files`, this archive is beside the pages. */
  readonly listRoot: RootName | undefined;
  /** Height of the last block that was read; -1 without blocks. */
  readonly tip: number;
  readonly lists: Lists;
}

/** The optional parts of the API that the mirror has (pages/optionalEndpoints.ts), by name. */
interface Lists {
  readonly etchings?: { readonly total: number };
  /** Newer builds may have other parts. */
  readonly [part: string]: object | undefined;
}

/**
 * Number of newest blocks that a reorganisation may replace. No reorganisation has been deeper than six blocks since 2013. Lower blocks are
 * settled: CDNs cache them for long.
 */
export const UNSETTLED_BLOCKS = 6;

export const isSettled = (height: number, site: BuiltSite): boolean => height <= site.tip - UNSETTLED_BLOCKS;

/**
 * Reads the options of a build from its manifest. Throws a FormatError for another format version, and an Error for anything that is not a
 * manifest of this program. Uses no schema library, because the library would make up 90 % of the bundle of an edge function.
 */
export function siteOf(manifest: unknown): BuiltSite {
  const fields = Object(manifest) as Readonly<Record<string, unknown>>;
  const { generator, page_sizes, operation_pages } = fields;
  if (generator === 'rune-activity-mirror') checkFormat(fields['format']);
  const dialect = DIALECTS.find((name) => name === fields['dialect']);
  const layout = LAYOUTS.find((name) => name === fields['layout']);
  const archive = fields['archive'];
  const listRoot = fields['list_root'] ?? archive;
  const parquet = fields['rows'] !== undefined;
  // Manifests of older builds have no `lists`.
  const lists = fields['lists'] ?? {};
  if (
    generator !== 'rune-activity-mirror' ||
    layout === undefined ||
    dialect === undefined ||
    typeof operation_pages !== 'boolean' ||
    !arePageSizes(page_sizes) ||
    (archive !== undefined && !isRootName(archive)) ||
    (archive !== undefined) !== (layout === 'archive') ||
    (listRoot !== undefined && !isRootName(listRoot)) ||
    !areLists(lists)
  ) {
    throw new Error('not a manifest of this version of rune-activity-mirror');
  }
  const { height } = Object(fields['tip']) as { readonly height?: unknown };
  // A manifest without blocks has no tip. With -1, no block counts as settled, which only makes CDNs cache less.
  const tip = Number.isSafeInteger(height) ? Number(height) : -1;
  return { layout, dialect, pageSizes: page_sizes, operationPages: operation_pages, parquet, archive, listRoot, tip, lists };
}

function areLists(value: unknown): value is Lists {
  if (typeof value !== 'object' || value === null) return false;
  const { etchings = { total: 0 } } = value as { readonly etchings?: { readonly total?: unknown } };
  const areObjects = Object.values(value).every((facts) => typeof facts === 'object' && facts !== null);
  return areObjects && Number.isSafeInteger(etchings.total) && Number(etchings.total) >= 0;
}

function isRootName(value: unknown): value is RootName {
  const { root, bytes } = Object(value) as Readonly<Record<string, unknown>>;
  return isFileName(root) && Number.isSafeInteger(bytes) && Number(bytes) > 0;
}

const MAX_PAGE_SIZE = 100_000;

/** True for distinct page sizes in ascending order. */
export function arePageSizes(sizes: unknown): sizes is readonly number[] {
  if (!Array.isArray(sizes) || sizes.length === 0) return false;
  return sizes.every(
    (size: unknown, i) => Number.isSafeInteger(size) && Number(size) > Number(sizes[i - 1] ?? 0) && Number(size) <= MAX_PAGE_SIZE,
  );
}

export const defaultLimit = (site: Site): number => site.pageSizes[0] ?? 20;
export const maximumLimit = (site: Site): number => site.pageSizes.at(-1) ?? defaultLimit(site);
