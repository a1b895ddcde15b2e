/**
 * Verifies the output of a build. Reads every block's records from its pages of the largest size, and makes all files of the build again
 * from these records. The output must have exactly these files, with the same bytes.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Progress } from '../cli/progress.ts';
import { DEFAULT_MEMORY } from '../contract/memorySize.ts';
import { type BlockDigest, type Manifest, manifest as manifestSchema, misfitOf } from '../contract/schemas.ts';
import { readRegularFile } from '../disk/regularFile.ts';
import { StoredArchive } from '../engine/archive/storedArchive.ts';
import { emitFiles } from '../engine/render/pageFiles.ts';
import { renderBatches } from '../engine/render/renderBatches.ts';
import type { NewBlock } from '../engine/state/updateState.ts';
import { describe } from '../engine/writeArchive.ts';
import { InputError, isAbsence } from '../errors.ts';
import { readMirrorNote } from '../format/mirrorNote.ts';
import { NoteError, type NoteKey, parseNote, signersOf } from '../format/signedNote.ts';
import type { Records } from '../input/canonicalRecordSql.ts';
import { exceeds, LIMITS } from '../limits.ts';
import { digestsFiles, digestsPaths, readDigests } from '../output/digests.ts';
import { ownFiles } from '../output/manifest.ts';
import { inspectOutput, LOCK, MARKER } from '../output/outputFolder.ts';
import { checkSignature } from '../output/signingKeys.ts';
import { digestsPath, isArchivePath, isRowsFile, LIST_FOLDERS, MANIFEST_PATH } from '../pages/filePaths.ts';
import { siteOf } from '../pages/mirrorOptions.ts';
import type { Listing } from '../pull/mirror/mirrorSource.ts';
import { siteAssets } from '../site/assets.ts';
import { ArchiveVerification } from './checkArchive.ts';
import { ComparingSink } from './comparingSink.ts';
import { damageOf, Findings } from './findings.ts';
import { PublishedRecords } from './publishedRecords.ts';
import { rebuild } from './rebuild.ts';
import { HEIGHTS, type Verification, withScratchStore } from './verification.ts';

/**
 * Verifies an output folder. If `keys` are given, one of them must have signed the output. Throws a VerificationError with the findings, or
 * an InputError if the folder is not an output.
 */
export async function verify(
  root: string,
  progress: Progress,
  memoryLimit = DEFAULT_MEMORY,
  limits = LIMITS,
  keys: readonly NoteKey[] = [],
): Promise<Listing> {
  const findings = new Findings(root);
  const manifest = readManifest(root, findings);
  await checkNote(manifest, keys, findings);
  const site = siteOf(manifest);
  const own = new ComparingSink(root, findings);
  for (const [path, content] of [...siteAssets(), ...ownFiles(manifest)]) own.file(path, content);
  const blocks = readBlocks(root, manifest, own, findings);
  try {
    const known = { root, archive: StoredArchive.find(root), manifest, site, blocks, findings, own, limits, progress };
    const isSmall = !exceeds(limits, 'keptRecords', manifest.records);
    await withScratchStore(memoryLimit, (scratch) => verifyBlocks({ ...known, ...scratch }), isSmall);
    findings.throwIfAny();
    return { manifest, blocks };
  } catch (error) {
    const damage = damageOf(error);
    if (damage === undefined) throw error;
    findings.add(damage);
    throw findings.error();
  }
}

/** Checks the pages of all blocks, and all files that follow from the blocks. Throws for a damaged archive. */
async function verifyBlocks(verification: Verification): Promise<void> {
  const { root, archive, manifest, site, blocks, findings, own, store } = verification;
  const sink = new ComparingSink(root, findings);
  const segments = archive && new ArchiveVerification(verification, archive);
  const hasSegments = site.layout === 'archive' || archive?.root.lists?.activity !== undefined;
  const rows = blocks.map(({ height, hash, records }) => [height, hash, records]);
  const heights = await store.append('heights', HEIGHTS, rows);
  const published = new PublishedRecords(verification, heights, hasSegments ? segments : undefined);
  const read: NewBlock[] = [];
  for await (const { listed, parts, batch, block } of published.render()) {
    if (block.digest !== listed.digest)
      findings.add(
        `block ${block.height}: its records have the digest ${block.digest}, but ${digestsPath(block.height)} says ${listed.digest}`,
      );
    const pages = site.layout === 'files' ? emitFiles(batch, block, site, sink) : { files: 0, bytes: 0 };
    const bytes = parts === undefined ? 0 : (segments?.add(batch, block, parts) ?? 0);
    read.push({ ...block, ...pages, spentDigest: '', spooled: { file: '', offset: 0, bytes, pages: [], entry: 0 } });
  }
  // Everything else follows from the records, so it would be wrong, too.
  if (findings.count === 0) segments?.finish();
  findings.throwIfAny();
  const records = await published.records();
  const made = await rebuild(verification, read, heights, records);
  for (const key of COMPARED) {
    const [actual, listed] = [JSON.stringify(made[key]) ?? 'none', JSON.stringify(manifest[key]) ?? 'none'];
    if (actual !== listed) findings.add(`${MANIFEST_PATH} has ${key} ${shorten(listed)}, but the output has ${shorten(actual)}`);
  }
  own.add([MARKER, ...(archive === undefined ? [] : describe(archive.name, archive.root).paths)]);
  await reportStrangers(verification, records, sink);
}

