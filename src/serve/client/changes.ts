/** Finds the newest block of a mirror that a client knows, and reads the files of higher blocks (lists/changes.ts). */
import type { ListedChanges, Point } from '../../lists/changes.ts';
import { MissingFileError } from '../../pages/fileAccess.ts';
import { CHANGES_INDEX_PATH, changesPath } from '../../pages/filePaths.ts';
import { parseAddress } from '../../pages/optionalEndpoints.ts';
import type { ErrorStatus } from '../http/errorBodies.ts';
import type { BlockChange, Change, ChangesQuery, MirrorManifest } from './client.d.ts';

/** The mirror. Its functions may reject with a MissingFileError while the host replaces files. */
interface FollowedMirror {
  manifest(): Promise<MirrorManifest>;
  /** Reads a file. A client with keys rejects a file whose SHA-256 is not `sha256`. */
  file(path: string, sha256: string): Promise<string | undefined>;
  /** Makes the error to throw if the mirror cannot tell what changed. */
  failed(status: ErrorStatus, message: string): Error;
}

const INTERVAL_MS = 30_000;
const SHORTEST_MS = 1000;
/** Consecutive failures after which the error is thrown. Reads fail while a host replaces the files. */
const ATTEMPTS = 4;

/**
 * Implements `Mirror.changes`. Rejects with an error of `failed`, a MissingFileError, or the errors of `mirror`. Throws a TypeError for a
 * malformed query.
 */
export function followChanges(query: ChangesQuery, mirror: FollowedMirror): AsyncGenerator<Change, void, undefined> {
  const { since = [], addresses } = query;
  const known = [since].flat().map(({ height, hash }) => ({ height, hash }));
  const wrong = known.find(({ height, hash }) => !Number.isSafeInteger(height) || height < 0 || typeof hash !== 'string');
  if (wrong !== undefined) throw new TypeError(`since must have heights and hashes of blocks, not ${wrong.height} and ${wrong.hash}`);
  const wanted = addresses && new Set(addresses.map((address) => parseAddress(address).value));
  known.sort((a, b) => a.height - b.height);
  return changesAfter(known, wanted, query, mirror);
}

/** `since` has the blocks that the caller knows, ascending. */
async function* changesAfter(
  since: readonly Point[],
  wanted: ReadonlySet<string | undefined> | undefined,
  { intervalMs = INTERVAL_MS, signal }: ChangesQuery,
  mirror: FollowedMirror,
): AsyncGenerator<Change, void, undefined> {
  let known = since;
  let last: string | undefined;
  for (let failures = 0; ; ) {
    signal?.throwIfAborted();
    try {
      const manifest = await mirror.manifest();
      const { changes } = manifest;
      if (changes === undefined) throw mirror.failed(501, 'this mirror has no changes, because an older version of the program made it');
      if (changes.sha256 !== last) {
        const blocks = await indexOf(changes.sha256, mirror);
        const from = forkOf(known, blocks, mirror);
        const points = blocks.map(({ height, hash }) => ({ height, hash }));
        // Blocks below a known block are known, too, because each block has the hash of the block below it.
        const below = points.slice(0, from);
        const gone = known.filter(({ height }) => height > (below.at(-1)?.height ?? -1));
        for (let block = gone.pop(); block !== undefined && from < blocks.length; block = gone.pop()) {
          known = [...below, ...gone];
          yield { ...block, removed: true, since: known };
        }
        for (const [i, block] of blocks.slice(from).entries()) {
          signal?.throwIfAborted();
          const change = await changeOf(block, mirror);
          known = points.slice(0, from + i + 1);
          const matches = change.addresses.filter((address) => wanted?.has(address));
          // A cut list may lack a wanted address, so its block is never left out. The newest block is never left out either: otherwise the
          // caller's `since` could become older than the mirror's list of blocks.
          const isLeftOut = wanted !== undefined && matches.length === 0 && change.more !== true && from + i + 1 < blocks.length;
          if (!isLeftOut) yield { ...change, ...(wanted === undefined ? {} : { matches }), since: known };
        }
        // A host may serve a new manifest with an old list for a while, and without keys nothing compares the list with its digest. So the
        // next round reads the list again unless it ends with the manifest's tip, which it never does if the tip has no activity.
        const [newest, { tip }] = [blocks.at(-1), manifest];
        const isCurrent = tip === undefined || (newest?.height === tip.height && newest.hash.slice(-64) === tip.hash.slice(-64));
        if (isCurrent) last = changes.sha256;
      }
      failures = 0;
      if (intervalMs === 0) return;
      await pause(Math.max(intervalMs, SHORTEST_MS), signal);
    } catch (error) {
      failures += 1;
      if (!(error instanceof MissingFileError) || failures === ATTEMPTS) throw error;
      await pause(SHORTEST_MS, signal);
    }
  }
}

/** Reads the list of the newest blocks, sorted by height. */
async function indexOf(sha256: string, mirror: FollowedMirror): Promise<readonly ListedChanges[]> {
  const text = await mirror.file(CHANGES_INDEX_PATH, sha256);
  const { blocks } = JSON.parse(text ?? '{}') as { readonly blocks?: readonly ListedChanges[] };
  if (!Array.isArray(blocks)) throw new MissingFileError(CHANGES_INDEX_PATH);
  return blocks;
}

async function changeOf({ height, hash, sha256 }: ListedChanges, mirror: FollowedMirror): Promise<Omit<BlockChange, 'since'>> {
  const path = changesPath(height);
  const change = JSON.parse((await mirror.file(path, sha256)) ?? '{}') as Omit<BlockChange, 'since'>;
  if (change.hash !== hash) throw new MissingFileError(path, 'is missing, or of another build');
  return change;
}

/** Returns the index of the first block above the newest known one. Throws an error of `failed` if no known block is in the list. */
function forkOf(known: readonly Point[], blocks: readonly ListedChanges[], mirror: FollowedMirror): number {
  const newest = blocks.at(-1);
  if (newest === undefined) return 0;
  if (known.length === 0) return blocks.length - 1;
  const hashes = new Set(known.map(({ height, hash }) => `${height} ${hash.slice(-64).toLowerCase()}`));
  for (let i = blocks.length; i > 0; i -= 1) {
    const { height = -1, hash = '' } = blocks[i - 1] ?? {};
    if (hashes.has(`${height} ${hash.slice(-64)}`)) return i;
  }
  // A mirror that lags behind the caller may get these blocks later, so this is not an error.
  if (known.every(({ height }) => height > newest.height)) return blocks.length;
  throw mirror.failed(
    404,
    `no block of since is among the newest ${blocks.length} blocks of the mirror, ${blocks[0]?.height} to ${newest.height}. Read all that you follow again, and begin without since`,
  );
}

/** Waits, at most until `signal` aborts. */
function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
    if (signal?.aborted) end();
  });
}
