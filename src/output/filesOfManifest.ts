/** Files of a build that follow from the manifest, the statistics and the program: site, API description, error page, status. */
import type { Manifest } from '../contract/schemas.ts';
import type { LatestBlocks, Stats } from '../contract/statsSchemas.ts';
import { NOT_FOUND_PATH, OPENAPI_PATH } from '../pages/fileKinds.ts';
import { LANDING_PATH, LATEST_PATH, STATS_PATH, STATUS_PATH } from '../pages/filePaths.ts';
import { errorBody } from '../serve/http/errorBodies.ts';
import { apiDocsPage } from '../site/apiDocsPage.ts';
import type { OwnFile } from '../site/assets.ts';
import { explorerPage } from '../site/explorerPage.ts';
import { notFoundPage } from '../site/notFoundPage.ts';
import { openapiText } from '../site/openapi.ts';
import { serverVersion } from '../version.ts';
import { manifestFile } from './manifest.ts';

/**
 * Returns the paths and contents of the start page and the status, which need statistics, too. `read` returns the content of a file of the
 * build by its path. Throws an Error if the file is damaged or missing. The status has no time of the build, so that equal input gives
 * equal bytes. Only its records tell when the highest block was mined.
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
