/** Width, colours and status line of terminals. Pipes, files and dumb terminals (`TERM=dumb`) get plain text. */
import type { WriteStream } from 'node:tty';

/** Maximum width of text in columns, because longer lines are hard to read. */
const WIDEST = 100;

type Stream = Pick<WriteStream, 'isTTY'> & { readonly columns?: number };

/** True if the stream is a terminal that can overwrite a line. */
export const isTerminal = (stream: Stream): boolean => stream.isTTY === true && process.env['TERM'] !== 'dumb';

export const widthOf = (stream: Stream): number => Math.min(isTerminal(stream) && stream.columns ? stream.columns : WIDEST, WIDEST);

const STYLES = { bold: [1, 22], dim: [2, 22], red: [31, 39], yellow: [33, 39] } as const;
export type Paint = (style: keyof typeof STYLES, text: string) => string;

/** Returns a function that colours text. Changes nothing without a terminal, or with NO_COLOR (https://no-color.org). */
export function paintFor(stream: Stream): Paint {
  if (!isTerminal(stream) || (process.env['NO_COLOR'] ?? '') !== '') return (_style, text) => text;
  return (style, text) => `\x1b[${STYLES[style][0]}m${text}\x1b[${STYLES[style][1]}m`;
}

const CLEAR = '\r\x1b[K';
let isShown = false;

/** Status line of the terminal on standard error, of which there is only one. Clear it before writing anything else. */
export const statusLine = {
  /** Cuts the text at the terminal's width, because a wrapped line cannot be overwritten. */
  show(text: string): void {
    process.stderr.write(`${CLEAR}${text.slice(0, Math.max(1, (process.stderr.columns || 80) - 1))}`);
    isShown = true;
  },
  clear(): void {
    if (isShown) process.stderr.write(CLEAR);
    isShown = false;
  },
};
