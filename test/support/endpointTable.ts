/** The table of the API's endpoints in docs/api.md. */
import type { BuiltSite } from '../../src/pages/mirrorOptions.ts';
import { type FurtherPart, neededBy } from '../../src/pages/optionalEndpoints.ts';
import { endpointsOf, partOf } from '../../src/site/endpoints.ts';

/** Sections of docs/api.md about optional parts of the API. */
const SECTIONS: Readonly<Record<FurtherPart, string>> = {
  etchings: 'etchings',
  rune_activity: 'activity-by-rune-and-by-address',
  address_activity: 'activity-by-rune-and-by-address',
  holders: 'balances-and-holders',
  balances: 'balances-and-holders',
  outputs: 'unspent-outputs',
};

/** Sections about the files of every mirror, by the schema of the answer. */
const FILES = 'files.md#statistics-the-feed-and-the-search';
const SECTIONS_OF_FILES: Readonly<Record<string, string>> = {
  Manifest: 'files.md#files',
  Digests: 'trust.md#somebody-elses-mirror',
  ChangesIndex: '#files-of-changes',
  Changes: '#files-of-changes',
  LatestBlocks: FILES,
  Feed: FILES,
  Stats: FILES,
  StatsOfHundred: FILES,
  SearchFile: FILES,
};

/** A mirror without any part of the API. The table does not depend on it. */
export const BARE: BuiltSite = {
  layout: 'files',
  dialect: 'contract',
  pageSizes: [20, 60],
  operationPages: true,
  parquet: false,
  archive: undefined,
  listRoot: undefined,
  tip: 840000,
  lists: {},
};

const HEAD = '| path | answer | mirrors that have it |\n| --- | --- | --- |\n';
const TABLE = new RegExp(`^${HEAD.replaceAll('|', '[|]')}(?:[|].*\n)*`, 'm');

const marked = (text: string): string => text.replace(/--\w+|\barchive\b/g, '`$&`');

/** Replaces the table of endpoints in the text of docs/api.md. */
export function withEndpoints(document: string): string {
  if (!TABLE.test(document)) throw new Error('the document has no table of endpoints');
  const endpoints = endpointsOf({ heights: [], version: '0' }, BARE);
  const rows = endpoints.map((endpoint) => {
    const { path, summary, schema } = endpoint;
    const part = partOf(endpoint);
    const section = part === undefined ? SECTIONS_OF_FILES[schema] : `#${SECTIONS[part]}`;
    const answer = section === undefined ? summary : `[${summary}](${section})`;
    return `| \`${path.replace('/runes/v1', '')}\` | ${answer} | ${part === undefined ? 'all' : `with ${marked(neededBy(part))}`} |\n`;
  });
  return document.replace(TABLE, () => `${HEAD}${rows.join('')}`);
}
