/**
 * The output folder as a whole: whose it is, whether it is whole, and who may work on it.
 */
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { BuildError, codeOf, InputError, messageOf } from '../errors.ts';
import { FINISHED, MANIFEST_PATH, MARKER_PATH } from '../pages/paths.ts';
import { FOLDERS } from '../pages/siteFiles.ts';
import type { Store } from '../store/duckdb.ts';
import { type DatabaseFile, lockFile, unlockFile } from '../store/lock.ts';
import { explainFiles, writeFailure } from '../write/failure.ts';
import { NotAFileError, readRegularFile } from '../write/regularFile.ts';
import { replaceFile, writeNew } from '../write/replace.ts';
import { syncFile, syncFolder } from '../write/sync.ts';

export const MARKER = MARKER_PATH;
const UNFINISHED = `${FINISHED}A build is at work here, or died. The next one makes the folder whole.\n`;

/** Held while a build writes; see attachDatabase for why it is a database. */
export const LOCK = `${MARKER}.lock`;

export interface OutputState {
  readonly kind: 'absent' | 'empty' | 'ours';
  /** SHA-256 of the manifest; undefined when there is none, or when the last build did not finish. */
  readonly manifest: string | undefined;
}

/** Looks at the output folder without touching it. Throws an InputError when it is someone else's. */
export function inspectOutput(root: string): OutputState {
  if (!existsSync(root)) return { kind: 'absent', manifest: undefined };
  if (!statSync(root).isDirectory()) throw new InputError(`the output ${root} is a file, not a folder`, ['Name a folder with --out.']);
  // A build that died before its first file leaves no more than these two.
  const entries = readdirSync(root).filter((name) => name !== LOCK && name !== `${MARKER}.tmp`);
  if (entries.length === 0) return { kind: 'empty', manifest: undefined };
  for (const folder of FOLDERS) {
    if (lstatSync(join(root, folder), { throwIfNoEntry: false })?.isSymbolicLink() === true) {
      throw new InputError(`${join(root, folder)} is a symbolic link; a build would write and remove files outside the output folder`, [
        'Replace it by a folder, or name another output folder with --out.',
      ]);
    }
  }
  const manifest = readIfThere(join(root, MANIFEST_PATH));
  const marker = readIfThere(join(root, MARKER));
  if (marker === undefined && !isOurManifest(manifest)) {
    throw new InputError(`the output folder ${root} holds files that this program did not make, so it is left alone`, [
      'Name another folder with --out, or empty this one yourself.',
    ]);
  }
  const isFinished = marker?.toString() === FINISHED && manifest !== undefined;
  return { kind: 'ours', manifest: isFinished ? digestOf(manifest) : undefined };
}

/** How a manifest is known again. */
export const digestOf = (manifest: Uint8Array): string => createHash('sha256').update(manifest).digest('hex');

/** The content of a file; undefined when there is none, or something else in its place. Throws a BuildError when it cannot be read. */
function readIfThere(path: string): Buffer | undefined {
  try {
    return readRegularFile(path);
  } catch (error) {
    if (error instanceof NotAFileError || ['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return undefined;
    throw new BuildError(`the output cannot be read: ${messageOf(error)}`, ['Change its rights, or name another folder.']);
  }
}

function isOurManifest(bytes: Buffer | undefined): boolean {
  try {
    const manifest: unknown = JSON.parse(bytes?.toString() ?? '');
    return typeof manifest === 'object' && manifest !== null && 'generator' in manifest && manifest.generator === 'rune-activity-mirror';
  } catch {
    return false;
  }
}

/**
 * Makes the folder, locks it, and marks it as being worked on. `seen` is what it was when this build was planned. Throws a BuildError when
 * that is not possible, or another build is at work, or has been in the meantime.
 */
export async function claimOutput(root: string, seen: OutputState, store: Store): Promise<void> {
  try {
    mkdirSync(root, { recursive: true });
  } catch (error) {
    throw writeFailure({ message: messageOf(error), code: codeOf(error) });
  }
  await explainFiles(() => lockFile(store, lockOf(root)));
  const now = inspectOutput(root);
  if ((now.kind === 'ours') !== (seen.kind === 'ours') || now.manifest !== seen.manifest) {
    await releaseOutput(root, store);
    throw new BuildError(`another build changed the output folder ${root} while this one read its input`, ['Build again.']);
  }
  try {
    mark(root, UNFINISHED);
  } catch (error) {
    await releaseOutput(root, store).catch(() => undefined);
    throw error;
  }
}

const lockOf = (root: string): DatabaseFile => ({
  path: join(root, LOCK),
  name: 'output_lock',
  what: `the output folder ${root}`,
  flag: '--out',
});

/** Marks the folder as complete. All that a power cut must not undo is on the disk. */
export const finishOutput = (root: string): void => mark(root, FINISHED);

/** Unlocks the folder. Throws a BuildError when the lock cannot be removed. */
export const releaseOutput = (root: string, store: Store): Promise<void> => explainFiles(() => unlockFile(store, lockOf(root)));

/** Replaces the marker, and waits until it is on the disk: an unfinished build is known as one also after a power cut. */
function mark(root: string, text: string): void {
  try {
    replaceFile(join(root, MARKER), (temporary) => {
      writeNew(temporary, Buffer.from(text));
      syncFile(temporary);
    });
    syncFolder(root);
  } catch (error) {
    throw writeFailure({ message: messageOf(error), code: codeOf(error) });
  }
}
