/**
 * Netlify on this machine: the engines of its own development server behind a real HTTP server. They run in Netlify's order: edge function,
 * redirect rules, files, headers. The engines are a separate package; see package.json in this folder.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { freePort } from '../support/ports.ts';
import { type LocalHost, listening } from '../support/server.ts';

const HERE = new URL('.', import.meta.url).pathname;
const PACKAGES = join(HERE, 'node_modules');
const PROJECT = join(HERE, '../..');
const CONFIG = join(PROJECT, 'netlify.toml');
const EDGE_FUNCTIONS = join(PROJECT, 'src/serve/netlify');
const DENO = join(PACKAGES, 'deno', process.platform === 'win32' ? 'deno.exe' : 'deno');

export interface NetlifyOptions {
  /** The folder of a build. */
  readonly dist: string;
  /** `off`: the site has no edge function. `failing`: the edge function throws, because its request for the manifest gets a 500. */
  readonly edge: 'on' | 'off' | 'failing';
}

export interface NetlifyHost extends LocalHost {
  /** Returns the output of the edge function's process so far. */
  edgeLog(): string;
}

// The parts of the engines that the tests use. Without an import of their types, the project type-checks even if the engines are not
// installed.
type GetFile = (request: Request) => Promise<(() => Promise<Response>) | undefined>;
interface EdgeProcess {
  ps?: ChildProcess;
}
interface EdgeHandler {
  initialized: boolean;
  denoServerProcess: EdgeProcess | undefined;
  match(request: Request): Promise<{ handle(request: Request, origin: string): Promise<Response> } | undefined>;
  getFunctionConfigs(port: number, functions: Record<string, string>): Promise<unknown>;
  initialize(env: Record<string, string>): Promise<{ denoPort: number; success: boolean }>;
  waitForDenoServer(port: number): Promise<void>;
  stop(): Promise<void>;
}
interface RedirectMatch {
  readonly statusCode: number;
  readonly target: URL;
}
interface RedirectsHandler {
  match(request: Request): Promise<RedirectMatch | undefined>;
  handle(request: Request, match: RedirectMatch, getFile: GetFile): Promise<Response | undefined>;
}
interface StaticHandler {
  match(request: Request): Promise<{ handle(): Promise<Response> } | undefined>;
}
interface HeadersHandler {
  apply(request: Request, response: Response): Promise<unknown>;
}
interface Engines {
  EdgeFunctionsHandler: new (options: object) => EdgeHandler;
  RedirectsHandler: new (options: object) => RedirectsHandler;
  StaticHandler: new (options: object) => StaticHandler;
  HeadersHandler: new (options: object) => HeadersHandler;
}

/** Loads the engines. Throws an error that names a missing package. */
async function loadEngines(): Promise<Engines> {
  const names = ['edge-functions-dev', 'redirects', 'static', 'headers'].map((name) => `@netlify/${name}`);
  const missing = names.filter((name) => !existsSync(join(PACKAGES, name)));
  if (!existsSync(DENO)) missing.push('deno (its install script puts the program in place)');
  if (missing.length > 0) throw new Error(`not installed: ${missing.join(', ')}. Run: npm ci --prefix test/hosts`);
  const modules = await Promise.all(names.map((name) => import(name)));
  return Object.assign({}, ...modules) as Engines;
}

export async function startNetlify({ dist, edge }: NetlifyOptions): Promise<NetlifyHost> {
  const engines = await loadEngines();
  const redirects = new engines.RedirectsHandler({
    configPath: CONFIG,
    configRedirects: [],
    jwtRoleClaim: '',
    jwtSecret: '',
    projectDir: PROJECT,
    publicDir: dist,
  });
  const files = new engines.StaticHandler({ directory: dist });
  const headers = new engines.HeadersHandler({
    configPath: CONFIG,
    configHeaders: [],
    projectDir: PROJECT,
    publishDir: dist,
    logger: console,
  });
  const edgeFunctions = edge === 'off' ? undefined : startEdgeFunctions(engines);

  async function answer(request: Request, origin: string): Promise<Response> {
    const matched = await edgeFunctions?.handler.match(request);
    if (matched !== undefined) return matched.handle(request, origin);
    if (edge === 'failing' && request.url.endsWith('/manifest.json')) return new Response('made to fail', { status: 500 });

    const rule = await redirects.match(request);
    const applied = rule && (await redirects.handle(request, rule, (wanted) => getFile(request, wanted, rule)));
    return applied ?? (await (await getFile(request, request))?.()) ?? new Response('Not Found', { status: 404 });
  }

  /**
   * Returns a file with its headers. If a redirect rule leads to the file, the rule also sets the status, which the engine leaves to its
   * caller.
   */
  async function getFile(request: Request, wanted: Request, rule?: RedirectMatch): Promise<(() => Promise<Response>) | undefined> {
    const file = await files.match(wanted);
    if (file === undefined) return undefined;
    return async () => {
      const response = await file.handle();
      await headers.apply(wanted, response);
      return asServed(request, response, wanted === request ? 200 : (rule?.statusCode ?? 200));
    };
  }

  const server = createServer((incoming, outgoing) => {
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    toRequest(incoming, origin)
      .then((request) => answer(request, origin))
      .then((response) => sendResponse(response, incoming, outgoing))
      .catch((error: unknown) => outgoing.writeHead(502).end(`the chain failed: ${error instanceof Error ? error.stack : String(error)}`));
  });
  const { close, ...host } = await listening(server);
  return {
    ...host,
    edgeLog: () => edgeFunctions?.log.join('') ?? '',
    close: async () => {
      await edgeFunctions?.handler.stop();
      await close();
    },
  };
}

