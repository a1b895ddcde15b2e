/**
 * The files of a build that are not pages of lists.
 */
import { openapiText } from '../contract/openapi.ts';
import type { Manifest } from '../contract/schemas.ts';
import { errorBody } from '../http/errors.ts';
import type { Site } from '../pages/lists.ts';
import { prefixDigitsFor } from '../pages/packed.ts';
import { LANDING_PATH, MANIFEST_PATH, STATUS_PATH } from '../pages/paths.ts';
import { OPENAPI_PATH } from '../pages/siteFiles.ts';
import type { OwnFile } from '../site/assets.ts';
import { explorerPage } from '../site/explorerPage.ts';
import { type Store, toNumber } from '../store/duckdb.ts';
import { serverVersion, VERSION } from '../version.ts';
import { buildDigest } from './digests.ts';

/** The manifest of the state's blocks. It has no times, so that the same input makes the same bytes. */
export async function describeBuild(site: Site, siteUrl: string | undefined, store: Store): Promise<Manifest> {
  const runs = await store.rows(
    `SELECT min(block_height) AS first, max(block_height) AS last
     FROM (SELECT block_height, block_height - row_number() OVER (ORDER BY block_height) AS run FROM state.blocks) GROUP BY run ORDER BY first`,
  );
  const totals = await store.row(`SELECT count(*) AS blocks, sum(transactions)::BIGINT AS transactions, sum(records)::BIGINT AS records,
    sum(files)::BIGINT AS files, sum(bytes)::BIGINT AS bytes FROM state.blocks`);
  const transactions = toNumber(totals['transactions']);
  return {
    generator: 'rune-activity-mirror',
    version: VERSION,
    layout: site.layout,
    dialect: site.dialect,
    page_sizes: [...site.pageSizes],
    operation_pages: site.operationPages,
    ...(site.compress.length > 0 ? { compress: [...site.compress] } : {}),
    ...(siteUrl === undefined ? {} : { site_url: siteUrl }),
    ...(site.parquet ? { parquet: true as const } : {}),
    ...(site.layout === 'packed' ? { transaction_prefix: prefixDigitsFor(transactions) } : {}),
    heights: runs.map((run) => [toNumber(run['first']), toNumber(run['last'])]),
    blocks: toNumber(totals['blocks']),
    transactions,
    records: toNumber(totals['records']),
    files: toNumber(totals['files']),
    bytes: toNumber(totals['bytes']),
    digest: await buildDigest(store),
  };
}

/** Paths and contents, all of which follow from the manifest and the program. The manifest itself is the last. */
export function ownFiles(manifest: Manifest, assets: readonly OwnFile[]): OwnFile[] {
  const tip = manifest.heights.at(-1)?.[1] ?? 0;
  const status = { server_version: serverVersion(manifest.version), status: 'ready', block_height: tip };
  return [
    ...assets,
    [LANDING_PATH, Buffer.from(explorerPage(manifest))],
    [OPENAPI_PATH, Buffer.from(openapiText(manifest))],
    // What a static host answers for a path that is none.
    ['404.json', Buffer.from(errorBody(404, 'there is no such path in this API').body)],
    [STATUS_PATH, Buffer.from(JSON.stringify(status))],
    manifestFile(manifest),
  ];
}

export const manifestFile = (manifest: Manifest): OwnFile => [MANIFEST_PATH, Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)];
