/**
 * Reads unconfirmed transactions from a server with the API of Esplora. Limits the number of its answers, their total
 * size, and the time for all of them. The server cannot forge a transaction, because an id is the hash of the
 * transaction's bytes. But the client must trust the server about the heights of outputs, and about whether the list of
 * an address's transactions is complete.
 */
import { exceeds, type PendingLimits } from '../../limits.ts';
import { textOf } from '../archiveParts.ts';
import type { PendingQuery } from './client.d.ts';

/** Thrown if the server fails, or if its answers are too large or malformed. */
export class EsploraError extends Error {}

/** Maximum number of transactions that the server lists for an address. The API has no page with further ones. */
const LISTED = 50;

const HASH = /^[0-9a-f]{64}$/;

export class Esplora {
  readonly #base: string;
  readonly #fetch: typeof globalThis.fetch;
  readonly #signal: AbortSignal;
  #requests = 0;
  #bytes = 0;

  /** Throws a TypeError if the URL is not valid. */
  constructor(
    { url, fetch = globalThis.fetch }: NonNullable<PendingQuery['esplora']>,
    signal: AbortSignal | undefined,
    readonly limits: PendingLimits,
  ) {
    if (!/^https?:\/\//.test(String(url)))
      throw new TypeError(`${url} is not the URL of an Esplora server, such as https://mempool.space/api`);
    this.#base = String(url).replace(/\/+$/, '');
    this.#fetch = fetch;
    const timeout = AbortSignal.timeout(limits.esploraMs);
    this.#signal = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
  }

  /** Returns the ids of an address's unconfirmed transactions. `more` is true if there may be further ones. */
  async mempool(address: string): Promise<{ txids: string[]; more: boolean }> {
    const path = `/address/${encodeURIComponent(address)}/txs/mempool`;
    const listed = this.#parse(path, await this.#get(path));
    if (!Array.isArray(listed)) throw this.#error(path, 'is not a list');
    const txids = listed.map((one: unknown) => (Object(one) as { txid?: unknown }).txid);
    const valid = txids.filter((txid): txid is string => typeof txid === 'string' && HASH.test(txid));
    if (valid.length < txids.length) throw this.#error(path, 'has an entry without a transaction id');
    const most = this.limits.transactions;
    return { txids: valid.slice(0, most), more: valid.length >= LISTED || exceeds(this.limits, 'transactions', valid.length) };
  }

  /** Returns the bytes of a transaction as hex. The caller must check them. */
  async hex(txid: string): Promise<string> {
    return (await this.#get(`/tx/${txid}/hex`)).trim();
  }

  /** Returns the height of a transaction's block. Undefined if the transaction is unconfirmed. */
  async height(txid: string): Promise<number | undefined> {
    const path = `/tx/${txid}/status`;
    const { confirmed, block_height } = Object(this.#parse(path, await this.#get(path))) as Record<string, unknown>;
    if (confirmed === false) return undefined;
    if (confirmed !== true || !Number.isSafeInteger(block_height) || Number(block_height) < 0) throw this.#error(path, 'is malformed');
    return Number(block_height);
  }

  async hashAt(height: number): Promise<string> {
    return (await this.#get(`/block-height/${height}`)).trim();
  }

  #parse(path: string, text: string): unknown {
    try {
      return JSON.parse(text);
    } catch {
      throw this.#error(path, 'is not JSON');
    }
  }

  async #get(path: string): Promise<string> {
    if (exceeds(this.limits, 'esploraRequests', ++this.#requests))
      throw this.#error(path, `is not read, because at most ${this.limits.esploraRequests} requests are sent`);
    try {
      const response = await this.#fetch(`${this.#base}${path}`, { signal: this.#signal, credentials: 'omit', redirect: 'error' });
      if (!response.ok) {
        await response.body?.cancel();
        throw this.#error(path, `has status ${response.status}`);
      }
      return await textOf(response, (bytes) => {
        this.#bytes += bytes;
        if (exceeds(this.limits, 'esploraBytes', this.#bytes))
          throw this.#error(path, `is too large: all answers together may have ${this.limits.esploraBytes} bytes`);
      });
    } catch (error) {
      if (error instanceof EsploraError) throw error;
      throw this.#error(path, `cannot be read (${error instanceof Error ? error.message : error})`, error);
    }
  }

  #error(path: string, what: string, cause?: unknown): EsploraError {
    return new EsploraError(`the answer of the Esplora server to ${this.#base}${path} ${what}`, { cause });
  }
}
