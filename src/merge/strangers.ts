/**
 * Removes what the output has and no part has, after a merge into an output that was there before.
 */
import { existsSync, readdirSync } from 'node:fs';
import { type Site, spellHex } from '../pages/lists.ts';
import { prefixes } from '../pages/packed.ts';
import {
  BLOCKS_FOLDER,
  DIGESTS_FOLDER,
  digestsPath,
  editionName,
  LIST_FOLDERS,
  POINTERS_FOLDER,
  STATS_FOLDER,
  shardPath,
  statsFilePath,
  TRANSACTIONS_FOLDER,
  withoutEnding,
} from '../pages/paths.ts';
import type { Figures } from '../stats/figures.ts';
import { entriesOf } from '../write/entries.ts';
import type { Remover } from '../write/stale.ts';
import type { CrowdedFolder } from './linker.ts';
import type { Part, PlacedBlock } from './parts.ts';
import { digitsOf } from './shards.ts';

/** What the output is to hold. */
export interface Whole {
  readonly site: Site;
  readonly parts: readonly Part[];
  readonly placed: readonly PlacedBlock[];
  readonly figures: Figures;
}

/** What was brought of it. */
export interface Brought {
  /** Folders of blocks and transactions in which there is too much. */
  readonly crowded: readonly CrowdedFolder[];
  /** Entries of the folder of transactions; layout `files` only. */
  readonly transactions: number;
}

const NONE: ReadonlySet<string> = new Set();

/** Removes what is in the output's folders of lists and in no part. */
export function removeStrangers(out: string, whole: Whole, brought: Brought, remover: Remover): void {
  for (const folder of LIST_FOLDERS) {
    const belongs = rulesOf(folder, out, whole, brought.transactions);
    const strangers: string[] = [];
    for (const { name } of entriesOf(`${out}/${folder}`)) if (!belongs(`${folder}/${name}`)) strangers.push(`${folder}/${name}`);
    for (const path of strangers) remover.removeUnexpected(path, NONE);
  }
  for (const { root, path } of brought.crowded) {
    for (const name of readdirSync(`${out}/${path}`)) {
      if (!existsSync(`${root}/${path}/${name}`)) remover.removeUnexpected(`${path}/${name}`, NONE);
    }
  }
}

/** Which paths right in one of the folders of lists are to be there. */
function rulesOf(folder: string, out: string, { site, parts, placed }: Whole, transactions: number): (path: string) => boolean {
  const isInPart = ({ dir }: Part, path: string) => existsSync(`${dir}/${path}`);
  if (folder === DIGESTS_FOLDER) return member(placed.map(({ block }) => digestsPath(block.height)));
  if (folder === STATS_FOLDER) return member(placed.map(({ block }) => statsFilePath(block.height)));
  if (folder === TRANSACTIONS_FOLDER) {
    if (site.layout === 'packed') return member([...prefixes(digitsOf(parts))].map(shardPath));
    // Each part's transactions are others, and all of them are there: as many entries as were brought are these.
    let count = 0;
    for (const _ of entriesOf(`${out}/${folder}`)) count += 1;
    return count === transactions ? () => true : (path) => parts.some((part) => isInPart(part, path));
  }
  const owners = new Map<string, Part>();
  for (const { block, part } of placed) {
    for (const name of namesOf(block, site)[folder] ?? []) owners.set(`${folder}/${name}`, part);
  }
  return (path) => {
    const owner = owners.get(withoutEnding(path));
    return owner !== undefined && isInPart(owner, path);
  };
}

const member = (paths: readonly string[]): ((path: string) => boolean) => {
  const known = new Set(paths);
  return (path) => known.has(path);
};

/** The names of a block in the folders of blocks and of pointers: without an ending, and its height's before its hash's. */
export function namesOf(block: PlacedBlock['block'], site: Site): Readonly<Record<string, readonly string[]>> {
  const both = [String(block.height), spellHex(block.hash, site.dialect)];
  if (site.layout === 'files') return { [BLOCKS_FOLDER]: both };
  return { [BLOCKS_FOLDER]: [editionName(block.height, block.digest, site.dialect)], [POINTERS_FOLDER]: both };
}
