/** Schemas of Bitcoin Core's answers, and the largest sizes. */
import { z } from 'zod';
import { hex64 } from '../../contract/schemas.ts';
import type { PreviousOutput } from '../../runes/indexBlock.ts';
import { HIGHEST } from '../blockSource.ts';
import { PassingError } from '../httpConnections.ts';
import { JsonPicker } from './jsonPicker.ts';
import { parsed, RpcError } from './nodeCalls.ts';

/** Largest block that Bitcoin's rules allow, in bytes. */
export const LARGEST_BLOCK = 4_000_000;

/** Bytes around the result in an answer of the RPC interface. */
export const ENVELOPE_BYTES = 1000;

const height = z.int().min(0).max(HIGHEST);

export const chainInfo = z.object({
  chain: z.string(),
  blocks: height,
  headers: z.int().max(HIGHEST),
  bestblockhash: hex64,
  initialblockdownload: z.boolean(),
  pruned: z.boolean(),
  pruneheight: height.optional(),
});
export const hashAnswer = z.object({ blockhash: hex64 });
export const networkInfo = z.object({ version: z.int() });
/** Output script in hex. A script of more than 10,000 bytes cannot be spent. */
const script = z.string().regex(/^(?:[0-9a-f]{2}){0,10000}$/);
const previousOutput = z.object({ prevout: z.object({ height, scriptPubKey: z.object({ hex: script }) }) });

export function bytesOf(hex: string): Uint8Array {
  const bytes = Buffer.from(hex, 'hex');
  // Buffer.from() stops at the first character that is not hex.
  if (2 * bytes.length !== hex.length) throw new PassingError('is damaged: it is not hex');
  return bytes;
}

/** Output to look up: id of the transaction that spends it, index of the input, and path of the transaction in JSON. */
export interface WantedInput {
  readonly txid: string;
  readonly input: number;
  readonly path: readonly (string | number)[];
}

/** Picks the outputs that inputs spend from JSON with the spending transactions. Reads the JSON in parts. */
export class PreviousOutputs extends JsonPicker {
  readonly #wanted: readonly WantedInput[];

  /** `envelope` is the path of the result in the JSON. */
  constructor(wanted: readonly WantedInput[], envelope: readonly string[]) {
    const paths = wanted.flatMap(({ path, input }) => {
      const at = [...envelope, ...path];
      const previous = [...at, 'vin', input, 'prevout'];
      return [
        [...at, 'txid'],
        [...at, 'vin', input],
        [...previous, 'height'],
        [...previous, 'scriptPubKey', 'hex'],
      ];
    });
    super([['error', 'code'], ['error', 'message'], ...paths]);
    this.#wanted = wanted;
  }

  /**
   * Returns the outputs in the order of the wanted inputs. Returns undefined if the JSON of the node's version lacks
   * them. Throws an RpcError if the JSON is an error, and a PassingError if the JSON is damaged.
   */
  outputs(): PreviousOutput[] | undefined {
    this.end();
    const [code, message = '', ...values] = this.values;
    if (code !== undefined) throw new RpcError(Number(code), message);
    const found: PreviousOutput[] = [];
    for (const [i, { txid, input }] of this.#wanted.entries()) {
      const [id, place, height, hex] = values.slice(4 * i);
      if (id !== txid || place === undefined) throw new PassingError(`lack input ${input} of transaction ${txid}`);
      if (height === undefined && hex === undefined) return undefined;
      const { prevout } = parsed({ prevout: { height: Number(height), scriptPubKey: { hex } } }, previousOutput);
      found.push({ script: bytesOf(prevout.scriptPubKey.hex), height: prevout.height });
    }
    return found;
  }
}
