/**
 * The page at `docs/`: the endpoints of the mirror's `openapi.json`, with links to their answers, and the rules of the
 * API. Its script shows an answer of this mirror on the page (src/site/apiDocs).
 */
import { escaped } from './html.ts';
import { barOf, HTML_START, ICON } from './htmlStart.ts';

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly description: string;
  readonly example?: string | number;
}

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly { readonly $ref: string }[];
}

/** The parts of the description that the page shows. */
interface Description {
  readonly info: { readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, { readonly get: Operation }>>;
  readonly components: { readonly parameters: Readonly<Record<string, Parameter>> };
}

/** Returns the HTML of a text with `code` and **bold** words. */
const marked = (text: string): string =>
  escaped(text)
    .replace(/`([^`]+)`/g, '<code>$1</code>')
    .replace(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>');

/** Renders the HTML document of the text of `openapi.json`. URLs start with `../`, so that they also work on hosts that serve the page at `/docs`. */
export function apiDocsPage(openapi: string): string {
  const { info, tags, paths, components } = JSON.parse(openapi) as Description;
  const endpoint = (path: string, { operationId, summary, description, parameters = [] }: Operation): string => {
    const own = parameters.flatMap(({ $ref }) => components.parameters[$ref.split('/').at(-1) ?? ''] ?? []);
    const example = (_: string, name: string) => String(own.find((parameter) => parameter.name === name)?.example ?? '');
    const target = path.replace(/\{(\w+)\}/g, example).slice(1);
    const rows = own.map((parameter) => `<div><dt><code>${parameter.name}</code></dt><dd>${marked(parameter.description)}</dd></div>`);
    return `<article id="${operationId}">
<h3><code>GET ${escaped(path)}</code></h3>
<p>${escaped(summary)}. ${marked(description)}</p>
${rows.length === 0 ? '' : `<dl class="parameters">\n${rows.join('\n')}\n</dl>\n`}<p>Example: <a class="wrap" href="../${escaped(target)}"><code>${escaped(target)}</code></a></p>
<details class="scripted" data-target="${escaped(target)}"><summary>Its answer</summary><pre tabindex="0"></pre></details>
</article>`;
  };
  const sections = tags.map(({ name, description }) => {
    const own = Object.entries(paths).filter(([, { get }]) => get.tags.includes(name));
    return `<section>\n<h2>${name}</h2>\n<p>${escaped(description)}</p>\n${own.map(([path, { get }]) => endpoint(path, get)).join('\n')}\n</section>`;
  });
  const rules = info.description.split('\n\n').map((text) => `<p>${marked(text)}</p>`);
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
