/** Checks that this program made the output folder, locks it, and marks and tells whether its last build finished. */
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { attempt } from '../attempt.ts';
import type { Log } from '../cli/log.ts';
import { explainFiles, readFailure } from '../disk/fileErrors.ts';
import { NotAFileError, readRegularFile } from '../disk/regularFile.ts';
import { replaceDurably } from '../disk/replaceFile.ts';
import { type DatabaseFile, lockFile, unlockFile } from '../duckdb/lockDatabase.ts';
import type { Store } from '../duckdb/store.ts';
import { BuildError, EXIT, InputError, isAbsence } from '../errors.ts';
import { ARCHIVE_FOLDER, FINISHED, LIST_FOLDERS, MANIFEST_PATH, MARKER_PATH, ROWS_FOLDER } from '../pages/filePaths.ts';

export const MARKER = MARKER_PATH;
// The marker of an unfinished build has a second line, because hosting/upload.sh recognises it by the number of lines.
const UNFINISHED = `${FINISHED}A build is running here, or it did not finish. The next build completes the folder.\n`;

/** Lock file of a running build. It is a DuckDB database, whose lock the kernel removes when the process ends. */
export const LOCK = `${MARKER}.lock`;

export interface OutputState {
  /** True if this program made the folder. False if it is absent or empty. */
  readonly isOurs: boolean;
  /** SHA-256 of the manifest. Undefined without a manifest and after an unfinished build. */
  readonly manifest: string | undefined;
  /** True if the folder has the manifest of a mirror with data other than the sample. */
  readonly hasData: boolean;
  readonly dialect?: unknown;
}

const UNUSED: OutputState = { isOurs: false, manifest: undefined, hasData: false };

/** The folders of a build whose names do not depend on the build's data. */
export const FOLDERS: readonly string[] = ['docs', 'runes', 'runes/v1', ...LIST_FOLDERS, ARCHIVE_FOLDER, ROWS_FOLDER];

/** Inspects the output folder without changing it. Throws an InputError if this program did not make it. */
export function inspectOutput(root: string): OutputState {
  if (!existsSync(root)) return UNUSED;
  if (!statSync(root).isDirectory()) throw new InputError(`the output ${root} is a file, not a folder`, ['Choose a folder with --out.']);
  // A build that was killed before it wrote its marker leaves only its lock and a temporary marker: treated as empty.
  const entries = namesIn(root).filter((name) => name !== LOCK && name !== `${MARKER}.tmp`);
  if (entries.length === 0) return UNUSED;
  for (const folder of FOLDERS)
    if (lstatSync(join(root, folder), { throwIfNoEntry: false })?.isSymbolicLink() === true)
      throw new InputError(`${join(root, folder)} is a symbolic link; a build would write and remove files outside the output folder`, [
        'Replace it with a folder, or choose another output folder with --out.',
      ]);
  const manifest = readIfThere(join(root, MANIFEST_PATH));
  const facts = factsOf(manifest);
  const marker = readIfThere(join(root, MARKER));
  if (marker === undefined && facts === undefined)
    throw new InputError(`the output folder ${root} contains files that this program did not make; nothing was changed`, [
      'Choose another folder with --out, or empty this one yourself.',
    ]);
  const finished = manifest !== undefined && marker?.toString() === FINISHED ? digestOf(manifest) : undefined;
  return { isOurs: true, manifest: finished, hasData: facts?.isSample === false, dialect: facts?.dialect };
}

export const digestOf = (manifest: Uint8Array): string => createHash('sha256').update(manifest).digest('hex');

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    throw readFailure(error);
  }
}

/** Reads a file. Returns undefined if it does not exist or is not a file. Throws a BuildError if it cannot be read. */
function readIfThere(path: string): Buffer | undefined {
  try {
    return readRegularFile(path);
  } catch (error) {
    if (error instanceof NotAFileError || isAbsence(error)) return undefined;
    throw readFailure(error);
  }
}

/** Returns the dialect of a manifest, and whether its data is the sample. Undefined unless this program made the manifest. */
function factsOf(bytes: Buffer | undefined): { readonly isSample: boolean; readonly dialect: unknown } | undefined {
  const manifest: unknown = attempt(() => JSON.parse(bytes?.toString() ?? ''));
  if (typeof manifest !== 'object' || manifest === null) return undefined;
  if (!('generator' in manifest) || manifest.generator !== 'rune-activity-mirror') return undefined;
  return { isSample: 'sample' in manifest && manifest.sample === true, dialect: 'dialect' in manifest ? manifest.dialect : undefined };
}

/**
 * Creates the output folder, locks it and marks it as unfinished. `seen` is the state of the folder when this build began. Rejects with a
 * BuildError if a step fails, if another build is using the folder, or if another build has changed the folder since this build began.
 */
export async function claimOutput(root: string, seen: OutputState, store: Store): Promise<void> {
  await explainFiles(async () => {
    mkdirSync(root, { recursive: true });
    await lockFile(store, lockOf(root));
  });
  try {
    const now = inspectOutput(root);
    if (now.isOurs !== seen.isOurs || now.manifest !== seen.manifest) {
      throw new BuildError(`another build changed the output folder ${root} while this one read its input`, ['Build again.']);
    }
    // Without its sync, an unfinished build could look finished after a power cut.
    await explainFiles(async () => replaceDurably(join(root, MARKER), UNFINISHED));
  } catch (error) {
    await releaseOutput(root, store).catch(() => undefined);
    throw error;
  }
}

const lockOf = (root: string): DatabaseFile => ({ path: join(root, LOCK), name: 'output_lock', what: `the output folder ${root}` });

/** Marks the output as finished. The caller must sync all files first, because a power cut could lose unsynced ones. */
export const finishOutput = (root: string): void => replaceDurably(join(root, MARKER), FINISHED);

/** Unlocks the folder. Rejects with a BuildError if the lock cannot be removed. */
export const releaseOutput = (root: string, store: Store): Promise<void> => explainFiles(() => unlockFile(store, lockOf(root)));

/** Ends this process at Ctrl-C or SIGTERM, with a message. This is safe, because the next build completes an unfinished output. */
export function explainInterruption(out: string, log: Log): void {
  const stop = () => {
    // A build writes the marker before any other file. So without a marker, no build has changed the output.
    const isUnfinished = attempt(() => readRegularFile(join(out, MARKER)).toString() !== FINISHED) === true;
    const [state, advice] = isUnfinished
      ? [`${out} is not finished`, 'Run the same command again: it completes the build and writes only what is missing.']
      : [`${out} is unchanged`, 'Run the same command again.'];
    log.error(`stopped; ${state}`, [advice], EXIT.interrupted);
    process.exit(EXIT.interrupted);
  };
  process.once('SIGINT', stop).once('SIGTERM', stop);
}
