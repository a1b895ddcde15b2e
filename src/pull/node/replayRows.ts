/** Reads the folder `pulled` into the ledger: its runes, and what the blocks that are not settled did, from their rows. */
import { join } from 'node:path';
import { type FolderIndex, type Kind, type RowFile, rowsName } from '../../contract/rowsSchemas.ts';
import { readFiles } from '../../duckdb/readFilesSql.ts';
import type { Store } from '../../duckdb/store.ts';
import { BuildError, messageOf } from '../../errors.ts';
import { checkFile, lost } from '../../rows/rowsFolder.ts';
import { scriptOfAddress } from '../../runes/address.ts';
import { outpointBytes } from '../../runes/bytes.ts';
import { nameNumber } from '../../runes/name.ts';
import type { Network } from '../../runes/networks.ts';
import { type RuneId, runeId } from '../../runes/runeId.ts';
import type { Changes, RuneOutput } from '../../runes/unspentLedger.ts';
import type { DiskLedger, KnownRune } from '../../unspent/diskLedger.ts';
import { hash256 } from './hash256.ts';

export const idOf = (text: string): RuneId => {
  const [block = 0, tx = 0] = text.split(':').map(Number);
  return runeId(block, tx);
};

/** Returns an output by its rows. Throws an InputError for an address of another network. */
export function outputOf(address: string, units: ReadonlyMap<RuneId, bigint>, network: Network, folder: string): RuneOutput {
  const script = address === '' ? new Uint8Array() : scriptOfAddress(address, network, hash256);
  if (script === undefined) throw lost(`${folder} has rows of the address ${address.slice(0, 100)}, which is not of this network`, folder);
  return { script, balances: Array.from(units, ([rune, amount]) => ({ rune, amount })).sort((a, b) => a.rune - b.rune) };
}

/** Effect of a block on the ledger, from its rows. */
export class BlockRows {
  hash: string | undefined;
  readonly #outputs = new Map<string, { readonly address: string; readonly units: Map<RuneId, bigint> }>();
  readonly #spent: string[] = [];
  readonly #mints = new Map<RuneId, number>();

  /** Adds a row: operation, output, address, rune id, amount, and the outputs that the row's transaction spends. */
  add([operation, name = '', address = '', rune = '', amount = '', spent = '']: readonly (string | undefined)[]): void {
    const id = idOf(rune);
    if (operation === 'mint') this.#mints.set(id, (this.#mints.get(id) ?? 0) + 1);
    if (operation === 'receive') {
      const output = this.#outputs.get(name) ?? { address, units: new Map<RuneId, bigint>() };
      this.#outputs.set(name, output);
      output.units.set(id, (output.units.get(id) ?? 0n) + BigInt(amount));
    }
    for (const [one] of spent.matchAll(/[0-9a-f]{64}:[0-9]+/g)) this.#spent.push(one);
  }

  changes(network: Network, folder: string): Changes {
    // The ledger never has outputs that their own block spends.
    const spent = this.#spent.filter((name) => !this.#outputs.delete(name)).map(outpointBytes);
    const created = Array.from(this.#outputs, ([name, { address, units }]) => ({
      ...outputOf(address, units, network, folder),
      outpoint: outpointBytes(name),
    }));
    return { spent, created, runes: [], mints: this.#mints };
  }
}

const TERMS = ['amount', 'cap', 'height_start', 'height_end', 'offset_start', 'offset_end'].map((term) => `terms_${term}::VARCHAR`);

/** Yields the runes of an index, ascending by number. Throws an InputError for a damaged file. */
export async function* knownRunes(folder: string, { runes }: Pick<FolderIndex, 'runes'>, store: Store): AsyncGenerator<KnownRune> {
  if (runes.length === 0) return;
  const rows = await rowsIn(folder, 'runes', runes);
  try {
    for await (const chunk of store.stream(`SELECT id, name, block_height, ${TERMS.join(', ')} FROM ${rows} ORDER BY number`))
      for (const [id, name, height, ...cells] of chunk.getRows()) {
        const terms = cells.map((cell) => (cell === null ? undefined : BigInt(String(cell))));
        const [amount, cap, heightStart, heightEnd, offsetStart, offsetEnd] = terms;
        // A rune whose terms are all empty cannot be minted, so it equals a rune without terms.
        const hasTerms = terms.some((term) => term !== undefined);
        yield {
          ...{ id: idOf(String(id)), name: nameNumber(String(name)), height: Number(height) },
          terms: hasTerms ? { amount, cap, heightStart, heightEnd, offsetStart, offsetEnd } : undefined,
        };
      }
  } catch (error) {
    // A BuildError means that memory or open files are used up, not that a file is damaged.
    if (error instanceof BuildError) throw error;
    throw lost(`the runes in ${folder} cannot be read: ${messageOf(error)}`, folder);
  }
}

/** Adds the runes of an index and the later blocks to the ledger. Throws an InputError for a damaged file. */
export async function replayRows(folder: string, index: FolderIndex, ledger: DiskLedger, network: Network, store: Store): Promise<void> {
  for await (const rune of knownRunes(folder, index, store)) ledger.addRune(rune);
  const { tip, ends = [] } = index;
  const hashes = new Map([...ends, ...(tip ? [tip] : [])].map(({ height, hash }) => [height, hash]));
  let block = new BlockRows();
  const applyUpTo = (last: number) => {
    for (; ledger.height < last; block = new BlockRows()) {
      const height = ledger.height + 1;
      ledger.apply({ height, hash: block.hash ?? hashes.get(height) }, block.changes(network, folder));
    }
  };
  const files = index.files.filter(({ last }) => last > ledger.height);
  const rows = async () =>
    store.stream(`SELECT block_height, block_hash, operation, tx_id || ':' || "output", address, rune_id, amount, spent
      FROM ${await rowsIn(folder, 'files', files)} WHERE operation IN ('receive', 'mint') OR event_index = 0 ORDER BY block_height`);
  for await (const chunk of files.length === 0 ? [] : await rows())
    for (const [height, hash, ...cells] of chunk.getRows()) {
      applyUpTo(Number(height) - 1);
      block.hash = String(hash);
      block.add(cells.map((cell) => (cell === null ? undefined : String(cell))));
    }
  applyUpTo(tip?.height ?? ledger.height);
}

/** Returns SQL of the rows of files. Throws an InputError for a damaged one. */
export async function rowsIn(folder: string, kind: Kind, files: readonly RowFile[]): Promise<string> {
  for (const file of files) await checkFile(folder, kind, file);
  const paths = files.map((file) => join(folder, rowsName(kind, file)));
  return readFiles('parquet', paths);
}
