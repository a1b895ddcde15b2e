/** Prints the table of the load benchmark. */
import type { Log } from '../../src/cli/log.ts';
import { spread } from '../figures.ts';
import { MIXES, type Mix } from './mix.ts';

/** Results of one host under one mix of requests, in one round. Values that the system does not report are NaN. */
export interface Measured {
  readonly host: string;
  readonly mix: Mix;
  /** Requests per second. */
  readonly rate: number;
  /** Median latency in milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** CPU seconds of the host per 1,000 requests. */
  readonly cpu: number;
  /** Resident memory of the host after the load, in MB. */
  readonly memory: number;
  /** Mean number of cores that other programs kept busy. */
  readonly others: number;
}

const COLUMNS = [
  ...['mix', 'host', 'requests/s', 'p50 ms', 'p99 ms', 'CPU s/1,000', 'MB', 'others'],
  ...['times peer', 'least', 'most', 'times CPU'],
];

/**
 * Prints medians over all rounds. A ratio to the host `peer` is computed within one round, because the load of the machine varies from
 * round to round.
 */
export function reportHosts(measured: readonly Measured[], peer: string, log: Log): void {
  log.info('columns', row(COLUMNS));
  for (const mix of MIXES) {
    const ofMix = measured.filter((one) => one.mix === mix);
    const rounds = (host: string) => ofMix.filter((one) => one.host === host);
    for (const host of new Set(ofMix.map((one) => one.host))) {
      const own = rounds(host);
      const of = (what: 'rate' | 'p50' | 'p99' | 'cpu' | 'memory' | 'others') => spread(own.map((one) => one[what])).median;
      const ratios = (of: (host: Measured, beside: Measured) => number) =>
        own.flatMap((one, round) => {
          const beside = rounds(peer)[round];
          return beside === undefined ? [] : [of(one, beside)];
        });
      const rates = spread(ratios((one, beside) => one.rate / beside.rate));
      const cpu = spread(ratios((one, beside) => beside.cpu / one.cpu)).median;
      const ratio = { median: rates.median, least: rates.min, most: rates.max, cpu };
      const digits = [of('rate').toFixed(0), of('p50').toFixed(2), of('p99').toFixed(1), of('cpu').toFixed(3), of('memory').toFixed(0)];
      const cells = [mix, host, ...digits, of('others').toFixed(2), ...Object.values(ratio).map((n) => n.toFixed(1))];
      log.info('host', row(cells), { mix, host, rounds: own, ratio });
    }
  }
}

const row = (cells: readonly string[]): string =>
  cells.map((cell, i) => (i < 2 ? cell.padEnd(i === 0 ? 13 : 22) : cell.replace('NaN', '-').padStart(12))).join('');
