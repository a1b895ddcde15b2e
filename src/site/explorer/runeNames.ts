/** Names of all runes, kept for the next search as long as the mirror has the blocks that etched these runes. */
import type { Etching, MirrorManifest, RuneName } from '../../serve/client/mirrorClient.ts';
import { mirror } from './requestMirror.ts';
import { settings } from './settings.ts';

/** Up to this number of runes, names are read without asking the user. They have 60 KB: a name takes about 20 bytes. */
const FREE_NAMES = 3000;

interface Known {
  /** Oldest first. */
  readonly names: readonly RuneName[];
  /** The newest rune. As long as the mirror has the block of this rune, no known name can have become wrong. */
  readonly newest: Etching | undefined;
  readonly state: string;
}

let known: Known | undefined;
let reading: Promise<readonly RuneName[]> | undefined;

/** Returns a text that changes with the data of the mirror. */
export const stateOf = ({ digest, tip }: MirrorManifest): string => `${digest} ${tip?.hash ?? ''}`;

/** Returns the newest runes, as many as one answer can have. */
const fetchNewest = () => mirror.etchings({ limit: settings.pageSizes.at(-1) });

/** Adds the mirror's new names. Undefined if one answer cannot have all of them, or after a reorganisation. */
async function updated({ names, newest, state: before }: Known): Promise<Known | undefined> {
  const state = stateOf(await mirror.manifest());
  if (state === before) return { names, newest, state };
  const { total, results } = await fetchNewest();
  const added = results.findIndex(({ id, location }) => id === newest?.id && location.block_hash === newest.location.block_hash);
  if (added < 0 || names.length + added !== total) return undefined;
  return { names: [...names, ...results.slice(0, added).reverse()], newest: results[0], state };
}

/** Updates and returns the names in memory. Undefined if there are none, or if `updated` returns undefined. */
async function knownNames(): Promise<readonly RuneName[] | undefined> {
  known = known && (await updated(known));
  return known?.names;
}

async function readAll(): Promise<readonly RuneName[]> {
  const state = stateOf(await mirror.manifest());
  const newest = (await fetchNewest()).results[0];
  const names: RuneName[] = [];
  for await (const rune of mirror.runes()) names.push(rune);
  // If the mirror changed meanwhile, the next search reads the names again.
  known = names.at(-1)?.id === newest?.id ? { names, newest, state } : undefined;
  return names;
}

/** Reads the names, unless they are in memory. Rejects with the client's errors. */
export async function readNames(): Promise<readonly RuneName[]> {
  const names = await knownNames();
  if (names !== undefined) return names;
  reading ??= readAll().finally(() => {
    reading = undefined;
  });
  return reading;
}

/** Returns the names if they are in memory or few, otherwise undefined. Rejects with the client's errors. */
export async function freeNames(): Promise<readonly RuneName[] | undefined> {
  const { lists } = await mirror.manifest();
  if (lists?.etchings === undefined) return undefined;
  return lists.etchings.total <= FREE_NAMES ? readNames() : knownNames();
}
