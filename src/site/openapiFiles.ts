/** Operations of the API's description that return files of the build. */
import type { Manifest } from '../contract/schemas.ts';
import type { BuiltSite } from '../pages/mirrorOptions.ts';
import { serverVersion } from '../version.ts';

export type Json = Readonly<Record<string, unknown>>;

/** Returns the names of the parameters in a path, such as `tx_id` of `{tx_id}`. */
export const namesIn = (path: string): string[] => [...path.matchAll(/(?<=\{)\w+(?=\})/g)].map(([name]) => name);

/** The build that the document describes. */
export interface Subject {
  readonly site: BuiltSite;
  /** Height of the mirror's highest block. */
  readonly tip: number;
  readonly version: string;
  /** The list of published rows, if there are any. */
  readonly rows: Manifest['rows'];
}

export interface FileOperation {
  readonly path: string;
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  /** Name of the response's schema. */
  readonly schema: string;
  readonly example?: Json;
}

export function fileOperations({ tip, version, rows }: Subject): FileOperation[] {
  return [
    {
      path: '/runes/v1/',
      id: 'getStatus',
      tag: 'Mirror',
      summary: 'Status and highest block',
      description: 'Also at `/runes/v1`, `/runes/` and `/runes`; on plain file hosts at `/runes/v1/index.json`.',
      schema: 'Status',
      example: { server_version: serverVersion(version), status: 'ready', block_height: tip },
    },
    {
      path: '/runes/v1/manifest.json',
      id: 'getManifest',
      tag: 'Mirror',
      summary: 'Manifest of the mirror',
      description: 'Heights, counts, page sizes, dialect and a digest of all data.',
      schema: 'Manifest',
    },
    {
      path: '/runes/v1/digests/{first_of_thousand}.json',
      id: 'getDigests',
      tag: 'Mirror',
      summary: 'Digests of a thousand blocks',
      description: 'A digest of each block, to compare mirrors. 404 if none of the heights has activity.',
      schema: 'Digests',
    },
    {
      path: '/runes/v1/changes/index.json',
      id: 'getChangesIndex',
      tag: 'Mirror',
      summary: 'Newest blocks with a file of changes',
      description: 'Hashes of the newest 144 blocks, so that clients find the newest block that they know.',
      schema: 'ChangesIndex',
    },
    {
      path: '/runes/v1/changes/{recent_height}.json',
      id: 'getChanges',
      tag: 'Mirror',
      summary: 'What a block touched',
      description: 'Runes, addresses and outputs that one of the newest 144 blocks touched. 404 for an older block.',
      schema: 'Changes',
    },
    {
      path: '/runes/v1/blocks.json',
      id: 'getLatestBlocks',
      tag: 'Statistics',
      summary: 'Latest blocks',
      description: 'The last hundred blocks with their statistics, for clients that poll.',
      schema: 'LatestBlocks',
    },
    {
      path: '/runes/v1/feed.json',
      id: 'getFeed',
      tag: 'Statistics',
      summary: 'Feed of the latest blocks',
      description: 'JSON Feed 1.1, for feed readers.',
      schema: 'Feed',
    },
    {
      path: '/runes/v1/stats.json',
      id: 'getStats',
      tag: 'Statistics',
      summary: 'Statistics of all blocks',
      description: 'Totals, activity over time and the most active runes, for charts.',
      schema: 'Stats',
    },
    {
      path: '/runes/v1/stats/{first_of_hundred}.json',
      id: 'getStatsOfHundred',
      tag: 'Statistics',
      summary: 'Statistics of a hundred heights',
      description: 'Statistics of each block, and of each rune in these blocks. 404 if none of the heights has activity.',
      schema: 'StatsOfHundred',
    },
    {
      path: '/runes/v1/search/{letters}.json',
      id: 'getRunesByLetters',
      tag: 'Etchings',
      summary: 'Runes by the first letters of their names',
      description:
        'For suggestions while a user types. Has the runes whose names begin with these two letters, or consist of this one letter. 404 if there are none. If there are too many, the names with some third letters are in their own files, such as `search/do/g.json`.',
      schema: 'SearchFile',
    },
    ...(rows !== undefined
      ? [
          {
            path: `/${rows.index}`,
            id: 'getRowsIndex',
            tag: 'Bulk data',
            summary: 'List of the Parquet files',
            description:
              'The manifest has the path in `rows`. The files are beside this list, as in `rows/840000-840099-3fa04c1b0d5e6f72.parquet`.',
            schema: 'RowsIndex',
          },
        ]
      : []),
  ];
}
