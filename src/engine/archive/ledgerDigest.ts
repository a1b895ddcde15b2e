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
import { parseOutput } from '../../lists/unspentOutputs.ts';
import type { Dialect } from '../../pages/mirrorOptions.ts';
import { NETWORKS } from '../../runes/networks.ts';
import { documentsOf, mergeDocuments, type StoredDocument } from './documentWriter.ts';
import type { ArchiveSources } from './listedRecords.ts';
import { readStored, type StoredArchive } from './storedArchive.ts';

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
  const hashAndDigest = (block: Omit<LedgerPoint, 'digest'>) =>
    digestOf(network, block, lists, dialect, { read: (file) => readStored(out, file) });
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
  const hash = createHash('sha256');
  let pending = ledgerHead(network, block);
  for await (const line of ledgerLines(block.height, lists, dialect, files)) {
    pending += line;
    if (pending.length < CHUNK) continue;
    hash.update(pending);
    pending = '';
  }
  return hash.update(pending).digest('hex');
}

async function* ledgerLines(height: number, lists: ListTables, dialect: Dialect, files: Files): AsyncGenerator<string> {
  const { etchings, outputs } = levelsUpTo(height, lists);
  for await (const { values } of newestOf(etchings, files)) {
    const [json = ''] = values;
    yield runeLine(parseEtching(json, dialect), parseCounts(json));
  }
  // Keys are sorted as text: the outputs of a transaction are adjacent, but output 10 precedes output 2. The ledger
  // needs them in the order of their numbers, so each group is sorted again.
  let [txId, group]: [string, { readonly vout: number; readonly line: string }[]] = ['', []];
  const endGroup = () =>
    group
      .sort((a, b) => a.vout - b.vout)
      .map(({ line }) => line)
      .join('');
  for await (const { key, values } of newestOf(outputs, files)) {
    const output = parseOutput(key, values);
    if (output === undefined) continue;
    const [id = '', vout] = key.split(':');
    if (id !== txId) {
      yield endGroup();
      [txId, group] = [id, []];
    }
    group.push({ vout: Number(vout), line: outputLine(output) });
  }
  yield endGroup();
}

/** Yields the newest document of each key in `levels`, which ascend by height. */
export const newestOf = (levels: readonly DocumentLevel[], files: Files): AsyncGenerator<StoredDocument> =>
  mergeDocuments(
    levels.map((level) => documentsOf(files, level)),
    (same) => same.at(-1) ?? [],
  );
