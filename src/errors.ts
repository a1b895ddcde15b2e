/**
 * Errors that are for people. Each carries the exit code of the command; anything else that is thrown is a fault of this program.
 */
export const EXIT = { done: 0, usage: 1, badInput: 2, buildFailed: 3, verificationFailed: 4, interrupted: 130 } as const;
export type Exit = keyof typeof EXIT;

/** What the exit codes mean, as the help says it; docs/commands.md lists them too. */
export const EXIT_MEANINGS: Readonly<Record<Exit, string>> = {
  done: 'done',
  usage: 'the command line is wrong',
  badInput: 'the input, or the folder named, is not fit; nothing was changed',
  buildFailed: 'the work failed: disk, memory, rights, network, another one at work',
  verificationFailed: 'verification found that the output is not as it should be',
  interrupted: 'stopped by Ctrl-C or SIGTERM; a pull goes on when it is run again',
};

/** Ends a command with a message: what is wrong, where, and what to do. `details` are printed below it, a line each. */
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

/** The command line is wrong. Where its flags are explained is added by who runs the command. */
export class UsageError extends CliError {
  override readonly name = 'UsageError';
  constructor(message: string) {
    super(message, EXIT.usage);
  }
}

/** The input cannot be built from. Nothing was written. */
export class InputError extends CliError {
  override readonly name = 'InputError';
  constructor(message: string, details: readonly string[] = []) {
    super(message, EXIT.badInput, details);
  }
}

/** The input was good, and writing the output failed. */
export class BuildError extends CliError {
  override readonly name = 'BuildError';
  constructor(message: string, details: readonly string[] = []) {
    super(message, EXIT.buildFailed, details);
  }
}

/** Another build is at work on the same folder. */
export class LockedError extends BuildError {}

/** The message of anything that was thrown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The code of a system error (ENOSPC, EEXIST ...), undefined for any other. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
