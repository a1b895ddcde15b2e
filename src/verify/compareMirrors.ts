/**
 * Compares mirrors: their blocks by the digests of blocks, their published rows by the digests in their indexes, and their lists level by
 * level. If their blocks differ, also reports by which rules (contract/sources.ts) the rows of each mirror were made.
 */
import { createHash } from 'node:crypto';
import { count, type Log } from '../cli/log.ts';
import { rowsIndex } from '../contract/rowsSchemas.ts';
import { misfitOf } from '../contract/schemas.ts';
import { describeSources } from '../contract/sources.ts';
import { InputError } from '../errors.ts';
import { ArchiveError } from '../format/archiveError.ts';
import { Archive } from '../format/archiveReader.ts';
import { countBefore } from '../format/binarySearch.ts';
import { textOf } from '../format/documents.ts';
import { type DocumentLevel, levelRanges } from '../format/levels.ts';
import type { ListTables } from '../format/listTables.ts';
import { groupBy } from '../groupBy.ts';
import { runsOf } from '../output/digests.ts';
import { siteOf } from '../pages/mirrorOptions.ts';
import { VerificationError } from './findings.ts';
import type { Compared } from './otherMirror.ts';
import { differingLists } from './verification.ts';

/** Maximum number of ranges of heights to show in a list of blocks. */
const SHOWN = 10;

/**
 * Compares at least two mirrors, and logs the result. Throws a VerificationError for a difference in a list, in rows, or in a block that all
 * mirrors have. The error says which mirrors agree, and in which blocks they differ.
 */
export async function compareMirrors(mirrors: readonly Compared[], log: Log): Promise<void> {
  const names = mirrors.map(({ name }) => name);
  const all = names.length === 2 ? names.join(' and ') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
  const { common, different, lacking, details } = compareBlocks(mirrors, names);
  const inCommon = `the ${count(common.length, 'block')} that all of them have`;
  if (different.length > 0)
    throw new VerificationError(
      `${all} differ in ${different.length} of ${inCommon}; the lowest of these is block ${different[0]}`,
      details,
    );
  if (common.length === 0 && details.length > 0) throw new VerificationError(`${all} have no block in common`, details);
  const equal: string[] = [];
  for (const [what, compare] of [['rows', compareRows] as const, ['lists', compareLists] as const]) {
    const found = await compare(mirrors, names, lacking);
    const equalBlocks = details.length === 0 ? 'have the same blocks' : `agree in the records of ${inCommon}`;
    if (found.different.length > 0)
      throw new VerificationError(`${all} ${equalBlocks}, but differ in their ${what}`, [...found.different, ...details]);
    for (const line of found.equal) equal.push(line);
  }
  const found = details.length === 0 ? `have the same data: digest ${mirrors[0]?.manifest.digest}.` : `agree in ${inCommon}.`;
  log.info('compared', [`${all} ${found}`, ...details, ...equal].join('\n  '), { mirrors: names, different: 0, common: common.length });
}

/**
 * Returns the heights that all mirrors have, those of them whose records differ, and the heights that each mirror lacks but another has, all
 * ascending, and lines for the user about the differences. There are no lines if the mirrors have the same blocks.
 */
function compareBlocks(mirrors: readonly Compared[], names: readonly string[]) {
  const known = mirrors.map(({ blocks }) => new Map(blocks.map((block) => [block.height, block])));
  const heights = [...new Set(mirrors.flatMap(({ blocks }) => blocks.map(({ height }) => height)))].sort((a, b) => a - b);
  const common = heights.filter((height) => known.every((blocks) => blocks.has(height)));
  const differs = (key: 'digest' | 'hash') => (height: number) => new Set(known.map((blocks) => blocks.get(height)?.[key])).size > 1;
  const different = common.filter(differs('digest'));
  const lacking = known.map((blocks) => heights.filter((height) => !blocks.has(height)));
  if (different.length === 0 && common.length === heights.length) return { common, different, lacking, details: [] };
  const forked = different.filter(differs('hash'));
  const groups = groupBy(different, (height) => groupsOf(names, (i) => known[i]?.get(height)?.digest));
  const details = [
    ...[...groups].map(([group, where]) => `${group}: ${listed(where)}`),
    ...(forked.length > 0 ? [`different block hashes, so of another chain: ${listed(forked)}`] : []),
    ...lacking.flatMap((lacked, i) => (lacked.length > 0 ? [`${names[i]} lacks ${listed(lacked)}`] : [])),
    ...mirrors.map(({ name, manifest: { sources = [] } }) => {
      const rules = sources.length === 0 ? 'its manifest does not say from where' : `from ${describeSources(sources)}`;
      return `rows of ${name}: ${rules}`;
    }),
  ];
  return { common, different, lacking, details };
}