/**
 * Starts the emulator of edge functions, with other arguments for deno. By default, the emulator listens on all interfaces, may download
 * another deno, and resolves packages from the current folder.
 */
function startEdgeFunctions({ EdgeFunctionsHandler }: Engines): { handler: EdgeHandler; log: string[] } {
  const log: string[] = [];
  let configs: Promise<unknown> | undefined;
  class LocalEdgeFunctions extends EdgeFunctionsHandler {
    /** Reads the configuration only once. By default, the emulator starts a worker for it at every request. */
    override getFunctionConfigs(port: number, functions: Record<string, string>): Promise<unknown> {
      configs ??= super.getFunctionConfigs(port, functions);
      return configs;
    }

    override async initialize(): Promise<{ denoPort: number; success: boolean }> {
      const denoPort = await freePort();
      const program = pathToFileURL(join(PACKAGES, '@netlify/edge-functions-dev/dist/deno/server.mjs')).href;
      const settings = JSON.stringify({ denoPort, requestTimeout: 30_000 });
      const ps = spawn(DENO, ['eval', '--allow-scripts', '--quiet', '--no-lock', `import(${JSON.stringify(program)});`, settings], {
        cwd: PROJECT,
        env: {
          DENO_DIR: join(PACKAGES, '.cache/deno'),
          DENO_NO_UPDATE_CHECK: '1',
          DENO_REGION: 'dev',
          DENO_SERVE_ADDRESS: `tcp:127.0.0.1:${denoPort}`,
          NO_COLOR: '1',
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      for (const stream of [ps.stdout, ps.stderr]) stream.setEncoding('utf8').on('data', (text: string) => log.push(text));
      const endWithParent = () => ps.kill('SIGKILL');
      process.once('exit', endWithParent);
      ps.once('close', () => process.off('exit', endWithParent));
      this.denoServerProcess = { ps };
      await this.waitForDenoServer(denoPort);
      this.initialized = true;
      return { denoPort, success: true };
    }
  }
  const handler = new LocalEdgeFunctions({
    configDeclarations: [],
    directories: [EDGE_FUNCTIONS],
    env: {},
    geolocation: {},
    logger: console,
  });
  return { handler, log };
}

/**
 * Does what Netlify's CDN does to files: adds headers and a strong ETag of the content, and answers with a 304 if a client has this ETag.
 */
async function asServed(request: Request, file: Response, status: number): Promise<Response> {
  const body = Buffer.from(await file.arrayBuffer());
  const etag = `"${createHash('md5').update(body).digest('hex')}-ssl"`;
  const headers = new Headers(file.headers);
  headers.set('etag', etag);
  if (status === 200 && request.headers.get('if-none-match')?.includes(etag)) return new Response(null, { status: 304, headers });
  return new Response(body, { status, headers });
}

async function toRequest(incoming: IncomingMessage, origin: string): Promise<Request> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const { method = 'GET', url = '/' } = incoming;
  const body = chunks.length === 0 || method === 'GET' || method === 'HEAD' ? null : Buffer.concat(chunks);
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined && !['connection', 'host', 'transfer-encoding'].includes(name)) headers.set(name, String(value));
  }
  if (!headers.has('x-nf-request-id')) headers.set('x-nf-request-id', randomUUID());
  return new Request(new URL(origin + url), { method, headers, body });
}

async function sendResponse(response: Response, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const body = Buffer.from(await response.arrayBuffer());
  for (const [name, value] of response.headers) {
    if (!['connection', 'keep-alive', 'transfer-encoding'].includes(name)) outgoing.setHeader(name, value);
  }
  outgoing.writeHead(response.status).end(incoming.method === 'HEAD' ? undefined : body);
}
