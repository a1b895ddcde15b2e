/**
 * Computes the holders of a rune as of a block. The balance of an address is the sum of its records: receive minus send
 * minus burn. DuckDB computes the sums, because it can move them to disk if memory is short.
 */
import { join } from 'node:path';
import { writeLines } from '../disk/lineFile.ts';
import { readCsv } from '../duckdb/readFilesSql.ts';
import type { Store } from '../duckdb/store.ts';
import { InputError } from '../errors.ts';
import { digitsOf, joinedParts, sumsOf } from '../lists/balanceChanges.sql.ts';
import { csvLine } from '../lists/csv.ts';
import { shiftDecimals } from '../pages/decimalAmounts.ts';
import type { Activity, Holder, HolderPage } from '../serve/client/client.d.ts';
import type { OpenedMirror } from './pinnedMirror.ts';

export interface Moment {
  /** Path of the rune below `/runes/v1/`. */
  readonly path: string;
  readonly height: number;
  /** Height of the mirror's highest block. */
  readonly tip: number;
  /** True if the mirror lacks the oldest activity, because its pull began with the ledger of another mirror. */
  readonly isStarted: boolean;
}

/**
 * Yields the holders of a rune as of block `height`, in the order of the API. Adds up the activity up to this block. If
 * the mirror lacks older activity (`isStarted`), begins with the mirror's list of holders instead. If this list is as
 * of another block, adds the activity between the two blocks, or subtracts it if block `height` is the lower one.
 * Throws the errors of the client and of the store.
 */
export async function* holdersAt(
  mirror: OpenedMirror,
  { path, height, tip, isStarted }: Moment,
  { store, scratch }: { readonly store: Store; readonly scratch: string },
): AsyncGenerator<Holder, void, undefined> {
  let decimals = 0;
  const { file, count } = await writeLines(join(scratch, 'changes.csv'), async (lines) => {
    const add = (address: string, sign: number, amount: string) => {
      if (!/^[0-9]+(?:\.[0-9]+)?$/.test(amount))
        throw new InputError(`the mirror has the amount ${JSON.stringify(amount)}, which is not a number`);
      decimals = amount.includes('.') ? amount.length - amount.indexOf('.') - 1 : 0;
      lines.add(csvLine([address, sign, amount.replace('.', '')]).trimEnd());
    };
    let known = -1;
    if (isStarted) {
      // If the rune has many holders, the list of holders may be as of an older block. The list then has the height of
      // this block.
      known = (await mirror.window<HolderPage>(`${path}/holders`, {})).block_height ?? tip;
      for await (const { address, balance } of mirror.all<Holder>(`${path}/holders`)) add(address, 1, balance);
    }
    const [low, high] = known < height ? [known, height] : [height, known];
    const direction = known < height ? 1 : -1;
    for await (const { address, amount, operation, location } of mirror.all<Omit<Activity, 'rune'>>(`${path}/activity`)) {
      if (location.block_height <= low) break;
      const isMoved = operation === 'receive' || operation === 'send' || operation === 'burn';
      if (location.block_height > high || !isMoved || address === undefined || amount === undefined) continue;
      add(address, operation === 'receive' ? direction : -direction, amount);
    }
  });
  // DuckDB cannot read an empty file.
  if (count === 0) return;
  const changes = readCsv([file], ['address', 'sign', 'units'], '\\n', ['header = false']);
  const sums = `SELECT address, ${joinedParts('upper', 'lower')} FROM (SELECT address, ${sumsOf('units', 'sign::INTEGER')} FROM ${changes} GROUP BY address)`;
  const held = `SELECT address, ${digitsOf('upper', 'lower')} FROM (${sums}) WHERE upper > 0 OR lower > 0 ORDER BY upper DESC, lower DESC, address`;
  for await (const chunk of store.stream(held)) {
    for (const [address, units] of chunk.getRows())
      yield { address: String(address), balance: shiftDecimals(BigInt(String(units)), decimals) };
  }
}
