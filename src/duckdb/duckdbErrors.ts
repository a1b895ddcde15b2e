/** Recognises DuckDB's errors by their messages, because they have no codes. Versions may change them: no other module compares them. */
import { CliError, codeOf, hasTooManyFiles, messageOf } from '../errors.ts';

/** Maximum number of characters of a message that are shown: some quote a complete line of a file. */
const MOST_SHOWN = 300;

export const firstLineOf = (error: unknown): string => messageOf(error).split('\n')[0] ?? '';

export const isDuckDBError = (error: unknown): boolean =>
  error instanceof Error && !(error instanceof CliError) && /^(?:[A-Za-z]+ )+Error: /.test(error.message);

export const isOutOfMemory = (message: string): boolean => /^Out of Memory Error/.test(message);

/** True if a disk failed to read, write or sync data. */
export const isDiskFailure = (error: unknown): boolean =>
  codeOf(error) === 'EIO' || /Input\/output error|fsync failed/i.test(messageOf(error));

/** True if a disk is full. If spilled data fills nine tenths of its free space, DuckDB reports too little memory to "offload" data. */
export const isDiskFull = (error: unknown): boolean =>
  codeOf(error) === 'ENOSPC' || (!isDiskFailure(error) && /No space left|ould not write|failed to offload/.test(messageOf(error)));

export const isLocked = (message: string): boolean => /could not set lock|conflicting lock|used by another process/i.test(message);

/** Returns the id of the process that has locked a database file; undefined if the message does not name it. */
export const lockOwner = (message: string): string | undefined => /PID (\d+)/.exec(message)?.[1];

export const isUnwritable = (message: string): boolean =>
  !hasTooManyFiles(message) &&
  /Permission denied|Read-only file system|Cannot open file|No space left|Could not (?:write|create)/i.test(message);

/** True if a database file is damaged. The message may come late: DuckDB checks a part of the file only when it reads this part. */
export const isDamage = (message: string): boolean =>
  /^(?:Serialization Error: |FATAL Error: |IO Error: Corrupt database file)/.test(message);

/** True if a file cannot be read or written. The message contains the file's path. */
export const isFileError = (message: string): boolean => /^IO Error: /.test(message);

/** True for DuckDB's errors about the content of an input file. Any other error may be a bug of this program. */
export const isAboutFile = (error: unknown): boolean =>
  !(error instanceof CliError) && /^(?:Invalid Input|IO|Invalid|Not implemented|Serialization) Error: /.test(messageOf(error));

/** Replaces control characters in text from a file, because they could garble a terminal. */
export const printable = (text: string): string => text.replace(/[\p{Cc}\ufffd]/gu, '?');

/** Returns an error's message on one line, without advice, quoted lines, and the path, because callers add the path. */
export function duckdbMessage(error: unknown): string {
  const [text = ''] = messageOf(error).split(/\n(?:Try|Possible|Hint|\s*$)/);
  const line = printable(
    text
      .replace(/^[A-Za-z ]+Error: /, '')
      // The quoted line may be the rest of the file, if a closing quotation mark is missing.
      .replace(/\nOriginal Line: [\s\S]*?(?=\n[A-Z]|$)/, '')
      .replace(/ in file "[^"]*",?/g, '')
      .replace(/\s+/g, ' ')
      .trim(),
  );
  return line.length > MOST_SHOWN ? `${line.slice(0, MOST_SHOWN)}… (${line.length} characters)` : line;
}
