/** Reads the records on a page of the explorer, and the same records from the API. */
import { cpSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import serveHandler from 'serve-handler';
import settings from '../../hosting/files-only/serve.json' with { type: 'json' };
import { temporaryFolder } from '../support/build.ts';
import type { Activity } from '../support/records.ts';
import { type Host, listening } from '../support/server.ts';

/** A row of the activity table, with full ids and amounts instead of the shortened text. */
export interface Row {
  readonly operation: string;
  readonly rune: string;
  readonly amount: string | null;
  readonly addresses: readonly string[];
  readonly output: string | null;
  readonly transaction: string | null;
}

/**
 * Returns the rows on the page. If a sender also receives the transfer, the row names the address twice. In a block, rows are grouped by
 * transaction.
 */
export const rowsOf = (page: Page): Promise<Row[]> =>
  page.$$eval('.activity tbody tr:not(.transaction)', (rows) =>
    rows.map((row) => {
      const cell = (name: string) => row.querySelector(`[data-label="${name}"]`);
      const ids = (name: string) =>
        [...(cell(name)?.querySelectorAll('code[title]') ?? [])].map((code) => code.getAttribute('title') ?? '');
      const operation = cell('Operation')?.textContent ?? '';
      const addresses = ids('From and to');
      return {
        operation,
        rune: cell('Rune')?.textContent ?? '',
        amount: cell('Amount')?.querySelector('data')?.getAttribute('value') ?? null,
        addresses: operation === 'to itself' ? [...addresses, ...addresses] : addresses,
        output: ids('Output')[0] ?? null,
        transaction: row.parentElement?.querySelector('.transaction code')?.getAttribute('title') ?? null,
      };
    }),
  );

/** Converts a record of the API to the row that the explorer shows for it. */
export function rowOf({ rune, address, receiver_address, amount, operation, location }: Activity, kind: 'block' | 'transaction'): Row {
  const [txId = '', vout = location.vout] = (location.output ?? '').replace(/^0x/, '').split(':');
  return {
    operation,
    rune: `${rune.spaced_name} ${rune.id}`,
    amount: amount ?? null,
    addresses: [address, receiver_address].filter((each) => each !== undefined),
    output: location.output === undefined ? null : `${txId}:${vout}`,
    transaction: kind === 'block' ? location.tx_id : null,
  };
}

/**
 * Splits rows into a list of records without receives, in order, and the amount that each output received. Rows of the page and records of
 * the API must give the same result.
 */
export function told(rows: readonly Row[]) {
  const received: Record<string, string> = {};
  const records = rows.flatMap((row) => {
    const { operation, rune, amount, output, transaction } = row;
    const isJoined = operation === 'transfer' || operation === 'to itself';
    const isMinted = operation === 'mint' && output !== null;
    if (isJoined || isMinted || operation === 'receive') {
      const key = [transaction, rune, output].join(' ');
      received[key] = String(BigInt(received[key] ?? 0) + BigInt(amount?.replace('.', '') ?? 0));
    }
    if (operation === 'receive') return [];
    return [{ ...row, ...(isJoined ? { operation: 'send' } : isMinted ? { addresses: [], output: null } : {}) }];
  });
  return { records, received };
}

/**
 * Requests a complete list from the API of a server. `path` is for example `blocks/840000`. `query` is added to the query of each request.
 */
export async function listOf(host: Host, path: string, query = ''): Promise<Activity[]> {
  const records: Activity[] = [];
  for (;;) {
    const { body } = await host.send('GET', `/runes/v1/${path}/activity?limit=60&offset=${records.length}${query}`);
    const { total, results } = JSON.parse(body) as { total: number; results: Activity[] };
    records.push(...results);
    if (records.length >= total) return records;
  }
}

/** Waits until the page shows the answer to a look-up. */
export async function settled(page: Page): Promise<void> {
  await page.waitForFunction(() => document.querySelector('#view[aria-busy]') === null && document.querySelector('.waiting') === null);
}

/** Types a text into the search field and submits it, as a user does. */
export async function lookUp(page: Page, text: string): Promise<void> {
  await page.fill('#query', text);
  await page.press('#query', 'Enter');
  await settled(page);
}

/** Serves the files of a build below a folder, like GitHub Pages. Returns the URL of this folder, without a slash at the end. */
export async function filesBelowFolder(dist: string): Promise<{ readonly url: string; close(): Promise<void> }> {
  const root = temporaryFolder();
  const folder = '/people/mirror';
  cpSync(dist, join(root, folder), { recursive: true });
  const config = {
    ...settings,
    public: root,
    headers: settings.headers.map(({ source, headers }) => ({ source: source.startsWith('/') ? folder + source : source, headers })),
  };
  const server = createServer((request, response) => {
    // Adds index.html, because the package serve-handler finds index pages only at paths that its options name, and these options name none
    // below the folder.
    request.url = request.url?.replace(/\/(?=\?|$)/, '/index.html');
    void serveHandler(request, response, config);
  });
  const { url, close } = await listening(server);
  return { url: url + folder, close };
}
