/**
 * The manifest of a build, `runes/v1/manifest.json`, and files that follow from it. It contains no times, so that equal input gives equal
 * bytes. Only signing adds a time, in `note`.
 */
import { type Manifest, MOST_RUNES_NAMED } from '../contract/schemas.ts';
import { sourcesUpTo } from '../contract/sources.ts';
import type { LatestBlocks, Stats } from '../contract/statsSchemas.ts';
import { int, type Store, text } from '../duckdb/store.ts';
import type { Etchings } from '../engine/state/knownEtchings.ts';
import type { StateTables } from '../engine/state/state.ts';
import type { RootName } from '../format/archiveReader.ts';
import { FORMAT } from '../format/formatVersion.ts';
import { lastRanked } from '../format/levels.ts';
import type { ListTables } from '../format/listTables.ts';
import type { BlocksRead } from '../input/blocksRead.ts';
import { IS_INVENTED } from '../input/sampleCommand.ts';
import { NOT_FOUND_PATH, OPENAPI_PATH } from '../pages/fileKinds.ts';
import { LANDING_PATH, LATEST_PATH, MANIFEST_PATH, rowsIndexPath, STATS_PATH, STATUS_PATH } from '../pages/filePaths.ts';
import type { Site } from '../pages/mirrorOptions.ts';
import { publishedIndex } from '../rows/publishRows.ts';
import { errorBody } from '../serve/http/errorBodies.ts';
import { apiDocsPage } from '../site/apiDocsPage.ts';
import type { OwnFile } from '../site/assets.ts';
import { explorerPage } from '../site/explorerPage.ts';
import { notFoundPage } from '../site/notFoundPage.ts';
import { openapiText } from '../site/openapi.ts';
import { serverVersion, VERSION } from '../version.ts';
import { digestOfState } from './digests.ts';

/** Archive of a build: name of its root (format/root.ts), and number and total bytes of its files, including the root. */
export interface ArchiveFacts {
  readonly name: RootName;
  readonly files: number;
  readonly bytes: number;
  readonly lists: ListTables | undefined;
}

/** Returns the manifest of the blocks in `state`. `archive` and `etchings` are undefined if the mirror has none. */
export async function manifestOf(
  site: Site,
  siteUrl: string | undefined,
  { sources, network }: Pick<BlocksRead, 'sources' | 'network'>,
  archive: ArchiveFacts | undefined,
  etchings: Etchings | undefined,
  state: StateTables,
  store: Store,
): Promise<Manifest> {
  const { digest, heights } = await digestOfState(state, store);
  const [tip] = await store.rows(`SELECT block_height AS height, block_hash AS hash FROM ${state.tip}`, { height: int, hash: text });
  const read = sourcesUpTo(tip?.height, sources);
  const sums = ['transactions', 'records', 'files', 'bytes'].map((name) => `coalesce(sum(${name}), 0)::BIGINT AS ${name}`);
  const { blocks, invented, transactions, records, files, bytes } = await store.row(
    `SELECT count(*) AS blocks, count(*) FILTER (${IS_INVENTED}) AS invented, ${sums.join(', ')} FROM ${state.blocks}`,
    { blocks: int, invented: int, transactions: int, records: int, files: int, bytes: int },
  );
  const rows = await publishedIndex(state, store);
  const [changes] = await store.rows(`FROM ${state.changesIndex}`, { sha256: text });
  return {
    generator: 'rune-activity-mirror',
    format: FORMAT,
    version: VERSION,
    ...(invented > 0 ? { sample: true as const } : {}),
    layout: site.layout,
    dialect: site.dialect,
    page_sizes: [...site.pageSizes],
    operation_pages: site.operationPages,
    ...(siteUrl === undefined ? {} : { site_url: siteUrl }),
    ...(rows === undefined ? {} : { rows: { index: rowsIndexPath(rows.sha256), sha256: rows.sha256 } }),
    ...(changes === undefined ? {} : { changes }),
    ...(archive === undefined ? {} : site.layout === 'archive' ? { archive: archive.name } : { list_root: archive.name }),
    heights,
    ...(tip === undefined ? {} : { tip }),
    blocks,
    transactions,
    records,
    ...(await leftOut(state, store)),
    ...(read.length > 0 ? { sources: read } : {}),
    ...(network === undefined ? {} : { network }),
    ...listsOf(etchings, archive?.lists),
    files: files + (archive?.files ?? 0),
    bytes: bytes + (archive?.bytes ?? 0),
    digest,
  };
}

