/**
 * What a terminal adds: its width, colours, and a line that is written over. Pipes, files and terminals that know no control sequences
 * (`TERM=dumb`) get none of it.
 */
import type { WriteStream } from 'node:tty';

/** Lines longer than this are hard to read, however wide the terminal is. */
const WIDEST = 100;

type Stream = Pick<WriteStream, 'isTTY'> & { readonly columns?: number };

/** Whether lines can be written over. */
export const isTerminal = (stream: Stream): boolean => stream.isTTY === true && process.env['TERM'] !== 'dumb';

/** How wide a text may be, in columns. */
export const widthOf = (stream: Stream): number => Math.min(isTerminal(stream) && stream.columns ? stream.columns : WIDEST, WIDEST);

const STYLES = { bold: [1, 22], dim: [2, 22], red: [31, 39], yellow: [33, 39] } as const;
export type Paint = (style: keyof typeof STYLES, text: string) => string;

/** Colours for what is written to a stream: none unless it is a terminal, and none when NO_COLOR has a value (https://no-color.org). */
export function paintFor(stream: Stream): Paint {
  if (!isTerminal(stream) || (process.env['NO_COLOR'] ?? '') !== '') return (_style, text) => text;
  return (style, text) => `\x1b[${STYLES[style][0]}m${text}\x1b[${STYLES[style][1]}m`;
}

const CLEAR = '\r\x1b[K';
let isShown = false;

/**
 * The last line of the terminal that standard error is, for what changes all the time. There is one of it, as there is one terminal: whoever
 * writes something else there clears it first.
 */
export const statusLine = {
  /** Shows this text instead of what was shown, cut where the terminal ends: a line that wrapped could not be written over. */
  show(text: string): void {
    process.stderr.write(`${CLEAR}${text.slice(0, Math.max(1, (process.stderr.columns || 80) - 1))}`);
    isShown = true;
  },
  clear(): void {
    if (isShown) process.stderr.write(CLEAR);
    isShown = false;
  },
};
