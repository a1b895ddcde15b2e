/**
 * A file that cannot be read: by fault of the input, or of a machine that has nothing left to read it with.
 */
import { BuildError, type CliError, codeOf, InputError, messageOf } from '../errors.ts';

const MACHINE: Readonly<Record<string, string>> = {
  EMFILE: 'Too many files are open: raise the limit (ulimit -n) and build again.',
  ENFILE: 'Too many files are open on this machine. Build again when it is less busy.',
  ENOMEM: 'This machine has no memory left. Build again when it is less busy.',
};

/** The error for a system error that came of reading the file `name`. */
export function unreadable(name: string, error: unknown): CliError {
  const message = `${name} cannot be read: ${messageOf(error)}`;
  const advice = MACHINE[codeOf(error) ?? ''];
  return advice === undefined ? new InputError(message) : new BuildError(message, [advice]);
}
