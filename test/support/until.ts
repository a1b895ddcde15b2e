import type { ChildProcess } from 'node:child_process';
import { TestRunner } from 'vitest';
import { hasEnded } from './cli.ts';

/** Time of a hook in milliseconds, in which `getCurrentTest` has no test (tier.ts). */
const HOOK_MS = 600_000;

/**
 * Waits until a condition holds, however long that takes: no test fails because a machine is slow. Throws an error with the condition if
 * the process on which it depends has ended, or just before the time of the test ends.
 */
export async function until(isTrue: () => boolean | Promise<boolean>, child?: ChildProcess): Promise<void> {
  const test = TestRunner.getCurrentTest();
  const last = (test?.result?.startTime ?? Date.now()) + 0.9 * (test?.timeout ?? HOOK_MS);
  for (;;) {
    const isOver = child !== undefined && hasEnded(child);
    if (await isTrue()) return;
    if (isOver) throw new Error(`the process ended (${child.signalCode ?? child.exitCode}) before this was true: ${isTrue}`);
    if (Date.now() > last) throw new Error(`the time of the test ended before this was true: ${isTrue}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
