/** Exit codes, and the errors that commands show to users, each with an exit code. Any other error is a bug. */
export const EXIT = { done: 0, usage: 1, badInput: 2, buildFailed: 3, verificationFailed: 4, interrupted: 130 } as const;
export type Exit = keyof typeof EXIT;

/** Meanings of the exit codes in `--help`. docs/run-a-mirror.md lists them too. */
export const EXIT_MEANINGS: Readonly<Record<Exit, string>> = {
  done: 'done',
  usage: 'invalid command line',
  badInput: 'invalid input or folder; nothing was changed',
  buildFailed: 'the work failed: disk, memory, permissions, network, or a folder already in use',
  verificationFailed: 'verification found errors in the output',
  interrupted: 'stopped by Ctrl-C or SIGTERM; run the same command again to continue',
};

/** Ends a command with a message: what is wrong, where, and what to do. Each of the `details` gets its own line. */
export class CliError extends Error {
  override readonly name: string = 'CliError';
  constructor(
    message: string,
    readonly exitCode: number,
    readonly details: readonly string[] = [],
  ) {
    super(message);
  }
}

/** Thrown for an invalid command line. The command runner adds a hint to use `--help`. */
export class UsageError extends CliError {
  override readonly name = 'UsageError';
  constructor(message: string) {
    super(message, EXIT.usage);
  }
}

/** Thrown for invalid input, before anything is written. */
export class InputError extends CliError {
  override readonly name = 'InputError';
  constructor(message: string, details: readonly string[] = []) {
    super(message, EXIT.badInput, details);
  }
}

/** Thrown when the work fails although the input is valid, for example because the disk is full. */
export class BuildError extends CliError {
  override readonly name = 'BuildError';
  constructor(message: string, details: readonly string[] = []) {
    super(message, EXIT.buildFailed, details);
  }
}

/** Thrown if another process is using the same folder. */
export class LockedError extends BuildError {}

/** Returns the message of a caught value, which need not be an Error. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Returns the code of a system error, such as ENOSPC; undefined for any other error. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;

export const RAISE_OPEN_FILES = 'Raise the limit of open files (ulimit -n), and run the same command again.';

/** True if an operation failed at the limit of open files. The errors of DuckDB and of the dynamic linker have no code. */
export const hasTooManyFiles = (message: string): boolean => /EMFILE|Too many open files/.test(message);

export const isAbsence = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '');

/** Calls `list`, which reads a folder or a file. Returns an empty list if it does not exist. */
export function emptyIfMissing<Entry>(list: () => Entry[]): Entry[] {
  try {
    return list();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  }
}
