/**
 * Script of the API page: lists the endpoints of the mirror's `openapi.json`, and then its rules. Swagger UI, which
 * sends requests, is ten times as large as this page. So Swagger UI loads only for a hash in the URL, such as
 * `#/Activity/listBlockActivity`.
 */
import { byId, type Child, el } from '../explorer/dom.ts';

declare const SwaggerUIBundle: (settings: Readonly<Record<string, unknown>>) => unknown;

interface Description {
  readonly info: { readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, { readonly get: Operation }>>;
}

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
}

// This URL is absolute, because Swagger UI resolves the relative server URL against it.
const DESCRIPTION = new URL('../openapi.json', location.href).href;
const [list, swagger] = [byId('endpoints'), byId('swagger-ui')];

/** Creates the elements of a text with `code` and **bold** words. */
const marked = (text: string): Child[] =>
  text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (part.startsWith('`')) return el('code', {}, part.slice(1, -1));
    return part.startsWith('**') ? el('strong', {}, part.slice(2, -2)) : part;
  });

function endpoint(path: string, { operationId, tags: [tag], summary, description }: Operation): HTMLElement {
  const link = el('a', { href: `#/${tag}/${operationId}` }, el('code', {}, `GET ${path}`));
  return el('li', {}, link, el('p', {}, `${summary}. `, ...marked(description)));
}

async function showEndpoints(): Promise<void> {
  const response = await fetch(DESCRIPTION);
  if (!response.ok) throw new Error(`status ${response.status}`);
  const { info, tags, paths } = (await response.json()) as Description;
  const operations = Object.entries(paths).map(([path, { get }]) => ({ path, get }));
  const sections = tags.map(({ name, description }) => {
    const own = operations.filter(({ get }) => get.tags.includes(name));
    return el(
      'section',
      {},
      el('h2', {}, name),
      el('p', {}, description),
      el('ul', {}, ...own.map(({ path, get }) => endpoint(path, get))),
    );
  });
  const rules = info.description.split('\n\n').map((text) => el('p', {}, ...marked(text)));
  list.replaceChildren(
    el('p', {}, 'Each endpoint leads to ', el('a', { href: '#/' }, 'a console'), ' that sends requests. It loads half a megabyte.'),
    ...sections,
    el('section', {}, el('h2', {}, 'Rules'), ...rules),
  );
}

/** Loads Swagger UI, which then shows the operation of the URL's hash. */
async function startSwagger(): Promise<void> {
  swagger.textContent = 'Loading the console…';
  const script = el('script', { src: '../docs/swagger-ui-bundle.js' });
  await new Promise((resolve, reject) => {
    script.addEventListener('load', resolve);
    script.addEventListener('error', () => reject(new Error('swagger-ui-bundle.js is missing')));
    document.head.append(el('link', { rel: 'stylesheet', href: '../docs/swagger-ui.css' }), script);
  });
  SwaggerUIBundle({
    url: DESCRIPTION,
    dom_id: '#swagger-ui',
    deepLinking: true,
    tryItOutEnabled: true,
    supportedSubmitMethods: ['get'],
    displayRequestDuration: true,
    // Turns off the validator badge, which would load an image from another host.
    validatorUrl: null,
  });
}

/** Starts a part of the page, or says why it cannot be shown. */
function start(place: HTMLElement, work: () => Promise<void>): void {
  work().catch((error: unknown) => {
    place.textContent = `This part of the page cannot be loaded (${error instanceof Error ? error.message : error}). Reload the page.`;
  });
}

const started = new Set<HTMLElement>();

/** Shows the console or the endpoints, as the hash says. */
function show(): void {
  const isConsole = location.hash.startsWith('#/');
  list.hidden = isConsole;
  swagger.hidden = !isConsole;
  const place = isConsole ? swagger : list;
  if (!started.has(place)) start(place, isConsole ? startSwagger : showEndpoints);
  started.add(place);
  // Moves the focus, because the clicked link is hidden now.
  if (isConsole) swagger.focus();
}

const isDark = matchMedia('(prefers-color-scheme: dark)');
const colour = () => document.documentElement.classList.toggle('dark-mode', isDark.matches);
isDark.addEventListener('change', colour);
colour();
addEventListener('hashchange', show);
show();
