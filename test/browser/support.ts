/**
 * Opens pages of a build in a real browser. Collects console messages, violations of the content security policy, and failed requests, so
 * that a test can check that there are none.
 */
import { existsSync } from 'node:fs';
import axe from 'axe-core';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page, type Request } from 'playwright-core';
import { expect } from 'vitest';

const SHELL = '/usr/bin/chromium-headless-shell';

/**
 * Path of the browser. The headless shell has the same engine as Chromium, but no user interface, which would take three quarters of the
 * CPU time of opening a page.
 */
export const CHROMIUM = process.env['CHROMIUM'] ?? (existsSync(SHELL) ? SHELL : '/usr/bin/chromium');

let browser: Promise<Browser> | undefined;

/** Returns the browser of this test file, which starts with the first page. */
const theBrowser = (): Promise<Browser> => {
  // Root may not use Chromium's sandbox, and containers have little shared memory. The other flags turn off processes and requests that no
  // test needs.
  browser ??= chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--no-sandbox',
      '--disable-dev-shm-usage',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
    ],
  });
  return browser;
};

/** Closes the browser. Call it after the last test of a file. */
export async function closeBrowser(): Promise<void> {
  await (await browser)?.close();
  browser = undefined;
}

/** A page in its own browser context, with the problems that occurred on it. */
export interface OpenPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /**
   * Problems of the page: errors and warnings of scripts, violations of the Content Security Policy, failed requests, and answers with
   * status 400 or higher.
   */
  readonly problems: string[];
  /** Requested URLs, in order. */
  readonly requested: string[];
  close(): Promise<void>;
}

/** Requests of each page that have not ended. */
const requestsOf = new WeakMap<Page, Set<Request>>();

/** Runs in a page before its scripts: counts the calls that fetch, read, hash or verify something and have not ended, in `pendingWork`. */
function countWork(): void {
  const count = { pendingWork: 0 };
  Object.assign(globalThis, { count });
  const end = () => {
    count.pendingWork -= 1;
  };
  const wrap = (object: object, name: string) => {
    const methods = object as Record<string, (...args: unknown[]) => Promise<unknown>>;
    const call = methods[name];
    if (call === undefined) return;
    methods[name] = function (this: unknown, ...args) {
      count.pendingWork += 1;
      const result = call.apply(this, args);
      result.then(end, end);
      return result;
    };
  };
  wrap(globalThis, 'fetch');
  for (const name of ['arrayBuffer', 'blob', 'json', 'text']) wrap(Response.prototype, name);
  wrap(ReadableStreamDefaultReader.prototype, 'read');
  if ('subtle' in crypto) for (const name of ['digest', 'importKey', 'verify']) wrap(SubtleCrypto.prototype, name);
}

/** Runs in a page: true if nothing that `countWork` counts goes on in several turns of the page, and no look-up. */
async function isIdle(): Promise<boolean> {
  const { count } = globalThis as unknown as { count?: { pendingWork: number } };
  for (let turns = 0; turns < 20; turns += 1) {
    // A test may control the page's timers, but not its messages.
    await new Promise((resolve) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = resolve;
      port2.postMessage(0);
    });
    if ((count?.pendingWork ?? 0) > 0 || document.querySelector('#view[aria-busy], .waiting') !== null) return false;
  }
  return true;
}

/** Waits until a page has loaded, all of its requests have ended, and its scripts have used the answers. */
export async function quiet(page: Page): Promise<void> {
  const unanswered = requestsOf.get(page) ?? new Set();
  for (;;) {
    await page.waitForLoadState('load');
    if ((await page.evaluate(isIdle)) && unanswered.size === 0) return;
  }
}

/** Opens a URL in a page, and waits until the page is quiet. */
export async function visit(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await quiet(page);
}

/** Loads a page again, and waits until it is quiet. */
export async function revisit(page: Page): Promise<void> {
  await page.reload();
  await quiet(page);
}

/** Opens a URL in a new context, and waits until the page has finished loading. */
export async function openPage(url: string, options: BrowserContextOptions = {}): Promise<OpenPage> {
  const context = await (await theBrowser()).newContext({ viewport: { width: 1280, height: 900 }, locale: 'en-GB', ...options });
  // The compiler of screenshots.ts names functions with this helper.
  await context.addInitScript('globalThis.__name = (named) => named');
  await context.addInitScript(countWork);
  const page = await context.newPage();
  // A slow machine that runs other suites may take longer than the default of 30 s.
  page.setDefaultTimeout(90_000);
  const unanswered = new Set<Request>();
  requestsOf.set(page, unanswered);
  const problems: string[] = [];
  const requested: string[] = [];
  page.on('pageerror', (error) => problems.push(`script: ${error.message}`));
  // Chromium reports violations of the Content Security Policy as console errors.
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    requested.push(request.url());
    unanswered.add(request);
  });
  page.on('requestfinished', (request) => unanswered.delete(request));
  // The end of a request of the page before is not always reported.
  page.on('framenavigated', () => unanswered.clear());
  page.on('requestfailed', (request) => {
    unanswered.delete(request);
    // The page itself cancels a look-up when its reader starts another one.
    if (request.failure()?.errorText !== 'net::ERR_ABORTED') problems.push(`failed: ${request.url()} ${request.failure()?.errorText}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 400) problems.push(`${response.status()}: ${response.url()}`);
  });
  // Without scripts, a page is complete when it has loaded.
  await (options.javaScriptEnabled === false ? page.goto(url) : visit(page, url));
  return { page, context, problems, requested, close: () => context.close() };
}

/** Checks the page with axe-core. Returns a line for each violation, with the elements that cause it. */
export async function violations(page: Page): Promise<string[]> {
  // Evaluates the script through the debugger, because the page's Content Security Policy would refuse it.
  await page.evaluate(axe.source);
  const { violations: found } = await page.evaluate<axe.AxeResults>(`axe.run(document, ${JSON.stringify({ runOnly: RULES })})`);
  return found.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`);
}

/** Checks that a page is accessible in light on a desktop and in dark on a phone, whose width it fits. */
export async function expectAccessible(page: Page): Promise<void> {
  expect(await violations(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.setViewportSize({ width: 360, height: 780 });
  expect(await violations(page)).toEqual([]);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
}

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
