/**
 * Computes the holders of a rune as of a block. The balance of an address is the sum of its records: receive minus send minus burn. DuckDB
 * computes the sums, because it can move them to disk if memory is short.
 */
import { join } from 'node:path';
import { writeLines } from '../disk/lineFile.ts';
import { readCsv } from '../duckdb/readFilesSql.ts';
import type { Store } from '../duckdb/store.ts';
import { InputError } from '../errors.ts';
import { digitsOf, joinedParts, sumsOf } from '../lists/balanceChanges.sql.ts';
import { csvLine } from '../lists/csv.ts';
import { shiftDecimals } from '../pages/decimalAmounts.ts';
import type { Holder } from '../serve/client/client.d.ts';
import type { Mirror } from '../serve/client/mirrorClient.ts';

/**
 * Yields the holders of `rune` as of block `height`, in the order of the API. Adds up the activity up to this block, so the mirror must
 * have all of it. Throws the errors of the client and of the store.
 */
export async function* holdersAt(
  mirror: Mirror,
  rune: string,
  height: number,
  { store, scratch }: { readonly store: Store; readonly scratch: string },
): AsyncGenerator<Holder, void, undefined> {
  let decimals = 0;
  const { file, count } = await writeLines(join(scratch, 'changes.csv'), async (lines) => {
    for await (const { address, amount, operation, location } of mirror.all((window) => mirror.runeActivity(rune, window))) {
      const isMoved = operation === 'receive' || operation === 'send' || operation === 'burn';
      if (location.block_height > height || !isMoved || address === undefined || amount === undefined) continue;
      if (!/^[0-9]+(?:\.[0-9]+)?$/.test(amount))
        throw new InputError(`the mirror has the amount ${JSON.stringify(amount)}, which is not a number`);
      decimals = amount.includes('.') ? amount.length - amount.indexOf('.') - 1 : 0;
      lines.add(csvLine([address, operation === 'receive' ? 1 : -1, amount.replace('.', '')]).trimEnd());
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
