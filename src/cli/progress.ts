/**
 * How far a long command is, how fast, and how long it will take: one line that is written over on a terminal, now and then a line elsewhere.
 */
import type { Flags } from './flags.ts';
import type { Log } from './log.ts';
import { isTerminal, statusLine } from './terminal.ts';

const TERMINAL_MS = 200;
const LINES_MS = 10_000;
/** The share that has to be done before it is said how long the rest takes: what a stage begins with is no measure of it. */
const LEAST_SHARE = 0.01;

/** How far a stage is. */
export interface Measure {
  readonly done: number;
  /** Undefined when nobody knows. */
  readonly all?: number | undefined;
  /** What is counted, in the plural. */
  readonly what: string;
}

export class Progress {
  readonly #log: Log;
  readonly #isTerminal: boolean;
  readonly #everyMs: number;
  #stage: string | undefined;
  #start = performance.now();
  #last = this.#start;
  #timer: NodeJS.Timeout | undefined;

  constructor(log: Log, isTerminal: boolean) {
    this.#log = log;
    this.#isTerminal = isTerminal;
    this.#everyMs = isTerminal ? TERMINAL_MS : LINES_MS;
  }

  /** As the flags of a command that has `--log` ask for it. */
  static of(flags: Flags, log: Log): Progress {
    return new Progress(log, flags.choice('log', ['text', 'json']) === 'text' && isTerminal(process.stderr));
  }

  /** Begins a stage: rates and times are counted from here. */
  begin(stage?: string): void {
    this.end();
    this.#stage = stage;
    this.#start = performance.now();
    this.#last = this.#start;
  }

  /**
   * Begins a stage whose measure is asked for when it is time to show it, up to the end of the stage: so the work itself does nothing for it. A
   * text says what is done while nothing can be counted. Only for work that lets timers run.
   */
  watch(stage: string, measure: () => Measure | string): void {
    this.begin(stage);
    this.#timer = setInterval(() => this.#say(measure()), this.#everyMs);
    this.#timer.unref();
  }

  /** Says that `done` of `all` things are done, when it is time to. */
  show(done: number, all: number, what: string): void {
    if (performance.now() - this.#last >= this.#everyMs) this.#say({ done, all, what });
  }

  /** Ends the stage, and clears the line. */
  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (this.#isTerminal) statusLine.clear();
  }

  #say(measure: Measure | string): void {
    this.#last = performance.now();
    const seconds = (this.#last - this.#start) / 1000;
    const stage = this.#stage === undefined ? '' : `${this.#stage}: `;
    const figures = typeof measure === 'string' ? { doing: measure, seconds } : withPace(measure, seconds);
    const message = `${stage}${'doing' in figures ? `${figures.doing}, ${spellSeconds(seconds)}` : describe(figures)}`;
    if (this.#isTerminal) statusLine.show(message);
    else this.#log.info('progress', message, { ...(this.#stage === undefined ? {} : { stage: this.#stage }), ...figures });
  }
}

interface Paced extends Measure {
  /** Things a second, since the stage began. */
  readonly rate?: number;
  readonly seconds_left?: number;
}

function withPace(measure: Measure, seconds: number): Paced {
  const { done, all } = measure;
  if (done === 0 || seconds === 0) return measure;
  const rate = done / seconds;
  return { ...measure, rate, ...(all === undefined || done < all * LEAST_SHARE ? {} : { seconds_left: Math.ceil((all - done) / rate) }) };
}

function describe({ done, all, what, rate, seconds_left }: Paced): string {
  const count = all === undefined ? shorten(done) : `${shorten(done)} of ${shorten(all)}`;
  const pace = rate === undefined ? '' : `, ${shorten(rate)}/s`;
  return `${count} ${what}${pace}${seconds_left === undefined ? '' : `, ${spellSeconds(seconds_left)} left`}`;
}

/** Whole numbers from ten on. */
const shorten = (number: number): string => number.toLocaleString('en-US', { maximumFractionDigits: number < 10 ? 1 : 0 });

/** `90 s`, `12 min`, `3 h`: as exact as a guess is. */
function spellSeconds(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  const minutes = seconds / 60;
  return minutes < 120 ? `${Math.round(minutes)} min` : `${Math.round(minutes / 60)} h`;
}
