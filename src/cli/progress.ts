/** Shows the progress of a long command. On a terminal, updates one line. Elsewhere, prints a new line every ten seconds. */
import type { Flags } from './flags.ts';
import type { Log } from './log.ts';
import { isTerminal, statusLine } from './terminal.ts';

const [TERMINAL_MS, LINES_MS] = [200, 10_000];
/** Share of finished work from which the time left is shown. Before that, the rate says little about the rest. */
const LEAST_SHARE = 0.01;

export interface Measure {
  readonly done: number;
  readonly all?: number | undefined;
  /** Plural noun for the counted things. */
  readonly what: string;
}

export class Progress {
  readonly #everyMs: number;
  #stage: string | undefined;
  #start = performance.now();
  #last = this.#start;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly log: Log,
    private readonly isTerminal: boolean,
  ) {
    this.#everyMs = isTerminal ? TERMINAL_MS : LINES_MS;
  }

  /** Creates the progress of a command that has the flag `--log`. */
  static of(flags: Flags, log: Log): Progress {
    return new Progress(log, flags.one('log') !== 'json' && isTerminal(process.stderr));
  }

  /** Begins a stage. Rates and times start here. */
  begin(stage?: string): void {
    this.end();
    this.#stage = stage;
    this.#start = performance.now();
    this.#last = this.#start;
  }

  /** Begins a stage whose updates come from a timer: `measure` returns a text as long as nothing can be counted. */
  watch(stage: string, measure: () => Measure | string): void {
    this.begin(stage);
    this.#timer = setInterval(() => this.#say(measure()), this.#everyMs);
    this.#timer.unref();
  }

  /** Shows that `done` of `all` things are finished, unless the last update was less than `#everyMs` ago. */
  show(done: number, all: number, what: string): void {
    if (performance.now() - this.#last >= this.#everyMs) this.#say({ done, all, what });
  }

  /** Ends the stage and clears the line. */
  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (this.isTerminal) statusLine.clear();
  }

  #say(measure: Measure | string): void {
    this.#last = performance.now();
    const seconds = (this.#last - this.#start) / 1000;
    const stage = this.#stage === undefined ? '' : `${this.#stage}: `;
    const fields = typeof measure === 'string' ? { doing: measure, seconds } : withPace(measure, seconds);
    const message = `${stage}${'doing' in fields ? `${fields.doing}, ${spellSeconds(seconds)}` : spellPace(fields)}`;
    if (this.isTerminal) statusLine.show(typeof measure === 'string' ? message : `${barOf(measure)}${message}`);
    else this.log.info('progress', message, { ...(this.#stage === undefined ? {} : { stage: this.#stage }), ...fields });
  }
}

const BAR = 20;

/** Draws the share of finished work, such as `[=====               ]  25 %  `. Empty if the total is unknown. */
function barOf({ done, all }: Measure): string {
  if (all === undefined || all === 0) return '';
  const share = Math.min(1, done / all);
  return `[${'='.repeat(Math.floor(share * BAR)).padEnd(BAR)}] ${String(Math.floor(share * 100)).padStart(3)} %  `;
}

interface Paced extends Measure {
  /** Things per second since the stage began. */
  readonly rate?: number;
  readonly seconds_left?: number;
}

function withPace(measure: Measure, seconds: number): Paced {
  const { done, all } = measure;
  if (done === 0 || seconds === 0) return measure;
  const rate = done / seconds;
  return { ...measure, rate, ...(all === undefined || done < all * LEAST_SHARE ? {} : { seconds_left: Math.ceil((all - done) / rate) }) };
}

function spellPace({ done, all, what, rate, seconds_left }: Paced): string {
  const count = all === undefined ? shorten(done) : `${shorten(done)} of ${shorten(all)}`;
  const pace = rate === undefined ? '' : `, ${shorten(rate)}/s`;
  return `${count} ${what}${pace}${seconds_left === undefined ? '' : `, ${spellSeconds(seconds_left)} left`}`;
}

/** Formats a number: one decimal below ten, none above. */
const shorten = (number: number): string => number.toLocaleString('en-US', { maximumFractionDigits: number < 10 ? 1 : 0 });

/** Formats an estimate: `90 s`, `12 min`, `3 h`. */
function spellSeconds(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  const minutes = seconds / 60;
  return minutes < 120 ? `${Math.round(minutes)} min` : `${Math.round(minutes / 60)} h`;
}
