/**
 * A real browser on pages of a build. Collects messages on the console, violations of the content security policy, and failed requests, so that a
 * test can check that there are none.
 */
import { existsSync } from 'node:fs';
import axe from 'axe-core';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const SHELL = '/usr/bin/chromium-headless-shell';

/**
 * The browser's program. The headless shell has the same engine without the windows, which take three quarters of the CPU
 * time of opening a page.
 */
export const CHROMIUM = process.env['CHROMIUM'] ?? (existsSync(SHELL) ? SHELL : '/usr/bin/chromium');

let browser: Promise<Browser> | undefined;

/** The browser of this test file, started by the first page. */
const theBrowser = (): Promise<Browser> => {
  // Root may not use the sandbox, and containers have little memory to share. The other flags turn off processes and
  // requests of Chromium that no test needs.
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

/** Ends the browser; to be called after the last test of a file. */
export async function closeBrowser(): Promise<void> {
  await (await browser)?.close();
  browser = undefined;
}

/** A page in a context of its own, and what went wrong on it. */
export interface OpenPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors and warnings of scripts, violations of the policy, requests that failed or were answered with 400 and more. Empty when all is well. */
  readonly problems: string[];
  /** URLs that were asked for, in order. */
  readonly requested: string[];
  close(): Promise<void>;
}

/** Opens an address in a fresh context, and waits until nothing more is loaded. */
export async function openPage(url: string, options: BrowserContextOptions = {}): Promise<OpenPage> {
  const context = await (await theBrowser()).newContext({ viewport: { width: 1280, height: 900 }, locale: 'en-GB', ...options });
  const page = await context.newPage();
  const problems: string[] = [];
  const requested: string[] = [];
  page.on('pageerror', (error) => problems.push(`script: ${error.message}`));
  // Violations of the policy are among these: Chromium reports them as errors.
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => requested.push(request.url()));
  page.on('requestfailed', (request) => {
    // A look-up that the next one overtook is given up by the page itself.
    if (request.failure()?.errorText !== 'net::ERR_ABORTED') problems.push(`failed: ${request.url()} ${request.failure()?.errorText}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 400) problems.push(`${response.status()}: ${response.url()}`);
  });
  await page.goto(url, { waitUntil: 'networkidle' });
  return { page, context, problems, requested, close: () => context.close() };
}

/** Runs axe-core on the page. Returns a line for each violation, with the elements. */
export async function violations(page: Page): Promise<string[]> {
  // Runs the script through the debugger, because the page's policy does not apply there.
  await page.evaluate(axe.source);
  const { violations: found } = await page.evaluate<axe.AxeResults>(`axe.run(document, ${JSON.stringify({ runOnly: RULES })})`);
  return found.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`);
}

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
