/**
 * Opens pages of a build in a real browser. Collects console messages, violations of the content security policy, and
 * failed requests, so that a test can check that there are none.
 */
import { existsSync } from 'node:fs';
import axe from 'axe-core';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const SHELL = '/usr/bin/chromium-headless-shell';

/**
 * Path of the browser. The headless shell has the same engine as Chromium, but no user interface, which would take
 * three quarters of the CPU time of opening a page.
 */
export const CHROMIUM = process.env['CHROMIUM'] ?? (existsSync(SHELL) ? SHELL : '/usr/bin/chromium');

let browser: Promise<Browser> | undefined;

/** Returns the browser of this test file, which starts with the first page. */
const theBrowser = (): Promise<Browser> => {
  // Root may not use Chromium's sandbox, and containers have little shared memory. The other flags turn off processes
  // and requests that no test needs.
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
   * Problems of the page: errors and warnings of scripts, violations of the Content Security Policy, failed requests,
   * and answers with status 400 or higher.
   */
  readonly problems: string[];
  /** Requested URLs, in order. */
  readonly requested: string[];
  close(): Promise<void>;
}

/** Opens a URL in a new context, and waits until the page has finished loading. */
export async function openPage(url: string, options: BrowserContextOptions = {}): Promise<OpenPage> {
  const context = await (await theBrowser()).newContext({ viewport: { width: 1280, height: 900 }, locale: 'en-GB', ...options });
  const page = await context.newPage();
  const problems: string[] = [];
  const requested: string[] = [];
  page.on('pageerror', (error) => problems.push(`script: ${error.message}`));
  // Chromium reports violations of the Content Security Policy as console errors.
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => requested.push(request.url()));
  page.on('requestfailed', (request) => {
    // The page itself cancels a look-up when its reader starts another one.
    if (request.failure()?.errorText !== 'net::ERR_ABORTED') problems.push(`failed: ${request.url()} ${request.failure()?.errorText}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 400) problems.push(`${response.status()}: ${response.url()}`);
  });
  await page.goto(url, { waitUntil: 'networkidle' });
  return { page, context, problems, requested, close: () => context.close() };
}

/** Checks the page with axe-core. Returns a line for each violation, with the elements that cause it. */
export async function violations(page: Page): Promise<string[]> {
  // Evaluates the script through the debugger, because the page's Content Security Policy would refuse it.
  await page.evaluate(axe.source);
  const { violations: found } = await page.evaluate<axe.AxeResults>(`axe.run(document, ${JSON.stringify({ runOnly: RULES })})`);
  return found.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`);
}

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
