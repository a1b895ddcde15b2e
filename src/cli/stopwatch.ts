/**
 * What a build took, by stage.
 */
import type { SummaryRow } from './log.ts';

export class Stopwatch {
  /** Wall seconds by stage. */
  readonly seconds: Record<string, number> = {};
  /** CPU seconds of all threads, in the program and in the kernel, by stage. */
  readonly cpuSeconds: Record<string, number> = {};
  readonly #start = performance.now();
  #last = this.#start;
  #cpu = process.cpuUsage();

  /** Ends a stage; returns its wall seconds. */
  lap(stage: string): number {
    const now = performance.now();
    const cpu = process.cpuUsage();
    const seconds = round((now - this.#last) / 1000);
    this.seconds[stage] = seconds;
    this.cpuSeconds[stage] = round((cpu.user + cpu.system - this.#cpu.user - this.#cpu.system) / 1e6);
    this.#last = now;
    this.#cpu = cpu;
    return seconds;
  }

  /** Seconds since the beginning. */
  get total(): number {
    return round((performance.now() - this.#start) / 1000);
  }
}

/** What it took, for a summary. */
export function costRows(clock: Stopwatch): SummaryRow[] {
  const stages = Object.entries(clock.seconds).map(([stage, seconds]) => `${stage} ${seconds}`);
  return [
    ['seconds', `${clock.total}${stages.length === 0 ? '' : `: ${stages.join(', ')}`}`],
    ['peak memory', `${peakMegabytes().toLocaleString('en-US')} MB`],
  ];
}

const round = (seconds: number): number => Number(seconds.toFixed(2));

/** The most memory that this process has held, in MB. */
export const peakMegabytes = (): number => Math.round(process.resourceUsage().maxRSS / 1024);
