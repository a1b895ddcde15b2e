/** Creates a JSON Feed of the last blocks (https://jsonfeed.org/version/1.1). */
import type { BlockStats, Feed } from '../../contract/statsSchemas.ts';
import { OPERATIONS } from '../../pages/blockAndTransactionLists.ts';
import { FEED_PATH } from '../../pages/filePaths.ts';

/** Number of blocks in the feed. These are about five hours of blocks, so readers that poll every hour miss none. */
const FEED_ITEMS = 30;

/** Relative path from the feed to the root of the mirror. */
const TO_ROOT = '../'.repeat(FEED_PATH.split('/').length - 1);

/** Creates the feed. The heights of `blocks` must ascend. `siteUrl` is the mirror's URL with a final slash, if known. */
export function feedOf(blocks: readonly BlockStats[], siteUrl: string | undefined): Feed {
  return {
    version: 'https://jsonfeed.org/version/1.1',
    title: 'Rune activity by block',
    ...(siteUrl === undefined ? {} : { home_page_url: siteUrl, feed_url: `${siteUrl}${FEED_PATH}` }),
    description: `The last ${FEED_ITEMS} blocks with activity of Bitcoin runes that this mirror holds.`,
    language: 'en',
    items: blocks
      .slice(-FEED_ITEMS)
      .reverse()
      .map((block) => itemOf(block, siteUrl ?? TO_ROOT)),
  };
}

function itemOf(block: BlockStats, root: string): Feed['items'][number] {
  const published = utcOf(block.timestamp);
  return {
    id: block.hash.slice(-64),
    url: `${root}?block=${block.height}`,
    title: `Block ${block.height}: ${count(block.records, 'record')} in ${count(block.transactions, 'transaction')}`,
    content_text: `${wordsOf(block)}. Block hash ${block.hash}.`,
    ...(published === undefined ? {} : { date_published: published }),
  };
}

const PLURALS = { etching: 'etchings', mint: 'mints', burn: 'burns', send: 'sends', receive: 'receives' } as const;

/** Formats the counts of a block: `1 etching, 2 mints and 3 sends`. */
function wordsOf(block: BlockStats): string {
  const words = OPERATIONS.filter((operation) => block[operation] > 0).map((o) => `${block[o]} ${block[o] === 1 ? o : PLURALS[o]}`);
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

const count = (n: number, what: string): string => `${n} ${what}${n === 1 ? '' : 's'}`;

/** First second of the year 10000, in seconds since 1970. RFC 3339 has no dates from this year on. */
const END_OF_DATES = Date.UTC(10_000, 0) / 1000;

/** Formats seconds since 1970 as `2024-04-20T00:09:27Z`. Undefined from the year 10000 on. */
const utcOf = (timestamp: number): string | undefined =>
  timestamp < END_OF_DATES ? new Date(timestamp * 1000).toISOString().replace('.000Z', 'Z') : undefined;
