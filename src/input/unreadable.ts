/** Errors of files that cannot be read: bad input, or a machine without free memory or file handles. */
import { BuildError, type CliError, codeOf, InputError, messageOf } from '../errors.ts';

const MACHINE: Readonly<Record<string, string>> = {
  EMFILE: 'Too many files are open: raise the limit (ulimit -n) and build again.',
  ENFILE: 'Too many files are open on this machine. Build again when it is less busy.',
  ENOMEM: 'This machine has no memory left. Build again when it is less busy.',
};

/** Returns the error to throw after a system error while reading the file `name`. */
export function unreadable(name: string, error: unknown): CliError {
  const message = `${name} cannot be read: ${messageOf(error)}`;
  const advice = MACHINE[codeOf(error) ?? ''];
  return advice === undefined ? new InputError(message) : new BuildError(message, [advice]);
}
