/**
 * Compares several mirrors: their blocks by the digests of blocks, and their lists. Reports which mirrors agree. If
 * their blocks differ, also reports by which rules (contract/sources.ts) the rows of each mirror were made.
 */
import { closeSync, existsSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { count, type Log } from '../cli/log.ts';
import { plainUrl } from '../contract/plainUrl.ts';
import { manifest as manifestSchema, misfitOf } from '../contract/schemas.ts';
import { describeSources } from '../contract/sources.ts';
import { openRegularFile, readRegularFile } from '../disk/regularFile.ts';
import { InputError, UsageError } from '../errors.ts';
import type { ArchiveFiles } from '../format/archiveReader.ts';
import { groupBy } from '../groupBy.ts';
import { digestOfBlocks, digestsPaths, readDigests, runsOf } from '../output/digests.ts';
import { archivePath, MANIFEST_PATH } from '../pages/filePaths.ts';
import { Client } from '../pull/httpClient.ts';
import { baseOf, filesOfArchive, findManifest, impossible, type Listing, readListing } from '../pull/mirror/mirrorSource.ts';
import { type ComparedLists, compareLists, type ListedMirror } from './compareListsOfMirrors.ts';
import { compareRows, type MirrorWithRows } from './compareRows.ts';
import { VerificationError } from './findings.ts';

/** Maximum number of ranges of heights to show in a list of blocks. */
const SHOWN = 10;

/** Another mirror: a folder, or the URL before `/runes/v1`. */
export type Other = string | URL;

/** Parses --against. Throws a UsageError for a URL that cannot be the URL of a mirror. */
export function parseAgainst(text: string): Other {
  if (!/^[a-z]+:\/\//.test(text)) {
    if (/^[a-z0-9.-]+:[0-9]+(?:\/|$)/i.test(text) && !existsSync(text))
      throw new UsageError(`--against ${JSON.stringify(text)} must be a folder, or a URL such as http://${text}`);
    return text;
  }
  const url = plainUrl(text);
  if (url !== undefined) return url;
  throw new UsageError('--against must be a folder, or an http(s) URL without user, password, query and fragment');
}

/** A mirror. `name` is its name in messages. */
export interface Compared extends Listing, ListedMirror, MirrorWithRows {}

/** Reads manifest and digests of another mirror. Throws an InputError if it is not a mirror. */
export async function readOther(other: Other, log: Log): Promise<Compared> {
  if (typeof other === 'string') return { name: other, ...filesIn(other), ...readFolder(other) };
  const client = Client.reporting(log);
  const name = baseOf(other);
  const { read, inflate } = filesOfArchive(name, client);
  const files: ArchiveFiles = { read: (file, offset, length, size) => read(archivePath(file), offset, length, size), inflate };
  const readFile = async (path: string) => {
    const { status, body } = await client.get(`${name}/${path}`, (bytes) => bytes);
    if (body === undefined) throw new Error(`the mirror answered with status ${status}`);
    return body;
  };
  return { name, files, readFile, ...(await readUrl(name, client)) };
}

export const filesIn = (root: string): Pick<Compared, 'files' | 'readFile'> => ({
  files: {
    read: async (file, offset, length) => {
      const handle = openRegularFile(join(root, archivePath(file)));
      try {
        const part = Buffer.allocUnsafeSlow(length);
        return readSync(handle, part, 0, length, offset) === length ? part : undefined;
      } finally {
        closeSync(handle);
      }
    },
    inflate: async (member, most) => gunzipSync(member, { maxOutputLength: most }).toString(),
  },
  readFile: async (path) => readRegularFile(join(root, path)),
});

/**
 * Compares the blocks, the rows and the lists of at least two mirrors. Logs the result. Throws a VerificationError for a
 * difference in a list, in rows, or in a block that all mirrors have. The error says which mirrors
 * agree, and in which blocks they differ.
 */
export async function compareMirrors(mirrors: readonly Compared[], log: Log): Promise<void> {
  const names = mirrors.map(({ name }) => name);
  const all = names.length === 2 ? names.join(' and ') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
  const { common, different, details } = compareBlocks(mirrors, names);
  if (different.length > 0) {
    const which = `the ${count(common.length, 'block')} that all of them have`;
    throw new VerificationError(`${all} differ in ${different.length} of ${which}; the lowest of these is block ${different[0]}`, details);
  }
  if (common.length === 0 && details.length > 0) throw new VerificationError(`${all} have no block in common`, details);
  const rows = await compareRows(mirrors);
  const unequal = rows.filter(([, digests]) => new Set(digests.values()).size > 1);
  if (unequal.length > 0)
    throw new VerificationError(
      `${all} have the same blocks, but differ in their rows`,
      unequal.slice(0, SHOWN).map(([range, digests]) => `rows of blocks ${range}: ${groupsOf(names, (i) => digests.get(i))}`),
    );
  const lists = await compareLists(mirrors);
  if (lists.different.length > 0 || lists.faults.size > 0) {
    const levels = [
      ...[...lists.faults].map(([i, fault]) => `${names[i]} ${fault}`),
      ...lists.different.map(
        ({ list, range, contents }) => `${list}, blocks ${range.first} to ${range.last}: ${groupsOf(names, (i) => contents.get(i))}`,
      ),
    ];
    throw new VerificationError(`${all} have the same blocks, but differ in their lists`, levels);
  }
  const listed = [...(rows.length === 0 ? [] : [`equal rows: ${count(rows.length, 'range')} of blocks`]), ...sayCompared(lists, names)];
  const isWhole = details.length === 0;
  const found = isWhole
    ? `have the same data: digest ${mirrors[0]?.manifest.digest}.`
    : `agree in the ${count(common.length, 'block')} that all of them have.`;
  log.info('compared', [`${all} ${found}`, ...details, ...listed].join('\n  '), {
    mirrors: names,
    different: 0,
    common: common.length,
  });
}

/** Says which lists were compared and are equal, and which were not compared. */
function sayCompared({ compared, lists, alone }: ComparedLists, names: readonly string[]): string[] {
  const equal = lists.length === 0 ? [] : [`equal lists: ${compared.map((i) => names[i]).join(', ')} (${lists.join(', ')})`];
  const others = compared.length === 0 ? [] : [...names.keys()].filter((i) => !compared.includes(i));
  const levels = [...alone].flatMap(([i, found]) =>
    [...groupBy(found, ({ range }) => `blocks ${range.first} to ${range.last}`)].map(
      ([blocks, same]) => `lists of ${names[i]} that were not compared, ${blocks}: ${same.map(({ list }) => list).join(', ')}`,
    ),
  );
  return [...equal, ...others.map((i) => `not compared: the lists of ${names[i]}, which has none, or in another form`), ...levels];
}

interface ComparedBlocks {
  /** Heights that all mirrors have. */
  readonly common: readonly number[];
  /** Heights of `common` whose records differ, ascending. */
  readonly different: readonly number[];
  /** Lines for the user about the differences. Empty if the mirrors have the same blocks. */
  readonly details: readonly string[];
}

function compareBlocks(mirrors: readonly Compared[], names: readonly string[]): ComparedBlocks {
  const known = mirrors.map(({ blocks }) => new Map(blocks.map((block) => [block.height, block])));
  const heights = [...new Set(mirrors.flatMap(({ blocks }) => blocks.map(({ height }) => height)))].sort((a, b) => a - b);
  const common = heights.filter((height) => known.every((blocks) => blocks.has(height)));
  const differs = (key: 'digest' | 'hash') => (height: number) => new Set(known.map((blocks) => blocks.get(height)?.[key])).size > 1;
  const different = common.filter(differs('digest'));
  if (different.length === 0 && common.length === heights.length) return { common, different, details: [] };
  const forked = different.filter(differs('hash'));
  const groups = groupBy(different, (height) => groupsOf(names, (i) => known[i]?.get(height)?.digest));
  const details = [
    ...[...groups].map(([group, where]) => `${group}: ${listed(where)}`),
    ...(forked.length > 0 ? [`different block hashes, so of another chain: ${listed(forked)}`] : []),
    ...mirrors.flatMap(({ name }, i) => {
      const lacking = heights.filter((height) => known[i]?.has(height) !== true);
      return lacking.length > 0 ? [`${name} lacks ${listed(lacking)}`] : [];
    }),
    ...mirrors.map((mirror) => `rows of ${mirror.name}: ${rulesOf(mirror)}`),
  ];
  return { common, different, details };
}

/**
 * Returns a text that says which mirrors agree, such as `a = c ≠ b`. `has` takes the index of a mirror, and returns the
 * value of this mirror to compare. Omits mirrors without a value.
 */
function groupsOf(names: readonly string[], has: (index: number) => string | undefined): string {
  const having = [...names.entries()].filter(([i]) => has(i) !== undefined);
  const groups = groupBy(having, ([i]) => has(i));
  return [...groups.values()].map((group) => group.map(([, name]) => name).join(' = ')).join(' ≠ ');
}

/** Returns a text with the number of blocks and the first ranges of their heights. `heights` must ascend. */
function listed(heights: readonly number[]): string {
  const runs = runsOf(heights.map((height) => ({ height }))).map(([first, last]) => (first === last ? `${first}` : `${first}..${last}`));
  return `${count(heights.length, 'block')}, ${runs.slice(0, SHOWN).join(', ')}${runs.length > SHOWN ? ' …' : ''}`;
}

const rulesOf = ({ manifest: { sources = [] } }: Listing): string =>
  sources.length === 0 ? 'its manifest does not say from where' : `from ${describeSources(sources)}`;

function readFolder(root: string): Listing {
  try {
    const found = manifestSchema.parse(JSON.parse(readFileSync(join(root, MANIFEST_PATH), 'utf8')));
    const wrong = impossible(found);
    if (wrong !== undefined) throw new Error(`its manifest ${wrong}`);
    const blocks = digestsPaths(found).flatMap((path) => readDigests(readFileSync(join(root, path), 'utf8'), path));
    if (digestOfBlocks(blocks) !== found.digest) throw new Error('its block digests do not match the digest in its manifest');
    return { manifest: found, blocks };
  } catch (error) {
    throw new InputError(`${root} cannot be compared: ${misfitOf(error)}`, [
      'Give the output folder of a build with --against, and verify it first.',
    ]);
  }
}

async function readUrl(base: string, client: Client): Promise<Listing> {
  if ((await findManifest(base, client)) === undefined)
    throw new InputError(`${base} is not a mirror of this program: it has no valid ${MANIFEST_PATH}`, [
      'Give the URL before /runes/v1 with --against.',
    ]);
  return readListing(base, client);
}
