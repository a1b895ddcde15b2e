/**
 * The parts of a merge: what each holds, and whether they fit together. Nothing is written here.
 */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { type BlockDigest, digestOfBlocks, readDigests, runsOf } from '../build/digests.ts';
import { type Manifest, manifest as manifestSchema, misfitOf } from '../contract/schemas.ts';
import { InputError, messageOf, UsageError } from '../errors.ts';
import { type BuiltSite, siteOf } from '../pages/lists.ts';
import { DIGESTS_FOLDER, MANIFEST_PATH } from '../pages/paths.ts';
import { VERSION } from '../version.ts';
import { namesIn } from '../write/entries.ts';
import { inspectOutput, MARKER, type OutputState } from '../write/outputFolder.ts';

/** A finished output. */
export interface Part {
  /** As it was named. */
  readonly dir: string;
  /** SHA-256 of its manifest, by which it is known again. */
  readonly seen: string;
  /** With its keys in the order in which they stand in the file. */
  readonly manifest: Manifest;
  readonly site: BuiltSite;
  /** Heights ascending. */
  readonly blocks: readonly BlockDigest[];
}

/** Throws an error that says what is wrong with a part, and what to do. */
function refusePart(dir: string, why: string, advice: string): never {
  throw new InputError(`the part ${dir} ${why}`, [advice, 'Nothing was written.']);
}

const VERIFY_IT = 'See what is wrong with npm run verify -- --dir, and build it again.';

/** A part whose files are not what its manifest says. */
export const refuseDamaged = (dir: string, why: string): never => refusePart(dir, `is damaged: ${why}`, VERIFY_IT);

/** Looks at the output folder of a merge. Throws an InputError when it is someone else's. */
export function inspectOut(out: string): OutputState {
  try {
    return inspectOutput(out);
  } catch (error) {
    if (error instanceof InputError) throw new InputError(error.message, ['Name another folder as OUT.', 'Nothing was written.']);
    throw error;
  }
}

/** Refuses folders that lie in each other: a merge would read what it writes, or publish what it remembers. */
export function checkPlaces(out: string, dirs: readonly string[], cache: string): void {
  const [realOut, realCache] = [realPath(out), realPath(cache)];
  const known = new Map<string, string>();
  if (isIn(realCache, realOut)) throw new UsageError(`--cache ${cache} is in the output folder ${out}, and would be published with it`);
  for (const dir of dirs) {
    const real = realPath(dir);
    if (real === realOut) refusePart(dir, 'is the output folder itself', 'Name another folder as OUT: parts are left as they are.');
    if (isIn(real, realOut)) refusePart(dir, `lies in the output folder ${out}`, 'Move it elsewhere, or name another folder as OUT.');
    if (isIn(realOut, real)) refusePart(dir, `holds the output folder ${out}`, 'Name a folder outside of the parts as OUT.');
    if (isIn(realCache, real)) throw new UsageError(`--cache ${cache} is in the part ${dir}; parts are left as they are`);
    const twin = known.get(real);
    if (twin !== undefined) refusePart(dir, `is given twice${twin === dir ? '' : `, as ${twin} too`}`, 'Name each part once.');
    known.set(real, dir);
  }
}

/** The path without symbolic links, also of what does not exist yet. */
function realPath(path: string): string {
  const whole = resolve(path);
  if (existsSync(whole)) return realpathSync(whole);
  const above = dirname(whole);
  return above === whole ? whole : join(realPath(above), basename(whole));
}

const isIn = (path: string, folder: string): boolean => `${path}${sep}`.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);

/** Reads what a part says of itself. Throws an InputError when it is not a finished output of this version. */
export function readPart(dir: string): Part {
  const seen = inspectPart(dir);
  const { manifest, site } = readManifest(dir);
  if (manifest.version !== VERSION) {
    refusePart(dir, `is of version ${manifest.version}, and this program of ${VERSION}`, 'Build it again with this program.');
  }
  const blocks = readBlocks(dir);
  if (digestOfBlocks(blocks) !== manifest.digest) refuseDamaged(dir, 'its files of digests do not come to the digest of its manifest');
  checkCounts(dir, manifest, blocks);
  return { dir, seen, manifest, site, blocks };
}

/** Compares what the manifest says of the blocks with the blocks: what is made room for, and said of the whole, is taken from it. */
function checkCounts(dir: string, manifest: Manifest, blocks: readonly BlockDigest[]): void {
  const found = { blocks: blocks.length, records: blocks.reduce((sum, block) => sum + block.records, 0), heights: runsOf(blocks) };
  for (const key of ['blocks', 'records', 'heights'] as const) {
    if (JSON.stringify(found[key]) !== JSON.stringify(manifest[key])) {
      refuseDamaged(dir, `its files of digests have other ${key} than its manifest`);
    }
  }
}

