/**
 * Runs a command: help, errors and exit codes are the same for all of them.
 */
import { CliError, codeOf, EXIT, messageOf, UsageError } from '../errors.ts';
import { type Command, Flags } from './flags.ts';
import { helpOf } from './help.ts';
import { createLog, type Log } from './log.ts';
import { paintFor, widthOf } from './terminal.ts';

/**
 * Parses the arguments and runs `main`; sets the process's exit code. An error that is not a CliError is a fault of this program or of the
 * machine: it is shown with its stack and counts as a failed build.
 */
export async function runCommand(
  command: Command,
  args: readonly string[],
  main: (flags: Flags, log: Log) => Promise<void>,
): Promise<void> {
  // Even an error about the flags themselves is written in the format that they ask for.
  const wantsJson = args.some((arg, i) => arg === '--log=json' || (arg === '--log' && args[i + 1] === 'json'));
  const log = createLog(wantsJson ? 'json' : 'text');
  outliveReaders(log);
  try {
    const flags = Flags.parse(command, args);
    if (flags.has('help')) process.stdout.write(helpOf(command, widthOf(process.stdout), paintFor(process.stdout)));
    else await main(flags, log);
  } catch (error) {
    if (error instanceof CliError) {
      const advice = error instanceof UsageError ? [`See ${command.call} --help.`] : [];
      log.error(error.message, [...error.details, ...advice], error.exitCode);
      process.exitCode = error.exitCode;
    } else {
      log.error(`unexpected: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`, [], EXIT.buildFailed);
      process.exitCode = EXIT.buildFailed;
    }
  }
}

/**
 * Without this, a reader that ends early (`| head -1`) would end the work in the middle, or a server at its next notice. It has read what it wanted, so
 * that is no error; a log that cannot be written to its disk is one, but only of the log.
 */
function outliveReaders(log: Log): void {
  process.stdout.on('error', (error) => {
    if (codeOf(error) === 'EPIPE') return;
    if (process.exitCode === undefined)
      log.error(`standard output cannot be written (${messageOf(error)}); the work goes on`, [], EXIT.buildFailed);
    process.exitCode ||= EXIT.buildFailed;
  });
  process.stderr.on('error', () => {});
}
