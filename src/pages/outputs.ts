/**
 * Answers requests for unspent outputs with runes from an archive (archive/outputTables.ts). Every answer tells the
 * block for which it is true, because a wallet may ask for an output that is newer.
 */
import { findDocuments, keyOfAddress } from '../archive/documents.ts';
import { ArchiveError } from '../archive/error.ts';
import { type OutputTables, parseAddressOutput, parseOutput, type UnspentOutput } from '../archive/outputTables.ts';
import type { Archive } from '../archive/reader.ts';
import { shiftDecimals } from './amounts.ts';
import type { FurtherRequest } from './further.ts';
import { spellHex } from './ids.ts';
import type { Dialect } from './site.ts';

/** Returns the body of an answer. Rejects with an ArchiveError for damaged files. */
export async function answerOutputs({ output, address, window }: FurtherRequest, dialect: Dialect, archive: Archive): Promise<string> {
  const { outputs: tables, tip = 0 } = archive.root.lists ?? {};
  if (tables === undefined) throw new ArchiveError('the root of the archive has no outputs');
  const asOf = `"block_height":${tip},"block_hash":"${spellHex(tables.tipHash, dialect)}"`;
  if (output !== undefined) {
    const found = await findOutput(output, tables, archive);
    return `{${asOf},${found === undefined ? `"output":"${spellOutput(output, dialect)}","runes":[]` : render(found, dialect)}}`;
  }
  const all = await outputsOf(address ?? '', tables, archive);
  const { limit = 0, offset = 0 } = window ?? {};
  const results = all.slice(offset, offset + limit).map((one) => `{${render(one, dialect)}}`);
  return `{${asOf},"limit":${limit},"offset":${offset},"total":${all.length},"results":[${results.join(',')}]}`;
}

async function findOutput(output: string, { outputs }: OutputTables, archive: Archive): Promise<UnspentOutput | undefined> {
  const found = await Promise.all(outputs.map((level) => findDocuments(archive, level, [output])));
  const newest = found
    .flat()
    .reverse()
    .find((values) => values !== undefined);
  return newest && orDamaged(() => parseOutput(output, newest));
}

/** Reads the unspent outputs of an address in the order of the API. */
async function outputsOf(address: string, { addresses }: OutputTables, archive: Archive): Promise<UnspentOutput[]> {
  const key = keyOfAddress(address);
  if (key === undefined) return [];
  const levels = await Promise.all(addresses.map((level) => findDocuments(archive, level, [key])));
  const unspent = new Map<string, UnspentOutput>();
  for (const values of levels.flat()) {
    for (const value of values ?? []) {
      const one = orDamaged(() => parseAddressOutput(value, address));
      if (typeof one === 'string') unspent.delete(one);
      else unspent.set(one.output, one);
    }
  }
  return [...unspent.values()].sort(compare);
}

function compare(a: UnspentOutput, b: UnspentOutput): number {
  if (a.place[0] !== b.place[0]) return b.place[0] - a.place[0];
  const [[idA, voutA], [idB, voutB]] = [partsOf(a.output), partsOf(b.output)];
  return idA === idB ? voutA - voutB : idA < idB ? -1 : 1;
}

function partsOf(output: string): [txId: string, vout: number] {
  const at = output.indexOf(':');
  return [output.slice(0, at), Number(output.slice(at + 1))];
}

/** Makes the JSON of an output without its braces. */
function render({ output, place, address, runes }: UnspentOutput, dialect: Dialect): string {
  const [height, hash, txIndex, timestamp] = place;
  const hex = (text: string) => `"${spellHex(text, dialect)}"`;
  const held = runes.map(
    ([id, number, name, spacedName, divisibility, units]) =>
      `{"rune":${JSON.stringify({ id, number, name, spaced_name: spacedName })},"balance":"${shiftDecimals(BigInt(units), divisibility)}"}`,
  );
  return (
    `"output":"${spellOutput(output, dialect)}",${address === undefined ? '' : `"address":${JSON.stringify(address)},`}` +
    `"location":{"block_hash":${hex(hash)},"block_height":${height},"tx_id":${hex(partsOf(output)[0])},"tx_index":${txIndex},"timestamp":${timestamp}},` +
    `"runes":[${held.join(',')}]`
  );
}

const spellOutput = (output: string, dialect: Dialect): string => spellHex(output, dialect);

function orDamaged<Value>(parse: () => Value): Value {
  try {
    return parse();
  } catch {
    throw new ArchiveError('a document of the archive is damaged');
  }
}
