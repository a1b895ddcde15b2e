/**
 * Computes the API's expected answers about the unspent outputs of a chain, from a ledger by ord's rules. Reads no
 * archive.
 */
import { expect } from 'vitest';
import { documentsOf } from '../../src/engine/archive/documentWriter.ts';
import { StoredArchive } from '../../src/engine/archive/storedArchive.ts';
import { addressOf } from '../../src/runes/address.ts';
import { NETWORKS } from '../../src/runes/networks.ts';
import { runeIdText } from '../../src/runes/runeId.ts';
import { FetchMirror } from '../../src/serve/fetchHost.ts';
import { fileServer } from './archives.ts';
import { hash256, type MemoryChain, outpointOf } from './memoryLedger.ts';

interface Expected {
  readonly output: string;
  readonly address?: string;
  readonly location: { readonly block_height: number; readonly tx_id: string };
}

type Row = MemoryChain['rows'][number];

/** Returns a row of each output that received runes, by outpoint. */
const madeIn = ({ rows }: MemoryChain): Map<string, Row> =>
  new Map(rows.filter(({ operation }) => operation === 'receive').map((row) => [`${row.tx_id}:${row.output}`, row]));

const locationOf = ({ block_hash, block_height, tx_id, tx_index, timestamp }: Row) => ({
  block_hash,
  block_height,
  tx_id,
  tx_index,
  timestamp,
});

/** Returns the expected answers for all unspent outputs, by outpoint, in dialect `hiro`. */
function unspentOf(memory: MemoryChain): Map<string, Expected> {
  const { ledger } = memory;
  const made = madeIn(memory);
  return new Map(
    [...ledger.outputs].map(([output, { script, balances }]) => {
      const row = made.get(output);
      const address = addressOf(script, NETWORKS.regtest, hash256);
      const runes = balances.map(({ rune, amount }) => {
        const { id, number, name, spaced_name } = ledger.rune(rune)!.row;
        expect(id).toBe(runeIdText(rune));
        return { rune: { id, number, name, spaced_name }, balance: String(amount) };
      });
      return [output, { output, ...(address === null ? {} : { address }), location: locationOf(row!), runes }];
    }),
  );
}

/**
 * Requests the lists of some addresses: all windows of one random limit, some other windows, and windows past the end.
 */
async function checkLists(
  ask: (path: string) => Promise<unknown>,
  unspent: ReadonlyMap<string, Expected>,
  asOf: object,
  random: (below: number) => number,
) {
  const addresses = new Set([...unspent.values()].flatMap(({ address = [] }) => address));
  const place = ({ output }: Expected) =>
    Buffer.from(outpointOf(output.slice(0, 64), 0))
      .reverse()
      .toString('hex')
      .slice(8) + output.slice(65).padStart(10, '0');
  for (const address of [...addresses, 'bcrt1qnobody']) {
    const all = [...unspent.values()].filter((one) => one.address === address);
    all.sort((a, b) => b.location.block_height - a.location.block_height || (place(a) < place(b) ? -1 : 1));
    const limit = 1 + random(6);
    const windows = Array.from({ length: Math.ceil(all.length / limit) + 1 }, (_, i) => [i * limit, limit] as const);
    for (const [offset, most] of [...windows, [0, 6], [random(all.length + 2), 6]] as const) {
      expect(await ask(`addresses/${address}/outputs?offset=${offset}&limit=${most}`), `${address} ${offset} ${most}`).toEqual({
        ...asOf,
        limit: most,
        offset,
        total: all.length,
        results: all.slice(offset, offset + most),
      });
    }
  }
}

/** Requests some unspent and spent outputs, and the lists of all addresses, from a build in dialect hiro. */
export async function checkOutputs(out: string, memory: MemoryChain, random: (below: number) => number): Promise<void> {
  const tip = memory.rows.at(-1)!;
  const asOf = { block_height: tip.block_height, block_hash: tip.block_hash };
  const mirror = new FetchMirror(fileServer(out).fetchFile, 0);
  const ask = async (path: string): Promise<unknown> => (await mirror.answer(new Request(`http://host/runes/v1/${path}`)))?.json();
  const unspent = unspentOf(memory);
  const made = madeIn(memory);
  expect(made.size).toBeGreaterThan(unspent.size);
  for (const output of [...made.keys(), `${'ab'.repeat(32)}:0`]) {
    if (random(unspent.has(output) ? 2 : 8) > 0) continue;
    const expected = unspent.get(output);
    const row = made.get(output);
    // For a spent output, checks only that the answer has runes. exhaustive/outputStates.test.ts compares them with the
    // model.
    const before = row && { location: locationOf(row), held: expect.any(Array), ...(row.address === null ? {} : { address: row.address }) };
    const spent = { output, runes: [], spent: row === undefined ? null : true, ...before };
    expect(await ask(`outputs/${output}`)).toEqual({ ...asOf, ...(expected === undefined ? spent : { ...expected, spent: false }) });
  }
  await checkLists(ask, unspent, asOf, random);
}

/** Returns the kinds of documents about addresses in an archive. */
export function kindsIn(out: string): string[] {
  const archive = StoredArchive.in(out);
  const keys = archive.root.lists?.outputs?.addresses.flatMap((level) => [...documentsOf(archive, level)].map(({ key }) => key)) ?? [];
  return keys.map((key) => (key.includes(' ~') ? 'removal' : key.includes(' ') ? 'page' : 'list'));
}
