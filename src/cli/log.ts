/**
 * What a command says while it works: lines for people, or JSON lines for programs. Notices and errors go to standard error.
 */
import { paintFor, statusLine } from './terminal.ts';

export type LogFormat = 'text' | 'json';

/** A line of a summary: what it is about, and the figures in words. */
export type SummaryRow = readonly [label: string, text: string];

export interface Log {
  /** Something that happened, with its figures: in text the message alone, in JSON the figures too. */
  info(event: string, message: string, figures?: Readonly<Record<string, unknown>>): void;
  /** A table below the last message, for people only: the figures of that message say the same to programs. */
  summary(rows: readonly SummaryRow[]): void;
  /** Something that the user should know though it is no error. */
  notice(message: string): void;
  error(message: string, details: readonly string[], exitCode: number): void;
}

export function createLog(format: LogFormat): Log {
  const json = (stream: NodeJS.WriteStream, entry: object) => stream.write(`${JSON.stringify(entry)}\n`);
  if (format === 'json') {
    return {
      info: (event, message, figures) => json(process.stdout, { level: 'info', event, message, ...figures }),
      summary: () => {},
      notice: (message) => json(process.stderr, { level: 'notice', event: 'notice', message }),
      error: (message, details, exitCode) => json(process.stderr, { level: 'error', event: 'error', message, details, exitCode }),
    };
  }
  const [paint, paintError] = [paintFor(process.stdout), paintFor(process.stderr)];
  const say = (stream: NodeJS.WriteStream, lines: readonly string[]) => {
    // Both streams may be the terminal that shows how far the command is.
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
    error: (message, details) => say(process.stderr, [`${paintError('red', 'Error:')} ${message}`, ...details.map((line) => `  ${line}`)]),
  };
}

/** A number of things: `1 file`, `2,000 files`. */
export const count = (n: number, what: string): string => `${n.toLocaleString('en-US')} ${what}${n === 1 ? '' : 's'}`;
