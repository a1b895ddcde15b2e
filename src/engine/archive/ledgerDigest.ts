/**
 * Digests of the ledger (lists/ledgerText.ts), made from the documents of etchings and outputs. A digest needs the
 * state of these lists after its block. Only the end of a level gives this state, so a build makes digests only for
 * blocks at which a level ends. A build makes a new digest only when it writes such a level, about once in 144 blocks.
 */
import { createHash } from 'node:crypto';
import type { Sources } from '../../contract/sources.ts';
import { int, type Store, text } from '../../duckdb/store.ts';
import { InputError } from '../../errors.ts';
import { type DocumentLevel, lowerEnds } from '../../format/levels.ts';
import type { LedgerDigest, LedgerPoint, ListTables } from '../../format/listTables.ts';
import { ledgerHead, outputLine, runeLine } from '../../lists/ledgerText.ts';
import { parseCounts, parseEtching } from '../../lists/parseEtching.ts';
import { parseOutput, type UnspentOutput } from '../../lists/unspentOutputs.ts';
import type { Dialect } from '../../pages/mirrorOptions.ts';
import { NETWORKS } from '../../runes/networks.ts';
import { documentsOf, mergeDocuments, type StoredDocument } from './documentWriter.ts';
import type { ArchiveSources } from './listedRecords.ts';
import { ChangedArchiveError, readStored, type StoredArchive } from './storedArchive.ts';

/** Minimum number of characters per update of the hash, because an update for each line would be slow. */
const CHUNK = 1 << 16;

type Files = Pick<StoredArchive, 'read'>;

/**
 * Returns the digests for the lists of a build. Reuses digests of the last build, whose lists are `old`. Returns
 * undefined if some rows are not from a node, if a block since the first block with runes or since the start was not
 * read, or if the hash of a block is unknown.
 */
export async function ledgerOf(
  lists: ListTables,
  old: ListTables | undefined,
  { state, input }: Pick<ArchiveSources, 'state' | 'input'>,
  dialect: Dialect,
  out: string,
  store: Store,
): Promise<LedgerDigest | undefined> {
  const { network = '', ends = [], sources } = input;
  if (lists.outputs === undefined || !(network in NETWORKS)) return undefined;
  const { firstHeight } = NETWORKS[network as keyof typeof NETWORKS];
  const { start } = lists;
  if (!areFromNode(sources, start === undefined ? firstHeight : start.height + 1)) return undefined;
  // A digest reads all outputs, and a level often ends at the block of the start.
  const made = new Map<string, string>();
  const hashAndDigest = async ({ height, hash }: Omit<LedgerPoint, 'digest'>) => {
    const digest = made.get(hash) ?? (await digestOf(network, { height, hash }, lists, dialect, { read: (file) => readStored(out, file) }));
    made.set(hash, digest);
    return digest;
  };
  const isReused = (height: number) => JSON.stringify(filesUpTo(height, old)) === JSON.stringify(filesUpTo(height, lists));
  if (start !== undefined && !isReused(start.height)) {
    const digest = await hashAndDigest(start);
    if (digest !== start.digest)
      throw new InputError(`the ledger with which the input begins has the digest ${digest} instead of ${start.digest}`, [
        'A file in its folder start is wrong. Remove the pulled files and start again.',
      ]);
  }
  const points: LedgerPoint[] = [];
  for (const height of lowerEnds(lists.tip, lists).filter((end) => end >= (start?.height ?? firstHeight))) {
    const [block] = await store.rows(
      `SELECT block_height AS height, block_hash AS hash FROM ${state.blocks} WHERE block_height = ${height}`,
      {
        height: int,
        hash: text,
      },
    );
    const end = block ?? [...ends, ...(start === undefined ? [] : [start])].find((one) => one.height === height);
    if (end === undefined) return undefined;
    const known = [old?.ledger, old?.ledger?.lower].find((one) => one?.height === height && one.hash === end.hash);
    const { hash } = end;
    const digest = known !== undefined && isReused(height) ? known.digest : await hashAndDigest({ height, hash });
    points.push({ height, hash, digest });
  }
  const [newest, lower] = points;
  return newest && { network, ...newest, ...(lower === undefined ? {} : { lower }) };
}

/** True if all rows are from a node, and the node's blocks begin at or below block `first` and have no gap. */
export function areFromNode(sources: Sources, first: number): boolean {
  const [source, ...others] = sources;
  return source?.rules === 'ord' && others.length === 0 && source.blocks.length === 1 && (source.blocks[0]?.[0] ?? first + 1) <= first;
}

