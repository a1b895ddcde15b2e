/** Reports missing programs before any test runs: a suite that is silently skipped would look like a suite that passes. */
import { accessSync, constants } from 'node:fs';
import { CHROMIUM } from './support.ts';

export default function setup(): void {
  try {
    accessSync(CHROMIUM, constants.X_OK);
  } catch {
    throw new Error(
      `the browser tests need Chromium, and there is none at ${CHROMIUM}. Install it (Debian: apt-get install chromium-headless-shell), or name it: CHROMIUM=/path/to/chromium npm run test:browser`,
    );
  }
}