/** Returns a key for the heights that a mirror lacks in a range, both ends included. `lacking` must ascend. */
function keyOfLacking(lacking: readonly number[] = [], first: number, last: number): string {
  const below = (height: number) => countBefore(lacking.length, (i) => (lacking[i] ?? 0) < height);
  return createHash('sha256')
    .update(lacking.slice(below(first), below(last + 1)).join())
    .digest('hex');
}

/**
 * Returns a text that says which mirrors agree, such as `a = c ≠ b`. `has` takes the index of a mirror, and returns the value of this
 * mirror to compare. Omits mirrors without a value.
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

/**
 * Compares ranges of heights for which several mirrors have a file of rows and the same blocks. Equal digests mean equal rows, also in what
 * records lack: the outputs that are spent, and runes of scripts without address. Returns lines for the user: about differences, and about
 * what was compared and is equal. Rejects for a damaged index.
 */
async function compareRows(mirrors: readonly Compared[], names: readonly string[], lacking: readonly (readonly number[])[]) {
  const files = (await Promise.all(mirrors.map(rowsOf))).flatMap((own, mirror) => own.map((file) => ({ ...file, mirror })));
  files.sort((a, b) => a.first - b.first);
  const ranges = [
    ...groupBy(files, ({ mirror, first, last }) => `${first} ${last} ${keyOfLacking(lacking[mirror], first, last)}`).values(),
  ].filter((same) => new Set(same.map(({ mirror }) => mirror)).size > 1);
  const different = ranges.filter((same) => new Set(same.map(({ digest }) => digest)).size > 1);
  const groups = different.slice(0, SHOWN).map((same) => {
    const group = groupsOf(names, (i) => same.find(({ mirror }) => mirror === i)?.digest);
    return `rows of blocks ${same[0]?.first}..${same[0]?.last}: ${group}`;
  });
  return { different: groups, equal: ranges.length === 0 ? [] : [`equal rows: ${count(ranges.length, 'range')} of blocks`] };
}

async function rowsOf({ name, manifest: { rows }, readFile }: Compared) {
  if (rows === undefined) return [];
  try {
    const bytes = await readFile(rows.index);
    if (createHash('sha256').update(bytes).digest('hex') !== rows.sha256) throw new Error('its SHA-256 differs from the manifest');
    return rowsIndex.parse(JSON.parse(Buffer.from(bytes).toString())).files;
  } catch (error) {
    throw new InputError(`${name} cannot be compared: ${rows.index} cannot be read: ${misfitOf(error)}`);
  }
}

/** The lists that are stored as documents. All other lists follow from these lists and from the blocks. */
const LISTS: Readonly<Record<string, (lists: ListTables) => readonly DocumentLevel[] | undefined>> = {
  etchings: ({ etchings }) => etchings?.levels,
  'names of runes': ({ etchings }) => etchings?.runes,
  balances: ({ balances }) => balances?.addresses,
  holders: ({ balances }) => balances?.holders,
  outputs: ({ outputs }) => outputs?.outputs,
  'outputs of addresses': ({ outputs }) => outputs?.addresses,
};

/** The lists whose levels begin at height 0 in every mirror, even in a mirror of the last N blocks. */
const ETCHING_LISTS = ['etchings', 'names of runes'];

/** A level that a mirror must have. */
interface OpenedLevel {
  readonly mirror: number;
  readonly list: string;
  readonly blocks: string;
  /** Key for the heights that the mirror lacks up to the end of the level. */
  readonly lacking: string;
  /** Undefined if no list has changed in the blocks of the level. */
  readonly level: DocumentLevel | undefined;
  readonly archive: Archive;
}

/**
 * Compares the levels (format/levels.ts) of lists of mirrors that have the same blocks up to the end of the level, because counts and
 * balances include earlier blocks. The levels that a mirror must have follow from its tip, so a level that one mirror lacks is a
 * difference. Skips mirrors whose lists have another dialect or page size than the lists of the first mirror with lists. Returns lines
 * like `compareRows`. Rejects with an ArchiveError if a file is missing or damaged.
 */
