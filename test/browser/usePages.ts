/** Pages and hosts of a test file. */
import type { BrowserContextOptions } from 'playwright-core';
import { afterAll, afterEach } from 'vitest';
import { type LocalHost, startServer } from '../support/server.ts';
import { closeBrowser, type OpenPage, openPage } from './support.ts';

/** Returns functions that open pages, which are closed after their test, and start hosts, which stop after all tests of the file. */
export function usePages() {
  const pages: OpenPage[] = [];
  const hosts: LocalHost[] = [];
  afterEach(async () => {
    for (const each of pages.splice(0)) await each.close();
  });
  afterAll(async () => {
    await closeBrowser();
    for (const each of hosts) await each.close();
  });
  return {
    async open(url: string, options?: BrowserContextOptions): Promise<OpenPage> {
      const opened = await openPage(url, options);
      pages.push(opened);
      return opened;
    },
    async serve(dist: string): Promise<LocalHost> {
      const host = await startServer(dist);
      hosts.push(host);
      return host;
    },
  };
}
