/** The page for paths outside the API that a mirror lacks (404). They have any depth, so it has no relative URLs and loads no files. */
import type { Manifest } from '../contract/schemas.ts';
import { escaped, HTML_START } from './html.ts';

/** Renders the HTML document. Without `site_url`, its links assume that the mirror is at the root of its host. */
export function notFoundPage({ site_url }: Manifest): string {
  const root = escaped(site_url === undefined ? '/' : new URL(site_url).pathname);
  return `${HTML_START}
<meta name="robots" content="noindex">
<title>Not found · Rune activity mirror</title>
<style>
:root { color-scheme: light dark; font: 16px / 1.5 -apple-system, "Segoe UI", Roboto, Inter, "Helvetica Neue", "Liberation Sans", Arial, sans-serif }
body { max-width: 40rem; margin: 15vh auto; padding: 0 1rem; background: #fff; color: #191a23 }
a { color: #4138ad }
@media (prefers-color-scheme: dark) {
body { background: #13141a; color: #e9e9f0 }
a { color: #b6afff }
}
</style>
</head>
<body>
<main>
<h1>Not found</h1>
<p>This mirror of Bitcoin rune activity has no page at this address.</p>
<p><a href="${root}">Look up runes, addresses, transactions and blocks</a>, or read about <a href="${root}docs/">the API</a>.</p>
</main>
</body>
</html>
`;
}
