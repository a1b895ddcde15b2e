/**
 * The page at `/`: what this mirror holds, and how to ask it. Plain HTML without scripts.
 */
import type { Manifest } from '../contract/schemas.ts';

/** The whole HTML document. */
export function landingPage(manifest: Manifest): string {
  const tip = manifest.heights.at(-1)?.[1] ?? 0;
  const heights = manifest.heights.map(([first, last]) => (first === last ? `${first}` : `${first} to ${last}`));
  const shown = heights.length > 12 ? [...heights.slice(0, 6), '…', ...heights.slice(-5)] : heights;
  const example = `/runes/v1/blocks/${tip}/activity?limit=${manifest.page_sizes[0]}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Rune activity mirror</title>
<style>
:root { color-scheme: light dark; font-family: system-ui, sans-serif; line-height: 1.5 }
body { max-width: 44rem; margin: 2rem auto; padding: 0 1rem }
code { overflow-wrap: anywhere }
</style>
</head>
<body>
<h1>Rune activity mirror</h1>
<p>A read-only mirror of Bitcoin rune activity, made of static files: ${manifest.records} records of ${manifest.transactions} transactions
in ${manifest.blocks} blocks. Heights with activity: ${shown.join(', ')}.</p>
<h2>Ask it</h2>
<ul>
<li><code>GET /runes/v1/transactions/{tx_id}/activity?offset=&amp;limit=</code></li>
<li><code>GET /runes/v1/blocks/{height or hash}/activity?offset=&amp;limit=&amp;operation_type=</code></li>
</ul>
<p>The limit is ${manifest.page_sizes[0]} unless given, and at most ${manifest.page_sizes.at(-1)}.
For example <a href="${example}"><code>${example}</code></a>, the <a href="/runes/v1/">status</a>, or
the <a href="/runes/v1/manifest.json">manifest</a> of what is held.</p>
</body>
</html>
`;
}