async function compareLists(mirrors: readonly Compared[], names: readonly string[], lacking: readonly (readonly number[])[]) {
  const all = await Promise.all(mirrors.map((one, mirror) => openLists(one, mirror, lacking[mirror])));
  const first = all.find((one) => one?.form !== undefined);
  const opened = all.map((one) => (one?.form === first?.form ? one : undefined));
  const different = all.flatMap((one, i) => {
    const fault =
      one?.fault ?? (opened[i] !== undefined && opened[i]?.steps !== first?.steps ? 'has lists in levels of other sizes' : undefined);
    return fault === undefined ? [] : [`${names[i]} ${fault}`];
  });
  const levels = opened.flatMap((one) => one?.levels ?? []);
  const [compared, alone] = [new Set<string>(), [] as OpenedLevel[]];
  for (const same of groupBy(levels, ({ list, blocks, lacking }) => `${list}, ${blocks}, ${lacking}`).values()) {
    const [one] = same;
    if (one === undefined || same.every(({ level }) => level === undefined)) continue;
    if (same.length === 1) alone.push(one);
    else {
      compared.add(one.list);
      const contents = await contentsOf(same);
      if (new Set(contents.values()).size > 1) different.push(`${one.list}, ${one.blocks}: ${groupsOf(names, (i) => contents.get(i))}`);
    }
  }
  const ofNames = (isAmong: boolean) => names.filter((_, i) => (opened[i] !== undefined) === isAmong);
  return {
    different,
    equal: [
      ...(compared.size === 0 ? [] : [`equal lists: ${ofNames(true).join(', ')} (${[...compared].join(', ')})`]),
      ...(first === undefined ? [] : ofNames(false)).map(
        (name) => `not compared: the lists of ${name}, which has none, or in another form`,
      ),
      ...[...groupBy(alone, ({ mirror, blocks }) => `lists of ${names[mirror]} that were not compared, ${blocks}`)].map(
        ([which, same]) => `${which}: ${same.map(({ list }) => list).join(', ')}`,
      ),
    ],
  };
}

/**
 * Opens the lists of a mirror. Undefined for a mirror without lists. Only lists with the same `form` (dialect and page size) can be
 * compared; damaged lists have none. `fault` says why the lists are damaged, or do not match the manifest and blocks of the mirror.
 */
async function openLists({ manifest, blocks, files }: Compared, mirror: number, lacking: readonly number[] | undefined) {
  const { listRoot, dialect, layout, tip } = siteOf(manifest);
  if (listRoot === undefined) return undefined;
  let archive: Archive;
  try {
    archive = await Archive.open(listRoot, files);
  } catch (error) {
    if (!(error instanceof ArchiveError)) throw error;
    return { fault: `has lists that cannot be compared: ${error.message}` };
  }
  const { lists } = archive.root;
  if (lists === undefined) return undefined;
  const lowest = layout === 'files' && lists.activity !== undefined ? (blocks[0]?.height ?? 0) : undefined;
  const levels = Object.entries(LISTS).flatMap(([list, levelsOf]) => {
    const found = levelsOf(lists);
    const ranges = found === undefined ? [] : levelRanges(tip, lists, ETCHING_LISTS.includes(list) ? undefined : lowest);
    return ranges.map(({ first, last }): OpenedLevel => {
      const level = found?.find((one) => one.first === first && one.last === last);
      return { mirror, list, blocks: `blocks ${first} to ${last}`, lacking: keyOfLacking(lacking, 0, last), level, archive };
    });
  });
  const others = lists.tip !== tip || lists.lowest !== lowest ? 'has lists of other blocks than its manifest' : undefined;
  const fault = others ?? (differingLists(manifest, lists).length > 0 ? 'has other lists than its manifest says' : undefined);
  return { form: `${dialect} ${lists.page}`, steps: `${lists.steps} ${lists.unsettled}`, levels, fault };
}

/**
 * Returns an identifier of the content of each mirror's level. It consists of the names of the level's files, which are hashes of their
 * contents, if these are the same in all mirrors. Otherwise it is a hash of the level's text, because the bytes of files also depend on the
 * version of zlib.
 */
async function contentsOf(levels: readonly OpenedLevel[]): Promise<Map<number, string>> {
  const byNames = groupBy(levels, ({ level }) => level?.files.map(({ file }) => file).join(' ') ?? '');
  const contents = new Map<number, string>();
  for (const [names, same] of byNames) {
    const [one] = same;
    const content = one === undefined || byNames.size === 1 ? names : await hashOf(one);
    for (const { mirror } of same) contents.set(mirror, content);
  }
  return contents;
}

async function hashOf({ archive, level }: OpenedLevel): Promise<string> {
  const hash = createHash('sha256');
  if (level === undefined) return 'no level';
  for await (const text of textOf(archive, level)) hash.update(text);
  return hash.digest('hex');
}
