/**
 * The page at `/`: the explorer. Without scripts it shows the mirror's totals, statistics and the API's paths. Scripts add look-ups
 * (src/site/explorer). All URLs are relative, so that a mirror may be in any folder of a host.
 */
import type { Manifest } from '../contract/schemas.ts';
import type { Site } from '../pages/mirrorOptions.ts';
import { NETWORKS } from '../runes/networks.ts';
import { count, formatHeights, groupDigits, shorten } from './formatValues.ts';
import { barOf, HTML_START, ICON } from './html.ts';
import { overviewOf, type Statistics } from './overview.ts';

/** Returns those of the build's options that scripts need, as JSON. Escapes `<`, so that the JSON cannot contain markup. */
function settingsOf({ layout, dialect, page_sizes, operation_pages }: Manifest): string {
  const site: Omit<Site, 'parquet'> = { layout, dialect, pageSizes: page_sizes, operationPages: operation_pages };
  return JSON.stringify(site).replaceAll('<', '\\u003c');
}

/** Without a name in the manifest, the network is mainnet if no block is below its first one with runes: test networks have lower ones. */
const networkOf = ({ network, heights: [lowest] }: Manifest): string | undefined =>
  network ?? (lowest !== undefined && lowest[0] >= NETWORKS.main.firstHeight ? 'main' : undefined);

const SAMPLE_NOTE = '<p class="note"><strong>This is sample data.</strong> Blocks from 2,000,001 on and their runes are invented.</p>\n';

/** Renders the HTML document. It depends only on the manifest and the statistics of its blocks. */
export function explorerPage(manifest: Manifest, statistics: Statistics): string {
  const tip = manifest.heights.at(-1)?.[1] ?? 0;
  const [smallest = 20] = manifest.page_sizes;
  const network = networkOf(manifest);
  const example = `runes/v1/blocks/${tip}/activity?limit=${smallest}`;
  const about = `Bitcoin rune activity by transaction and block: ${count(manifest.records, 'record')} in ${count(manifest.blocks, 'block')}.`;
  const figure = (label: string, value: number) => `<div><dt>${label}</dt><dd>${groupDigits(value)}</dd></div>`;
  return `${HTML_START}
<meta name="description" content="${about}">
<meta property="og:title" content="Bitcoin rune activity">
<meta property="og:description" content="${about}">
<title>Rune activity mirror</title>
<link rel="icon" href="${ICON}">
<link rel="stylesheet" href="explorer.css">
<link rel="alternate" type="application/feed+json" title="Newest blocks" href="runes/v1/feed.json">
<script type="module" src="explorer.js" blocking="render"></script>
<noscript><style>.scripted { display: none !important }</style></noscript>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
${barOf('./')}
<form id="look-up" class="scripted" role="search" autocomplete="off" novalidate>
<label for="query">Look up</label>
<div class="field"><input id="query" name="query" type="text" inputmode="search" enterkeyhint="search" spellcheck="false" autocapitalize="none" maxlength="200" title="Press / to come here" aria-keyshortcuts="/" aria-describedby="query-problem" role="combobox" aria-expanded="false" aria-autocomplete="list" aria-controls="suggestions" placeholder="Rune, address, transaction or block"><button type="submit">Look up</button>
<ul id="suggestions" role="listbox" aria-label="Suggestions" hidden></ul></div>
<div id="query-problem" role="alert"></div>
</form>
</header>
<main id="main" tabindex="-1">
<p id="announcement" class="unseen" role="status"></p>
<div id="view" class="scripted" hidden></div>
<div id="overview" data-state="${manifest.digest} ${manifest.tip?.hash ?? ''}">
<h1>Bitcoin rune activity</h1>
${manifest.sample === true ? SAMPLE_NOTE : ''}<p class="lead">What runes did in each transaction and block, from static files. Blocks with runes: ${formatHeights(manifest.heights)}.</p>
<dl class="facts figures">
${figure('Records', manifest.records)}
${figure('Transactions', manifest.transactions)}
${figure('Blocks', manifest.blocks)}
${figure('Highest block', manifest.tip?.height ?? tip)}
</dl>
<noscript><p class="note">Look-ups on this page, and the pages of blocks and runes, need JavaScript. The API below does not.</p></noscript>
${overviewOf(statistics)}<section id="ask" aria-labelledby="ask-title">
<h2 id="ask-title">Use it</h2>
<div class="columns">
<div>
<ul class="paths">
<li><code>GET runes/v1/transactions/<var>tx_id</var>/activity?offset=&amp;limit=</code></li>
<li><code>GET runes/v1/blocks/<var>height or hash</var>/activity?offset=&amp;limit=${manifest.operation_pages ? '&amp;operation_type=' : ''}</code></li>
<li><code>GET runes/v1/etchings/<var>rune</var></code>, also with <code>/activity</code> or <code>/holders</code></li>
<li><code>GET runes/v1/addresses/<var>address</var>/balances</code>, <code>/outputs</code> or <code>/activity</code></li>
<li><code>GET runes/v1/outputs/<var>tx_id:index</var></code></li>
</ul>
<p>A mirror without the data for one of the last three answers 501, and says what it lacks.</p>
<p id="example">The default limit is ${smallest}, the maximum ${manifest.page_sizes.at(-1)}. Example: <a class="wrap" href="${example}"><code>${example}</code></a>.</p>
</div>
<ul class="links">
<li><a href="docs/">API reference</a> with examples, and the <a href="openapi.json">OpenAPI description</a></li>
<li><a href="client.js">Client module</a> for browsers and servers</li>
<li><a href="runes/v1/feed.json">Feed</a> of the newest blocks, and <a href="runes/v1/stats.json">statistics</a></li>
${manifest.rows === undefined ? '' : `<li><a href="${manifest.rows.index}">Parquet files</a> of all rows</li>\n`}<li><a href="runes/v1/manifest.json">Manifest</a> of this mirror, and its <a href="runes/v1/index.json">status</a></li>
</ul>
</div>
</section>
</div>
</main>
<footer><p>rune-activity-mirror ${manifest.version}, layout ${manifest.layout}, dialect ${manifest.dialect}. Digest of the data: <code title="${manifest.digest}">${shorten(manifest.digest)}</code></p></footer>
<script type="application/json" id="settings"${network === undefined ? '' : ` data-network="${network}"`}>${settingsOf(manifest)}</script>
</body>
</html>
`;
}
