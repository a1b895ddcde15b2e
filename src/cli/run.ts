/** Runs a command. Handles help, errors and exit codes in the same way for all commands. */
import { CliError, codeOf, EXIT, hasTooManyFiles, messageOf, RAISE_OPEN_FILES, UsageError } from '../errors.ts';
import { type Command, Flags } from './flags.ts';
import { helpOf } from './help.ts';
import { createLog, type Log } from './log.ts';
import { MEMORY_LIMIT, memoryLimitOf, watchMemory } from './memoryLimit.ts';
import { checkNpmFlags, endWithNpm } from './npm.ts';
import { readSettings, settingsFileOf, withSettings } from './settings.ts';
import { paintFor, widthOf } from './terminal.ts';

/** Parses the arguments, runs `main` and sets the exit code. Prints the stack of an error that is not a CliError: a bug. */
export async function runCommand(
  command: Command,
  args: readonly string[],
  main: (flags: Flags, log: Log) => Promise<void>,
): Promise<void> {
  // Reads --log before parsing, so that errors about flags also have the requested format.
  const wantsJson = args.some((arg, i) => arg === '--log=json' || (arg === '--log' && args[i + 1] === 'json'));
  let log = createLog(wantsJson ? 'json' : 'text');
  ignoreClosedOutput(() => log);
  const stopLooking = endWithNpm();
  let stopWatching = (): void => {};
  let settings: string | undefined;
  const report = (error: unknown): void => {
    process.exitCode = error instanceof CliError ? error.exitCode : EXIT.buildFailed;
    if (error instanceof CliError) {
      const source = settings === undefined ? [] : [`Flags that are not given come from ${settings}.`];
      const advice = error instanceof UsageError ? [...source, `See ${command.call} --help.`] : [];
      // The file that cannot be opened is not the cause, so its own advice would mislead.
      const details = hasTooManyFiles(error.message) ? [RAISE_OPEN_FILES] : error.details;
      log.error(error.message, [...details, ...advice], error.exitCode);
    } else if (hasTooManyFiles(messageOf(error))) {
      log.error(`too many files are open: ${messageOf(error)}`, [RAISE_OPEN_FILES], EXIT.buildFailed);
    } else {
      log.error(`unexpected: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`, [], EXIT.buildFailed);
    }
  };
  // Node would end with code 1 after an error that nothing can catch, such as one in the loader of TypeScript.
  process.once('uncaughtException', (error) => {
    report(error);
    process.exit();
  });
  try {
    checkNpmFlags(command);
    let flags = Flags.parse(command, args);
    const file = flags.has('help') || command.section === undefined ? undefined : settingsFileOf(flags);
    flags = withSettings(flags, command, readSettings(file, command));
    settings = file;
    if (flags.has('help')) process.stdout.write(helpOf(command, widthOf(process.stdout), paintFor(process.stdout)));
    else {
      log = createLog(flags.choice('log', ['text', 'json']));
      if (command.flags.some(({ name }) => name === MEMORY_LIMIT.name)) stopWatching = watchMemory(memoryLimitOf(flags), log);
      await main(flags, log);
    }
  } catch (error) {
    report(error);
  } finally {
    stopWatching();
    stopLooking();
  }
}

/** Keeps the command running if standard output cannot be written: an error, unless its reader ended (`| head -1`). */
function ignoreClosedOutput(log: () => Log): void {
  process.stdout.on('error', (error) => {
    if (codeOf(error) === 'EPIPE') return;
    if (process.exitCode === undefined)
      log().error(`cannot write to standard output (${messageOf(error)}); the command continues`, [], EXIT.buildFailed);
    process.exitCode ||= EXIT.buildFailed;
  });
  process.stderr.on('error', () => {});
}