/** Returns the field `lists` of the manifest, which names the optional parts of the API that the mirror has. */
function listsOf(etchings: Pick<Etchings, 'total' | 'hasCounts'> | undefined, tables: ListTables | undefined): Pick<Manifest, 'lists'> {
  const { activity, balances, outputs } = tables ?? {};
  const unbalanced = balances?.unbalanced;
  const ranked = tables === undefined ? -1 : lastRanked(tables.tip, tables);
  const facts: Record<keyof NonNullable<Manifest['lists']>, object | undefined> & Manifest['lists'] = {
    etchings: etchings && { total: etchings.total, ...(etchings.hasCounts ? { counts: true as const } : {}) },
    rune_activity: activity && {},
    address_activity: activity && {},
    balances:
      balances &&
      (unbalanced === undefined
        ? {}
        : { unbalanced: { runes: unbalanced.runes.map((id) => id.slice(0, 64)), more_runes: unbalanced.more } }),
    holders: balances && (balances.holders.some(({ last }) => last <= ranked) ? { block_height: ranked } : {}),
    outputs: outputs && {},
  };
  const lists = Object.entries(facts).filter(([, one]) => one !== undefined);
  return lists.length === 0 ? {} : { lists: Object.fromEntries(lists) };
}

/** Counts the ledger rows that the build omits because their rune is unknown. A row in several files counts once. */
async function leftOut(state: StateTables, store: Store): Promise<Pick<Manifest, 'left_out'>> {
  const rows = await store.rows(
    `SELECT rune_id, sum(records)::BIGINT AS records, sum(sum(records)) OVER ()::BIGINT AS rows, count(*) OVER () AS runes
     FROM (SELECT block_height, rune_id, max(records) AS records FROM ${state.leftOut} GROUP BY ALL)
     GROUP BY rune_id ORDER BY records DESC, rune_id LIMIT ${MOST_RUNES_NAMED}`,
    { rune_id: text, rows: int, runes: int },
  );
  const [first] = rows;
  if (first === undefined) return {};
  // A rune id in a ledger may be any text, so its length is limited. Real ids have about 10 characters.
  const runes = rows.map((row) => row.rune_id.slice(0, 64));
  return { left_out: { rows: first.rows, runes, more_runes: first.runes - runes.length } };
}

export const manifestFile = (manifest: Manifest): OwnFile => [MANIFEST_PATH, Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)];

/**
 * Returns the paths and contents of the start page and the status, which need statistics, too. `read` returns the content of a file of the
 * build. Throws an Error if it is damaged or missing. The status has no time of the build, so that equal input gives equal bytes: it has
 * that of the highest block, if the block has records.
 */
export function filesOfStatistics(manifest: Manifest, read: (path: string) => Buffer): OwnFile[] {
  const stats = JSON.parse(read(STATS_PATH).toString()) as Stats;
  const latest = JSON.parse(read(LATEST_PATH).toString()) as LatestBlocks;
  const height = manifest.tip?.height ?? 0;
  const [newest] = latest.blocks;
  const status = {
    server_version: serverVersion(manifest.version),
    status: 'ready',
    block_height: height,
    block_time: newest?.height === height ? newest.timestamp : null,
  };
  return [
    [LANDING_PATH, Buffer.from(explorerPage(manifest, { stats, latest }))],
    [STATUS_PATH, Buffer.from(JSON.stringify(status))],
  ];
}

/** Returns the paths and contents of the files that depend only on the manifest and the program. The manifest is last. */
export function ownFiles(manifest: Manifest): OwnFile[] {
  return [
    ['docs/index.html', Buffer.from(apiDocsPage(manifest))],
    [OPENAPI_PATH, Buffer.from(openapiText(manifest))],
    // Static hosts send these files for unknown paths.
    [NOT_FOUND_PATH, Buffer.from(notFoundPage(manifest))],
    ['404.json', Buffer.from(errorBody(404, 'there is no such path in this API').body)],
    manifestFile(manifest),
  ];
}
