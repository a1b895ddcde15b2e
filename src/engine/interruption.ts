/** Reports the state of the output after Ctrl-C. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../cli/log.ts';
import { EXIT } from '../errors.ts';
import { FINISHED, MARKER_PATH } from '../pages/filePaths.ts';

/** Ends this process at Ctrl-C or SIGTERM, with a message about the output. This is safe at any moment of a build. */
export function explainInterruption(out: string, log: Log): void {
  const stop = () => {
    const [state, advice] = isUnfinished(out)
      ? [`${out} is not finished`, 'Run the same command again: it completes the build and writes only what is missing.']
      : [`${out} is unchanged`, 'Run the same command again.'];
    log.error(`stopped; ${state}`, [advice], EXIT.interrupted);
    process.exit(EXIT.interrupted);
  };
  process.once('SIGINT', stop).once('SIGTERM', stop);
}

function isUnfinished(out: string): boolean {
  try {
    return readFileSync(join(out, MARKER_PATH), 'utf8') !== FINISHED;
  } catch {
    // Without a marker, no build has changed anything, because a build writes the marker first.
    return false;
  }
}
