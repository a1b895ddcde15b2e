/** Reports the state of the output after Ctrl-C. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { attempt } from '../attempt.ts';
import type { Log } from '../cli/log.ts';
import { EXIT } from '../errors.ts';
import { FINISHED, MARKER_PATH } from '../pages/filePaths.ts';

/**
 * Ends this process at Ctrl-C or SIGTERM, with a message about the output. This is safe at any moment, because the next build completes an
 * unfinished output.
 */
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

/** A build writes the marker before any other file. So without a marker, no build has changed the output. */
const isUnfinished = (out: string): boolean => attempt(() => readFileSync(join(out, MARKER_PATH), 'utf8') !== FINISHED) === true;
