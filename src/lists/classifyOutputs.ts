/**
 * Tells for many outputs whether they hold runes, so that a wallet does not spend runes by mistake. Answers `none` only if the mirror knows
 * that an output holds none, and otherwise `unknown`.
 */
import type { Archive } from '../format/archiveReader.ts';
import { parseOutput, type ReadTransaction } from '../pages/optionalEndpoints.ts';
import { parseHexId } from '../pages/parseIds.ts';
import { findOutputs, type HeldRune, heldRunes, type OutputState } from './unspentOutputs.ts';

/** An output as a caller gives it: outpoint, and height and hash of its block. The values are not checked yet. */
export interface AskedOutput {
  readonly outpoint: string;
  readonly height?: number | undefined;
  readonly blockHash?: string | undefined;
}

/** State of an output after the highest block of the mirror. */
export type OutputClass =
  | { readonly kind: 'runes'; readonly runes: readonly HeldRune[]; readonly address?: string }
  | { readonly kind: 'none' | 'spent' }
  | { readonly kind: 'unknown'; readonly reason: string };

const unknown = (reason: string): OutputClass => ({ kind: 'unknown', reason });

/**
 * Classifies outputs, in the order of `asked`. Runs reads concurrently if they do not depend on each other. Rejects with an ArchiveError
 * for damaged files, and with the errors of `readTransaction`.
 */
export async function classifyOutputs(
  asked: readonly AskedOutput[],
  archive: Archive,
  readTransaction: ReadTransaction,
): Promise<OutputClass[]> {
  const { outputs: tables, tip = -1 } = archive.root.lists ?? {};
  if (tables === undefined) return asked.map(() => unknown('the mirror does not have unspent outputs'));
  const refused = asked.map((one) => refusalOf(one, tip));
  const outputs = asked.map(({ outpoint }, i) => (refused[i] === undefined ? parseOutput(outpoint) : undefined));
  const wanted = [...new Set(outputs)].filter((output) => output !== undefined);
  const hashes = new Map<number, string | undefined>([[tip, tables.tipHash]]);
  const checked = asked.filter(({ blockHash }, i) => outputs[i] !== undefined && blockHash !== undefined);
  const heights = new Set(checked.map(({ height = tip }) => height).filter((height) => height !== tip));
  const readHash = async (height: number) => hashes.set(height, (await archive.block(height))?.hash);
  const [states] = await Promise.all([findOutputs(wanted, tables, archive, readTransaction), ...[...heights].map(readHash)]);
  const found = new Map(wanted.map((output, i) => [output, states[i]]));
  return asked.map((one, i) => refused[i] ?? classOf(one, found.get(outputs[i] ?? ''), hashes));
}

/** Returns the reason if the mirror cannot look up an output. */
function refusalOf({ outpoint, height, blockHash }: AskedOutput, tip: number): OutputClass | undefined {
  if (typeof outpoint !== 'string' || parseOutput(outpoint) === undefined) return unknown(`${outpoint} is not an outpoint, txid:vout`);
  if (height === undefined) return unknown('the height of its block is not given, and a mirror has no unconfirmed transactions');
  // Electrum servers give unconfirmed outputs the height 0 or -1. No output of block 0 can be spent.
  if (!Number.isSafeInteger(height) || height <= 0)
    return unknown(`${height} is not the height of an output's block, and a mirror has no unconfirmed transactions`);
  if (height > tip) return unknown(`the mirror has blocks up to ${tip}, so it does not know an output of block ${height}`);
  if (blockHash !== undefined && parseHexId(String(blockHash)) === undefined) return unknown(`${blockHash} is not the hash of a block`);
  return undefined;
}

function classOf(
  { height = -1, blockHash }: AskedOutput,
  state: OutputState | undefined,
  hashes: ReadonlyMap<number, string | undefined>,
): OutputClass {
  if (state === undefined) return unknown('the mirror did not answer');
  const place = state.kind === 'none' ? undefined : state.found.place;
  if (place !== undefined && place[0] !== height) return unknown(`the mirror has the output in block ${place[0]}, not in block ${height}`);
  const hash = place?.[1] ?? hashes.get(height);
  if (blockHash !== undefined && hash === undefined)
    return unknown(`the mirror does not know the hash of block ${height}, because no rune moved in it`);
  if (blockHash !== undefined && hash !== parseHexId(blockHash)) return unknown(`block ${height} of the mirror has the hash ${hash}`);
  if (state.kind !== 'runes') return { kind: state.kind };
  const { address, runes } = state.found;
  return { kind: 'runes', runes: heldRunes(runes), ...(address === undefined ? {} : { address }) };
}
