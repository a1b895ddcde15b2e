/** Measures the time of a command by stage. */
import type { SummaryRow } from './log.ts';

export class Stopwatch {
  /** Wall-clock seconds by stage. */
  readonly seconds: Record<string, number> = {};
  /** CPU seconds by stage: user and system time of all threads. */
  readonly cpuSeconds: Record<string, number> = {};
  readonly #start = performance.now();
  #last = this.#start;
  #cpu = process.cpuUsage();

  /** Ends a stage. Returns its wall-clock seconds. */
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

  /** Wall-clock seconds since the start. */
  get total(): number {
    return round((performance.now() - this.#start) / 1000);
  }
}

export function costRows(clock: Stopwatch): SummaryRow[] {
  const stages = Object.entries(clock.seconds).map(([stage, seconds]) => `${stage} ${seconds}`);
  return [
    ['seconds', `${clock.total}${stages.length === 0 ? '' : `: ${stages.join(', ')}`}`],
    ['peak memory', `${peakMegabytes().toLocaleString('en-US')} MB`],
  ];
}

const round = (seconds: number): number => Number(seconds.toFixed(2));

export const peakMegabytes = (): number => Math.round(process.resourceUsage().maxRSS / 1024);
