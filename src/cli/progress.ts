/**
 * How far a long command is, how fast, and how long it will take: one line that is written over on a terminal, now and then a line elsewhere.
 */
import type { Log } from './log.ts';

const TERMINAL_MS = 200;
const LINES_MS = 10_000;

export class Progress {
  readonly #log: Log;
  readonly #isTerminal: boolean;
  readonly #start = performance.now();
  #last = this.#start;
  #isShown = false;

  constructor(log: Log, isTerminal: boolean) {
    this.#log = log;
    this.#isTerminal = isTerminal;
  }

  /** Says that `done` of `all` things are done, when it is time to. */
  show(done: number, all: number, what: string): void {
    const now = performance.now();
    if (now - this.#last < (this.#isTerminal ? TERMINAL_MS : LINES_MS)) return;
    this.#last = now;
    const rate = done / ((now - this.#start) / 1000);
    const pace = done === 0 ? '' : `, ${shorten(rate)}/s, ${Math.ceil((all - done) / rate)} s left`;
    const message = `${done.toLocaleString('en-US')} of ${all.toLocaleString('en-US')} ${what}${pace}`;
    if (this.#isTerminal) process.stderr.write(`\r\x1b[K${message}`);
    else this.#log.info('progress', message, { done, all });
    this.#isShown = true;
  }

  /** Clears the line. */
  end(): void {
    if (this.#isTerminal && this.#isShown) process.stderr.write('\r\x1b[K');
  }
}

/** Whole numbers from ten on. */
const shorten = (rate: number): string => rate.toLocaleString('en-US', { maximumFractionDigits: rate < 10 ? 1 : 0 });
