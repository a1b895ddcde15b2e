/** Converts system errors to BuildErrors with advice. */
import { BuildError, CliError, codeOf, hasTooManyFiles, messageOf } from '../errors.ts';

const ADVICE: Readonly<Record<string, string>> = {
  ENOSPC: 'The disk is full or out of inodes. Free some space, or choose another disk with --out and --cache. Then build again.',
  EDQUOT: 'The disk quota is used up. Free some space, or choose another disk with --out and --cache. Then build again.',
  EACCES: 'This user may not read or write there. Change the permissions, or choose another folder with --out.',
  EPERM: 'This user may not read or write there. Change the permissions, or choose another folder with --out.',
  EIO: 'The disk failed. Check it, or choose another disk with --out and --cache.',
  EROFS: 'The file system is read-only. Choose another folder with --out.',
  EMFILE: 'Too many files are open. Raise the limit (ulimit -n) and build again.',
  ENFILE: 'Too many files are open on this machine. Build again when it is less busy.',
};

/** Returns the BuildError for a failed file operation, with advice for common codes. */
export function writeFailure(error: { readonly message: string; readonly code?: string | undefined }): BuildError {
  // A thread that cannot start has a code of its own. Only its message says why.
  const advice = ADVICE[hasTooManyFiles(error.message) ? 'EMFILE' : (error.code ?? '')];
  return new BuildError(`writing the output failed: ${error.message}`, advice === undefined ? [] : [advice]);
}

/** Returns the BuildError for an output that cannot be read, with advice. */
export function readFailure(error: unknown): BuildError {
  return new BuildError(`the output cannot be read: ${messageOf(error)}`, [
    ADVICE[codeOf(error) ?? ''] ?? 'Change its permissions, or choose another folder with --out.',
  ]);
}

/** Runs file operations. Rejects with a BuildError instead of a system error. */
export async function explainFiles<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (codeOf(error) === undefined || error instanceof CliError) throw error;
    throw writeFailure({ message: messageOf(error), code: codeOf(error) });
  }
}
