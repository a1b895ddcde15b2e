/** Repeatable random numbers. A run prints its seed at the start. The environment variable SEED sets the seed. */
import fc from 'fast-check';
import { randomNumbers } from '../../bench/random.ts';
import { hex } from './records.ts';

/** An integer from 0 to 2^31 - 1. */
const SEED = Number(process.env['SEED'] ?? 0);

// `defaultSizeToMaxWhenMaxSpecified` is needed, because otherwise a list of up to 300 items would have at most 10.
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: SEED, defaultSizeToMaxWhenMaxSpecified: true });

/** Returns a source of random numbers in [0, 1). The same seed and name give the same numbers, whatever other tests draw. */
export function randomFor(name: string): () => number {
  return randomNumbers(Number.parseInt(hex(`${SEED} ${name}`).slice(0, 8), 16));
}

/** Returns a source of random integers from 0 to below its argument, drawn like those of `randomFor`. */
export function integersFor(name: string): (below: number) => number {
  const random = randomFor(name);
  return (below) => Math.floor(random() * below);
}