/** Values of the manifest that follow from other files of the output. */
const COMPARED = ['tip', 'blocks', 'transactions', 'records', 'files', 'bytes', 'digest', 'heights', 'lists', 'changes'] as const;

const shorten = (text: string): string => (text.length > 80 ? `${text.slice(0, 80)}…` : text);

function readManifest(root: string, findings: Findings): Manifest {
  const path = join(root, MANIFEST_PATH);
  if (!existsSync(path)) {
    if (existsSync(join(root, MARKER))) findings.add(`${MANIFEST_PATH} is missing`);
    findings.throwIfAny();
    throw new InputError(`${root} is not the output of a build: ${MANIFEST_PATH} not found`, [
      'Build first, or give another folder with --dir.',
    ]);
  }
  if (inspectOutput(root).manifest === undefined) findings.add(`${MARKER} says that the last build did not finish`);
  try {
    return manifestSchema.parse(JSON.parse(readRegularFile(path).toString('utf8')));
  } catch (error) {
    findings.add(`${MANIFEST_PATH} cannot be read: ${misfitOf(error)}`);
    findings.throwIfAny();
    throw error;
  }
}

/** Reads the blocks in the digest files, sorted by height. Adds a finding for each missing or damaged file. */
function readBlocks(root: string, manifest: Manifest, sink: ComparingSink, findings: Findings): BlockDigest[] {
  const all: BlockDigest[] = [];
  for (const path of digestsPaths(manifest)) {
    try {
      const blocks = readDigests(readRegularFile(join(root, path)).toString('utf8'), path);
      for (const [, content] of digestsFiles(blocks)) sink.file(path, content);
      for (const block of blocks) all.push(block);
    } catch (error) {
      findings.add(isAbsence(error) ? `${path} is missing` : `${path}: ${misfitOf(error)}`);
    }
  }
  return all;
}

const SIGN_AGAIN = 'Build again with --key-file, which signs layout archive anew.';

/** Checks that the note is about this manifest, and that one of `keys` has signed the note. If `keys` is empty, checks no signature. */
async function checkNote(manifest: Manifest, keys: readonly NoteKey[], findings: Findings): Promise<void> {
  if (manifest.note === undefined) {
    if (keys.length > 0) findings.add(`${MANIFEST_PATH} has no note, so no key has signed it`, SIGN_AGAIN);
    return;
  }
  try {
    const note = parseNote(manifest.note);
    readMirrorNote(note.text, manifest);
    if (keys.length > 0) await signersOf(note, keys, checkSignature);
  } catch (error) {
    if (!(error instanceof NoteError)) throw error;
    findings.add(`${MANIFEST_PATH}: ${error.message}`, SIGN_AGAIN);
  }
}

/**
 * Adds a finding for each file that is not part of the build. Expected files are the pages that `sink` compared, and the files of `own`.
 * All of these were found. So paths are compared only if the folder has more files than expected.
 */
async function reportStrangers(verification: Verification, records: Records, sink: ComparingSink): Promise<void> {
  const { root, own, findings } = verification;
  let count = 0;
  // walk() does not follow links. So if a link has replaced a folder, the count is lower, and the paths are compared.
  for (const { isFile } of walk(root)) if (isFile) count += 1;
  if (count === sink.files + own.files) return;
  const known = new Set([...(await pagesOf(verification, records)), ...own.paths]);
  for (const { path } of walk(root)) {
    if (known.has(path)) continue;
    const isSwept = isRowsFile(path) || isArchivePath(path) || LIST_FOLDERS.some((folder) => path.startsWith(`${folder}/`));
    findings.add(`${path} is not part of this build${isSwept ? '' : '; builds do not remove it, so remove it yourself'}`);
  }
}

/** Returns the paths of all pages. Slow, because it renders the blocks again. */
async function pagesOf({ site, blocks, limits, store }: Verification, records: Records): Promise<Set<string>> {
  const paths = new Set<string>();
  const add = (path: string) => void paths.add(path);
  if (site.layout === 'archive') return paths;
  for await (const batch of renderBatches(store, site, blocks, limits, records, []))
    for (const block of batch.blocks) emitFiles(batch, block, site, { page: add, file: add, link: add });
  return paths;
}

/** Yields everything in the folder and its subfolders, except folders and the lock. Does not follow links. */
function* walk(root: string, folder = ''): Generator<{ readonly path: string; readonly isFile: boolean }> {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (path === LOCK) continue;
    if (entry.isDirectory()) yield* walk(root, path);
    else yield { path, isFile: entry.isFile() };
  }
}
