/**
 * What a command says while it works: lines for people, or JSON lines for programs. Notices and errors go to standard error.
 */
export type LogFormat = 'text' | 'json';

export interface Log {
  /** Something that happened, with its figures: in text the message alone, in JSON the figures too. */
  info(event: string, message: string, figures?: Readonly<Record<string, unknown>>): void;
  /** Something that the user should know though it is no error. */
  notice(message: string): void;
  error(message: string, details: readonly string[], exitCode: number): void;
}

export function createLog(format: LogFormat): Log {
  const json = (stream: NodeJS.WriteStream, entry: object) => stream.write(`${JSON.stringify(entry)}\n`);
  if (format === 'json') {
    return {
      info: (event, message, figures) => json(process.stdout, { level: 'info', event, message, ...figures }),
      notice: (message) => json(process.stderr, { level: 'notice', event: 'notice', message }),
      error: (message, details, exitCode) => json(process.stderr, { level: 'error', event: 'error', message, details, exitCode }),
    };
  }
  return {
    info: (_event, message) => process.stdout.write(`${message}\n`),
    notice: (message) => process.stderr.write(`Note: ${message}\n`),
    error: (message, details) => process.stderr.write([`Error: ${message}`, ...details.map((line) => `  ${line}`), ''].join('\n')),
  };
}

/** A number of things: `1 file`, `2,000 files`. */
export const count = (n: number, what: string): string => `${n.toLocaleString('en-US')} ${what}${n === 1 ? '' : 's'}`;
