/** Errors for files that cannot be read. */
import { BuildError, type CliError, codeOf, InputError, messageOf } from '../errors.ts';

const MACHINE: Readonly<Record<string, string>> = {
  EIO: 'The disk failed to read it. Check the disk.',
  EMFILE: 'Too many files are open: raise the limit (ulimit -n) and build again.',
  ENFILE: 'Too many files are open on this machine. Build again when it is less busy.',
  ENOMEM: 'This machine has no memory left. Build again when it is less busy.',
};

/** Returns an InputError, or a BuildError if the disk fails, or if the machine lacks memory or file handles. */
export function unreadable(name: string, error: unknown): CliError {
  const message = `${name} cannot be read: ${messageOf(error)}`;
  const advice = MACHINE[codeOf(error) ?? ''];
  return advice === undefined ? new InputError(message) : new BuildError(message, [advice]);
}

/** Reads the file `name`, and throws its system errors as `unreadable`. */
export function readable<Result>(name: string, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    throw unreadable(name, error);
  }
}
