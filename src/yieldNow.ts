/** Lets signals, timers and other requests run during a long loop over blocks, ids or pages. */
import { setImmediate } from 'node:timers/promises';

/** Milliseconds of work between two pauses. A pause takes microseconds. */
const TURN_MS = 20;

let since = 0;

/** Pauses if the last pause was at least 20 ms ago. Otherwise only reads the clock, so loops may call it often. */
export async function yieldNow(): Promise<void> {
  if (performance.now() - since < TURN_MS) return;
  await setImmediate();
  since = performance.now();
}
