/**
 * Chooses the outputs of a mirror's ledger that locateStart.ts compares with the node. The pull chooses them at random
 * after it has downloaded the ledger, so the mirror cannot predict them.
 */
import { randomInt } from 'node:crypto';
import { LineFile } from '../../disk/lineFile.ts';
import { exceeds, type WorkLimits } from '../../limits.ts';

/** Outputs of a start to check: a random sample, or all. */
export type Check = 'sample' | 'all';

/** An output as the mirror describes it. */
export interface ClaimedOutput {
  /** Outpoint as text, `txid:vout`. */
  readonly name: string;
  readonly height: number;
  /** `-` for a script without an address. */
  readonly address: string;
}

/** Chooses which of the added outputs to check, and writes these to a file, one per line. */
export class ChosenOutputs {
  readonly #lines: LineFile;
  readonly #chosen: string[] = [];
  #seen = 0;

  constructor(
    path: string,
    private readonly check: Check,
    private readonly limits: Pick<WorkLimits, 'locatedOutputs'>,
  ) {
    this.#lines = new LineFile(path);
  }

  add(output: ClaimedOutput): void {
    this.#seen += 1;
    if (this.check === 'all') this.#lines.add(lineOf(output));
    else if (!exceeds(this.limits, 'locatedOutputs', this.#seen)) this.#chosen.push(lineOf(output));
    else {
      // Reservoir sampling: the nth output replaces a chosen one with probability limit / n. So all outputs have the
      // same probability to be chosen in the end.
      const at = randomInt(this.#seen);
      if (at < this.#chosen.length) this.#chosen[at] = lineOf(output);
    }
  }

  /** Writes the chosen outputs. Must be called after all outputs were added. */
  end(): void {
    for (const line of this.#chosen) this.#lines.add(line);
  }

  close(): void {
    this.#lines.end();
  }
}

/** Returns a line as a new string. Otherwise the line would keep in memory the larger text that contains `name`. */
const lineOf = ({ name, height, address }: ClaimedOutput): string => Buffer.from(`${name} ${height} ${address}`).toString();
