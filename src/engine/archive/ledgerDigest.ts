/**
 * Computes digests of the ledger after a block (lists/ledgerText.ts) from the documents of etchings and outputs. This
 * is possible only if a level (format/levels.ts) of these lists ends at the block. So a build makes digests only for
 * the blocks of `lowerEnds`, at which long levels end. The highest of them changes about once in 144 blocks.
 */
import type { Sources } from '../../contract/sources.ts';
import { int, type Store, text } from '../../duckdb/store.ts';
import { InputError } from '../../errors.ts';
import { lowerEnds } from '../../format/levels.ts';
import type { LedgerDigest, LedgerPoint, ListTables } from '../../format/listTables.ts';
import { exceeds, type WorkLimits } from '../../limits.ts';
import type { Dialect } from '../../pages/mirrorOptions.ts';
import { program } from '../../program.ts';
import { isNetwork, NETWORKS } from '../../runes/networks.ts';
import { itemsOfThread } from '../../threads.ts';
import type { ArchiveSources } from './listedRecords.ts';
import { bytesUpTo, type DigestTask, digestIn, levelsUpTo } from './readLedger.ts';
import { ChangedArchiveError } from './storedArchive.ts';

interface WantedDigests {
  readonly network: string;
  /**
   * The start of the input (`start` of ListTables). Undefined unless the digest of the ledger at the start must be
   * computed to check the input.
   */
  readonly start: LedgerPoint | undefined;
  /** Blocks after which the ledger gets a digest, the highest first. `digest` is undefined if it must be computed. */
  readonly points: readonly (Omit<LedgerPoint, 'digest'> & { readonly digest: string | undefined })[];
}

/**
 * Returns the blocks after which the ledger of a build gets a digest. `old` has the lists of the last build, whose
 * digests are reused if possible. Returns undefined if some rows are not from a node, or if the hash of a returned
 * block is unknown. Also returns undefined unless all blocks since the first block with runes, or since the start, were
 * read.
 */
export async function wantedDigests(
  lists: ListTables,
  old: ListTables | undefined,
  { state, input }: Pick<ArchiveSources, 'state' | 'input'>,
  store: Store,
): Promise<WantedDigests | undefined> {
  const { network = '', ends = [], sources } = input;
  if (lists.outputs === undefined || !isNetwork(network)) return undefined;
  const { firstHeight } = NETWORKS[network];
  const { start } = lists;
  if (!areFromNode(sources, start === undefined ? firstHeight : start.height + 1)) return undefined;
  const isReused = (height: number) => JSON.stringify(filesUpTo(height, old)) === JSON.stringify(filesUpTo(height, lists));
  const points: WantedDigests['points'][number][] = [];
  for (const height of lowerEnds(lists.tip, lists).filter((end) => end >= (start?.height ?? firstHeight))) {
    const [block] = await store.rows(
      `SELECT block_height AS height, block_hash AS hash FROM ${state.blocks} WHERE block_height = ${height}`,
      { height: int, hash: text },
    );
    const end = block ?? [...ends, ...(start === undefined ? [] : [start])].find((one) => one.height === height);
    if (end === undefined) return undefined;
    const known = [old?.ledger, old?.ledger?.lower].find((one) => one?.height === height && one.hash === end.hash);
    points.push({ height, hash: end.hash, digest: isReused(height) ? known?.digest : undefined });
  }
  return { network, start: start === undefined || isReused(start.height) ? undefined : start, points };
}

/**
 * Computes the digests of the ledger, in a thread if the documents are large (`digestBeside`). If the input begins with
 * the ledger of another mirror, throws an InputError if the digest of this ledger differs from the digest in `start`.
 * Throws a ChangedArchiveError for a damaged file.
 */
export async function computeDigests(
  { network, start, points }: WantedDigests,
  lists: ListTables,
  options: DigestOptions,
): Promise<LedgerDigest | undefined> {
  // Computes the digest of a block only once, because this reads all outputs. Often, the start is in `points`, too.
  const made = new Map<string, string>();
  const digestAt = async ({ height, hash }: Omit<LedgerPoint, 'digest'>) => {
    const { etchings, outputs } = lists;
    const task = { network, block: { height, hash }, lists: { etchings, outputs } };
    const digest = made.get(hash) ?? (await digestBeside(task, options));
    made.set(hash, digest);
    return digest;
  };
  if (start !== undefined) {
    const digest = await digestAt(start);
    if (digest !== start.digest)
      throw new InputError(`the ledger in the start folder of the input has the digest ${digest} instead of ${start.digest}`, [
        'A file in this folder is wrong. Remove the pulled files and start again.',
      ]);
  }
  const digests: LedgerPoint[] = [];
  for (const { height, hash, digest } of points) digests.push({ height, hash, digest: digest ?? (await digestAt({ height, hash })) });
  const [newest, lower] = digests;
  return newest && { network, ...newest, ...(lower === undefined ? {} : { lower }) };
}

/** True if all rows are from a node, and its blocks begin at or below the block `first` and have no gap. */
export function areFromNode(sources: Sources, first: number): boolean {
  const [source, ...others] = sources;
  return source?.rules === 'ord' && others.length === 0 && source.blocks.length === 1 && (source.blocks[0]?.[0] ?? first + 1) <= first;
}

interface DigestOptions {
  readonly dialect: Dialect;
  readonly out: string;
  readonly limits: Pick<WorkLimits, 'threadBytes'>;
  readonly signal: AbortSignal;
}

/** Computes a digest, in a thread if its documents have more than `limits.threadBytes`. */
async function digestBeside(task: Omit<DigestTask, 'dialect' | 'out'>, { dialect, out, limits, signal }: DigestOptions): Promise<string> {
  const whole = { ...task, dialect, out };
  if (!exceeds(limits, 'threadBytes', bytesUpTo(task.block.height, task.lists))) return digestIn(whole);
  for await (const digest of itemsOfThread<string>(program.threads.digest, whole, [ChangedArchiveError], signal)) return digest;
  throw new Error('the digest thread ended without a digest');
}

/** Returns the names of the files that a digest depends on. */
const filesUpTo = (height: number, lists: ListTables | undefined): string[] =>
  Object.values(levelsUpTo(height, lists)).flatMap((levels) => levels.flatMap(({ files }) => files.map(({ file }) => file)));
