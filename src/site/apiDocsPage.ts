/** The page at `docs/`: endpoints (endpoints.ts) and rules of the API. Its script shows answers of this mirror (src/site/apiDocs). */
import type { Manifest } from '../contract/schemas.ts';
import { siteOf } from '../pages/mirrorOptions.ts';
import { type Endpoint, endpointsOf, parametersOf, tipOf } from './endpoints.ts';
import { barOf, escaped, HTML_START, ICON } from './html.ts';
import { describeApi, parametersIn, tagsOf } from './openapi.ts';

const marked = (text: string): string =>
  escaped(text)
    .replace(/`([^`]+)`/g, '<code>$1</code>')
    .replace(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>');

/** Renders the HTML document. URLs start with `../`, so that they also work on hosts that serve the page at `/docs`. */
export function apiDocsPage(manifest: Manifest): string {
  const site = siteOf(manifest);
  const parameters = parametersIn(site, tipOf(manifest));
  const article = (endpoint: Endpoint): string => {
    const { path, id, summary, description } = endpoint;
    const target = path.replace(/\{(\w+)\}/g, (_, name: string) => String(parameters[name]?.[2] ?? '')).slice(1);
    const rows = parametersOf(endpoint, site).map(
      (name) => `<div><dt><code>${name}</code></dt><dd>${marked(parameters[name]?.[1] ?? '')}</dd></div>`,
    );
    return `<article id="${id}">
<h3><code>GET ${escaped(path)}</code></h3>
<p>${escaped(summary)}. ${marked(description)}</p>
${rows.length === 0 ? '' : `<dl class="parameters">\n${rows.join('\n')}\n</dl>\n`}<p>Example: <a class="wrap" href="../${escaped(target)}"><code>${escaped(target)}</code></a></p>
<details class="scripted" data-target="${escaped(target)}"><summary>Its answer</summary><pre tabindex="0"></pre></details>
</article>`;
  };
  const endpoints = endpointsOf(manifest, site);
  const sections = tagsOf(site).map(({ name, description }) => {
    const own = endpoints.filter(({ tag }) => tag === name).map(article);
    return `<section>\n<h2>${name}</h2>\n<p>${escaped(description)}</p>\n${own.join('\n')}\n</section>`;
  });
  const rules = describeApi(site)
    .split('\n\n')
    .map((text) => `<p>${marked(text)}</p>`);
  return `${HTML_START}
<meta name="description" content="Endpoints of the API of this mirror of Bitcoin rune activity, with an example of each.">
<title>API · Rune activity mirror</title>
<link rel="icon" href="${ICON}">
<link rel="stylesheet" href="../explorer.css">
<script type="module" src="../docs/init.js"></script>
<noscript><style>.scripted { display: none !important }</style></noscript>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
${barOf('../')}
</header>
<main id="main" class="api" tabindex="-1">
<h1>API of this mirror</h1>
<p class="lead">For programs, the same is in <a href="../openapi.json">openapi.json</a> (OpenAPI 3.1).</p>
${sections.join('\n')}
<section>
<h2>Rules</h2>
${rules.join('\n')}
</section>
</main>
</body>
</html>
`;
}
