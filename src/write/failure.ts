/**
 * Failed file operations of a build as errors for people.
 */
import { BuildError, CliError, codeOf, messageOf } from '../errors.ts';

const ADVICE: Readonly<Record<string, string>> = {
  ENOSPC: 'The disk is full, or out of inodes: free some, or name folders elsewhere with --out and --cache. Then build again.',
  EDQUOT: 'The disk quota is used up: free some, or name folders elsewhere with --out and --cache. Then build again.',
  EACCES: 'This user may not write there: change the rights, or build into another folder with --out.',
  EPERM: 'This user may not write there: change the rights, or build into another folder with --out.',
  EROFS: 'The file system is read-only: build into another folder with --out.',
  EMFILE: 'Too many files are open: raise the limit (ulimit -n) and build again.',
  ENFILE: 'Too many files are open on this machine. Build again when it is less busy.',
};

/** A failed file operation as an error for people. What was written before it stays; the next build goes on from there. */
export function writeFailure(error: { readonly message: string; readonly code?: string | undefined }): BuildError {
  const advice = ADVICE[error.code ?? ''];
  return new BuildError(`writing the output failed: ${error.message}`, advice === undefined ? [] : [advice]);
}

/** Runs file operations; a system error becomes one for people. */
export async function explainFiles<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (codeOf(error) === undefined || error instanceof CliError) throw error;
    throw writeFailure({ message: messageOf(error), code: codeOf(error) });
  }
}