/** The SHA-256 of a finished part's manifest. */
export function inspectPart(dir: string): string {
  if (!existsSync(dir)) refusePart(dir, 'does not exist', 'Name the output folder of a build.');
  let state: OutputState;
  try {
    state = inspectOutput(dir);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return refusePart(dir, `is no output of a build: ${error.message}`, 'Name the output folder of a build.');
  }
  if (state.kind !== 'ours') refusePart(dir, 'is empty', 'Name the output folder of a build.');
  if (!existsSync(join(dir, MARKER))) {
    refusePart(dir, `has no ${MARKER}`, 'Copy parts with their hidden files: this one tells whether a build finished.');
  }
  return state.manifest ?? refusePart(dir, 'is unfinished: a build is at work on it, or died', 'Build it again, then merge.');
}

function readManifest(dir: string): Pick<Part, 'manifest' | 'site'> {
  try {
    const manifest = JSON.parse(readFileSync(join(dir, MANIFEST_PATH), 'utf8')) as Manifest;
    manifestSchema.parse(manifest);
    return { manifest, site: siteOf(manifest) };
  } catch (error) {
    return refuseDamaged(dir, `${MANIFEST_PATH} cannot be read (${misfitOf(error)})`);
  }
}

function readBlocks(dir: string): BlockDigest[] {
  const all: BlockDigest[] = [];
  for (const name of namesIn(join(dir, DIGESTS_FOLDER))) {
    const path = `${DIGESTS_FOLDER}/${name}`;
    try {
      all.push(...readDigests(readFileSync(join(dir, path), 'utf8'), path));
    } catch (error) {
      refuseDamaged(dir, `${path} cannot be read (${messageOf(error).split('\n')[0]})`);
    }
  }
  return all.sort((a, b) => a.height - b.height);
}

/** A block, and the part that holds it. */
export interface PlacedBlock {
  readonly block: BlockDigest;
  readonly part: Part;
}

/**
 * Refuses parts that do not fit together: built in different ways, or with the same blocks. Returns all blocks, heights ascending.
 */
export function joinParts(parts: readonly Part[]): PlacedBlock[] {
  const [first] = parts;
  for (const part of parts) if (first !== undefined) checkSameSite(part, first);
  const placed = parts.flatMap((part) => part.blocks.map((block): PlacedBlock => ({ block, part })));
  placed.sort((a, b) => a.block.height - b.block.height);
  checkHeights(placed);
  checkHashes(placed);
  return placed;
}

const CHOICES: readonly [string, (part: Part) => string][] = [
  ['layout', ({ site }) => site.layout],
  ['dialect', ({ site }) => site.dialect],
  ['page sizes', ({ site }) => site.pageSizes.join()],
  ['pages by operation', ({ site }) => (site.operationPages ? 'yes' : 'no')],
  ['site URL', ({ manifest }) => manifest.site_url ?? 'none'],
  ['choice of compressed files', ({ site }) => site.compress.join() || 'none'],
  ['choice of Parquet files', ({ site }) => (site.parquet ? 'with them' : 'without them')],
];

function checkSameSite(part: Part, first: Part): void {
  for (const [what, of] of CHOICES) {
    const [here, there] = [of(part), of(first)];
    if (here !== there)
      refusePart(part.dir, `has another ${what} than ${first.dir}: ${here}, not ${there}`, 'Build all parts with the same flags.');
  }
}

/** How many faults of a kind are shown. */
const SHOWN = 10;

/** The faults as the details of an error, and what to do. */
export const faultDetails = (faults: readonly string[], advice: string): string[] => [
  ...faults.slice(0, SHOWN),
  ...(faults.length > SHOWN ? [`… and ${faults.length - SHOWN} more`] : []),
  advice,
  'Nothing was written.',
];

function checkHeights(placed: readonly PlacedBlock[]): void {
  // Runs of shared heights of the same two parts are one line.
  const shared: { a: string; b: string; first: number; last: number }[] = [];
  for (const [i, { block, part }] of placed.entries()) {
    const before = placed[i - 1];
    if (before?.block.height !== block.height) continue;
    const [a, b, run] = [before.part.dir, part.dir, shared.at(-1)];
    if (run !== undefined && run.a === a && run.b === b && block.height <= run.last + 1) run.last = block.height;
    else shared.push({ a, b, first: block.height, last: block.height });
  }
  if (shared.length === 0) return;
  const lines = shared.map(({ a, b, first, last }) => `${first === last ? first : `${first} to ${last}`}: ${a} and ${b}`);
  throw new InputError('heights are in two parts', faultDetails(lines, 'Build the parts of heights that do not overlap.'));
}

function checkHashes(placed: readonly PlacedBlock[]): void {
  const known = new Map<string, PlacedBlock>();
  const faults: string[] = [];
  for (const each of placed) {
    const { block, part } = each;
    const other = known.get(block.hash);
    if (other === undefined) known.set(block.hash, each);
    else faults.push(`${block.hash}: ${other.block.height} in ${other.part.dir} and ${block.height} in ${part.dir}`);
  }
  if (faults.length > 0) throw new InputError('a block hash is at two heights', faultDetails(faults, 'Build the parts of the same chain.'));
}
