/**
 * Pulls blocks from a server of the API: reads the activity pages of each block, up to the tip in the server's status.
 */
import { z } from 'zod';
import { InputError } from '../../errors.ts';
import { BadBlockError, type BlockIdentity, CheckedBlock } from '../blockIdentity.ts';
import { allBy, type Extent, HIGHEST, type Source } from '../blockSource.ts';
import type { Heights } from '../heightRange.ts';
import type { Client } from '../httpClient.ts';
import { type Fetched, writeBlock } from '../writePulled.ts';
import { bytesOf, type Page, parsePage, readBlock } from './blockPages.ts';
import { type EtchingList, parseEtchingPage } from './pullEtchings.ts';

/** First block of Bitcoin's main chain that can contain runes, by the runes protocol. */
const FIRST_RUNE_BLOCK = 840_000;

/** Records per page if the server does not tell its largest limit. */
const COMMON_LIMIT = 60;

/** A limit that is too large for every server. The error response names the server's largest limit. */
const TOO_MUCH = 1_000_000;

/** Records per page if the server has no limit. */
const LARGEST_PAGE = 5000;

const status = z.object({ block_height: z.int().min(0).max(HIGHEST).nullish() });

/** Maximum number of blocks to search for records, from the tip down. If none has records, the pull ends at the tip. */
const MOST_EMPTY = 100;

export class HttpSource implements Source {
  readonly name: string;
  readonly origin = allBy('server');
  readonly perFile = 1;
  readonly knowsDigests = false;
  #limit: number | undefined;

  /** `base` is the part of the URL before `/runes/v1`. */
  constructor(
    base: string,
    private readonly client: Client,
    private readonly folder: string,
  ) {
    this.name = base;
  }

  async look(): Promise<Extent> {
    const { block_height: tip } = await this.#get('/runes/v1/', (text) => status.parse(JSON.parse(text)));
    if (tip === undefined || tip === null)
      throw new InputError(`${this.name} has no blocks: its status has no block_height`, [
        'Wait until its indexer has read blocks, or check that --from is the URL of a server of this API.',
      ]);
    this.#limit ??= await this.#largestLimit(tip);
    return { first: 0, begin: Math.min(FIRST_RUNE_BLOCK, tip), last: await this.#lastWithRecords(tip), has: () => true };
  }

  /**
   * Finds the last block with records, at or below the tip. Does not trust the empty blocks above that block, because a
   * server may report a block in its status before it has read the block's records.
   */
  async #lastWithRecords(tip: number): Promise<number> {
    for (let height = tip; height >= 0 && height > tip - MOST_EMPTY; height -= 1)
      if ((await this.#page(height, 1, 0)).total > 0) return height;
    return tip;
  }

  get etchings(): EtchingList {
    return {
      limit: this.#limit ?? COMMON_LIMIT,
      isCounted: false,
      read: async (limit, offset) => {
        const url = `${this.name}/runes/v1/etchings?offset=${offset}&limit=${limit}`;
        return (await this.client.get(url, parseEtchingPage, bytesOf(limit))).body;
      },
      persist: (what, step) => this.client.persist(what, step),
    };
  }

  async identities(heights: readonly number[]): Promise<Map<number, BlockIdentity>> {
    const identities = new Map<number, BlockIdentity>();
    for (const height of heights) {
      const identity = await this.client.persist(`block ${height}`, async () => {
        const { total, results } = await this.#page(height, 1, 0);
        if (results.length !== Math.min(total, 1))
          throw new BadBlockError(`has ${total} records, but a request for one of them was answered with ${results.length} records`);
        const block = new CheckedBlock(height);
        for (const record of results) block.add(record);
        return { hash: block.end().hash, records: total };
      });
      identities.set(height, identity);
    }
    return identities;
  }

  async fetch({ first: height }: Heights): Promise<Fetched> {
    const limit = this.#limit ?? COMMON_LIMIT;
    return this.client.persist(`block ${height}`, () =>
      writeBlock(this.folder, height, (add) => readBlock(height, limit, (size, offset) => this.#page(height, size, offset), add)),
    );
  }

  #page(height: number, limit: number, offset: number): Promise<Page> {
    return this.#get(`/runes/v1/blocks/${height}/activity?offset=${offset}&limit=${limit}`, parsePage, bytesOf(limit));
  }

  /** Requests a limit that is too large, and reads the server's largest limit from the error response. */
  async #largestLimit(tip: number): Promise<number> {
    const path = `/runes/v1/blocks/${tip}/activity?offset=0&limit=${TOO_MUCH}`;
    const { body, refusal } = await this.client.get(this.name + path, parsePage, bytesOf(TOO_MUCH));
    if (body !== undefined) return Math.min(body.limit, LARGEST_PAGE);
    const [, limit] = /limit must be <= ([1-9][0-9]{0,5})\b/.exec(refusal) ?? [];
    return Math.min(Number(limit ?? COMMON_LIMIT), LARGEST_PAGE);
  }

  async #get<T>(path: string, parse: (text: string) => T, most?: number): Promise<T> {
    const { status, body } = await this.client.get(this.name + path, parse, most);
    if (body !== undefined) return body;
    const [url] = (this.name + path).split('?');
    if (status === 401 || status === 403)
      throw new InputError(`${url} was answered with status ${status}: the API key is missing or not accepted`, [
        "Give a key with --header 'x-api-key: ...' or in the environment variable PULL_HEADERS.",
      ]);
    throw new InputError(`${url} was answered with status ${status}`, [
      'Check that --from is the URL of a server of this API, without /runes/v1.',
    ]);
  }
}
