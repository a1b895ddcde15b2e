/**
 * The page at `docs/`: the endpoints of the mirror's `openapi.json`, and Swagger UI as a console. The files of the
 * package `swagger-ui-dist` are copied unchanged, so the page loads nothing from other hosts.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { HTML_START } from './htmlStart.ts';

/**
 * Relative URLs start with `../docs/`, so that they also work on hosts that serve the page at `/docs`, without the
 * slash.
 */
const HTML = `${HTML_START}
<title>API - Rune activity mirror</title>
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; background: light-dark(#fff, #13141a); color: light-dark(#191a23, #e9e9f0); font-family: system-ui, sans-serif; line-height: 1.5 }
body { margin: 0 }
header, #endpoints, noscript, footer { display: block; max-width: 60rem; margin: 1rem auto; padding: 0 1.25rem }
h1 { margin: 0; font-size: 1.5rem }
nav a { display: inline-block; margin-inline-end: 1rem }
a { color: light-dark(#4138ad, #b6afff) }
#endpoints ul { padding: 0; list-style: none }
#endpoints :is(p, code) { overflow-wrap: anywhere }
#endpoints li { border-top: 1px solid light-dark(#e2e2ea, #2d2f3a); padding-block: .75rem }
#endpoints li p { margin: .25rem 0 0 }
#swagger-ui:focus { outline: none }
[hidden] { display: none !important }
</style>
</head>
<body>
<header>
<h1>API of this mirror</h1>
<nav aria-label="Mirror"><a href="../">Back to the mirror</a><a href="../docs/">Endpoints</a><a href="../openapi.json">openapi.json</a></nav>
</header>
<main id="endpoints"></main>
<div id="swagger-ui" tabindex="-1" hidden></div>
<noscript>This page needs JavaScript. The description for programs is <a href="../openapi.json">openapi.json</a>.</noscript>
<footer>The console is Swagger UI. <a href="../docs/LICENSE.txt">Its licences</a></footer>
<script type="module" src="../docs/init.js"></script>
</body>
</html>
`;

/**
 * Returns the page, Swagger UI's script and styles, and the required licences: Apache 2.0 with its notice, and the
 * licences of programs bundled in the script. Throws if the package is missing.
 */
export function docsFiles(): [path: string, content: Buffer][] {
  const folder = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
  const read = (name: string) => readFileSync(join(folder, name));
  const licences = [
    read('NOTICE'),
    read('LICENSE'),
    'swagger-ui-bundle.js contains other programs under these licences (in the package: swagger-ui-bundle.js.LICENSE.txt):\n',
    read('swagger-ui-bundle.js.LICENSE.txt'),
  ];
  return [
    ['docs/index.html', Buffer.from(HTML)],
    ['docs/swagger-ui-bundle.js', read('swagger-ui-bundle.js')],
    ['docs/swagger-ui.css', read('swagger-ui.css')],
    ['docs/LICENSE.txt', Buffer.from(licences.join('\n'))],
  ];
}