/** Returns the levels of etchings and outputs up to a block, which must be the end of a level. */
export const levelsUpTo = (height: number, lists: ListTables | undefined) => {
  const upTo = (levels: readonly DocumentLevel[] = []) => levels.filter(({ last }) => last <= height);
  return { etchings: upTo(lists?.etchings?.levels), outputs: upTo(lists?.outputs?.outputs) };
};

/** Returns the names of the files that a digest depends on. */
const filesUpTo = (height: number, lists: ListTables | undefined): string[] =>
  Object.values(levelsUpTo(height, lists)).flatMap((levels) => levels.flatMap(({ files }) => files.map(({ file }) => file)));

/** Computes the digest of a ledger from its runes, sorted by number, and then its outputs, sorted by txid and vout. */
export class LedgerHash {
  readonly #hash = createHash('sha256');
  #pending: string;

  constructor(network: string, block: Omit<LedgerPoint, 'digest'>) {
    this.#pending = ledgerHead(network, block);
  }

  addRune(rune: Parameters<typeof runeLine>[0], counts: Parameters<typeof runeLine>[1]): void {
    this.#add(runeLine(rune, counts));
  }

  addOutput(output: Parameters<typeof outputLine>[0]): void {
    this.#add(outputLine(output));
  }

  #add(line: string): void {
    this.#pending += line;
    if (this.#pending.length < CHUNK) return;
    this.#hash.update(this.#pending);
    this.#pending = '';
  }

  digest(): string {
    return this.#hash.update(this.#pending).digest('hex');
  }
}

/**
 * Computes the digest of the ledger after a block. A level of `lists` must end at this block. Throws a
 * ChangedArchiveError for a damaged file.
 */
export async function digestOf(
  network: string,
  block: Omit<LedgerPoint, 'digest'>,
  lists: ListTables,
  dialect: Dialect,
  files: Files,
): Promise<string> {
  const hash = new LedgerHash(network, block);
  for await (const { values } of newestOf(levelsUpTo(block.height, lists).etchings, files)) {
    const [json = ''] = values;
    hash.addRune(parseEtching(json, dialect), parseCounts(json));
  }
  for await (const outputs of outputsUpTo(block.height, lists, files)) for (const output of outputs) hash.addOutput(output);
  return hash.digest();
}

/** Minimum number of outputs that `outputsUpTo` yields together, because each step of a generator takes time. */
const OUTPUTS_AT_ONCE = 256;

/**
 * Maximum number of outputs of a transaction: a block has at most 4 million weight units, and an output at least 36 (8
 * bytes for the amount and 1 for the length of an empty script, each 4 units).
 */
const MOST_OUTPUTS = Math.floor(4_000_000 / 36);

/** Returns the vout of an outpoint. Throws a ChangedArchiveError if no output of a block can have this outpoint. */
function voutOf(outpoint: string): number {
  const text = outpoint.slice(outpoint.indexOf(':') + 1);
  const vout = Number(text);
  if (String(vout) !== text || !(vout < MOST_OUTPUTS))
    throw new ChangedArchiveError(`the archive has the output ${outpoint.slice(0, 100)}, which no transaction can have`);
  return vout;
}

/**
 * Yields the unspent outputs after a block, at which a level must end, in the order of the ledger, in batches of whole
 * transactions. Throws a ChangedArchiveError, a SyntaxError or a TypeError for a document that no build writes.
 */
export async function* outputsUpTo(height: number, lists: ListTables, files: Files): AsyncGenerator<readonly UnspentOutput[]> {
  // Keys are sorted as text: the outputs of a transaction are adjacent, but output 10 precedes output 2. The ledger
  // needs them in the order of their numbers, so each group is sorted again.
  let [batch, txId, group]: [UnspentOutput[], string, { readonly vout: number; readonly output: UnspentOutput }[]] = [[], '', []];
  const endGroup = () => {
    if (group.length > 1) group.sort((a, b) => a.vout - b.vout);
    for (const { output } of group) batch.push(output);
    group = [];
  };
  for await (const { key, values } of newestOf(levelsUpTo(height, lists).outputs, files)) {
    const output = parseOutput(key, values);
    if (output === undefined) continue;
    if (!key.startsWith(txId) || txId === '') {
      endGroup();
      txId = key.slice(0, key.indexOf(':') + 1);
      if (batch.length >= OUTPUTS_AT_ONCE) {
        yield batch;
        batch = [];
      }
    }
    // The check of the vout also limits the size of the group, because no two documents have the same key.
    group.push({ vout: voutOf(key), output });
  }
  endGroup();
  yield batch;
}

/** Yields the newest document of each key in `levels`, which ascend by height. */
export const newestOf = (levels: readonly DocumentLevel[], files: Files): AsyncGenerator<StoredDocument> =>
  mergeDocuments(
    levels.map((level) => documentsOf(files, level)),
    (same) => same.at(-1) ?? [],
  );
