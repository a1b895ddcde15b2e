/** Output of a command: text for people, or JSON lines for programs. Notices and errors go to standard error. */
import { paintFor, statusLine } from './terminal.ts';

export type SummaryRow = readonly [label: string, text: string];

export interface Log {
  /** Reports an event. Text output has only the message. JSON output also has the fields. */
  info(event: string, message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** Prints a table below the last message. JSON output omits it: the fields of `info` have the same numbers. */
  summary(rows: readonly SummaryRow[]): void;
  /** Reports something that the user should know but that is not an error. */
  notice(message: string): void;
  /** Reports a failure that a person should see, although the command goes on and tries again. */
  failure(message: string): void;
  /** Reports the error that ends the command. */
  error(message: string, details: readonly string[], exitCode: number): void;
}

export function createLog(format: 'text' | 'json'): Log {
  const json = (stream: NodeJS.WriteStream, level: string, event: string, message: string, fields: object = {}) =>
    stream.write(`${JSON.stringify({ time: new Date().toISOString(), level, event, message, ...fields })}\n`);
  if (format === 'json')
    return {
      info: (event, message, fields) => json(process.stdout, 'info', event, message, fields),
      summary: () => {},
      notice: (message) => json(process.stderr, 'notice', 'notice', message),
      failure: (message) => json(process.stderr, 'error', 'failed', message),
      error: (message, details, exitCode) => json(process.stderr, 'error', 'error', message, { details, exit_code: exitCode }),
    };
  const [paint, paintError] = [paintFor(process.stdout), paintFor(process.stderr)];
  const say = (stream: NodeJS.WriteStream, lines: readonly string[]) => {
    // If the stream is the terminal with the status line, the text would be written into that line.
    statusLine.clear();
    stream.write(lines.map((line) => `${line}\n`).join(''));
  };
  return {
    info: (_event, message) => say(process.stdout, [message]),
    summary: (rows) => {
      const width = rows.reduce((most, [label]) => Math.max(most, label.length), 0);
      say(
        process.stdout,
        rows.map(([label, text]) => `  ${paint('dim', label.padEnd(width))}  ${text}`),
      );
    },
    notice: (message) => say(process.stderr, [`${paintError('yellow', 'Note:')} ${message}`]),
    failure: (message) => say(process.stderr, [`${paintError('red', 'Error:')} ${message}`]),
    error: (message, details) => say(process.stderr, [`${paintError('red', 'Error:')} ${message}`, ...details.map((line) => `  ${line}`)]),
  };
}

/** Formats a count with a noun: `1 file`, `2,000 files`. */
export const count = (n: number, what: string): string => `${n.toLocaleString('en-US')} ${what}${n === 1 ? '' : 's'}`;
