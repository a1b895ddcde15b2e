/** Collects the findings of a verification. A finding says what is wrong in the output. */
import { ChangedArchiveError } from '../engine/archive/storedArchive.ts';
import { CliError, EXIT, messageOf } from '../errors.ts';
import { ArchiveError } from '../format/archiveError.ts';

const BUILD_AGAIN = 'Build again with the same flags and --full, or remove the folder and build again.';

/** Advice for records that do not agree with the chain. */
export const PULL_ANEW =
  'The input has wrong rows, or lacks blocks. An older version of this program may have written it: pull anew into an empty folder, and build from that with --full.';

/** Maximum number of findings to show. Further findings are only counted. */
const SHOWN = 20;

export class Findings {
  readonly #shown: string[] = [];
  readonly #advice = new Set<string>();
  count = 0;

  /** Adds a finding. `advice` says what to do. Give it if building again does not help. */
  add(finding: string, advice = BUILD_AGAIN): void {
    this.count += 1;
    this.#advice.add(advice);
    if (this.#shown.length < SHOWN) this.#shown.push(finding);
  }

  /** Adds a finding if the error is about a damaged file. Rethrows any other error. */
  addDamage(error: unknown): void {
    if (!(error instanceof ChangedArchiveError) && !(error instanceof ArchiveError)) throw error;
    this.add(messageOf(error).replace('was changed since the last build', 'is missing or damaged'));
  }

  throwIfAny(dir: string): void {
    if (this.count === 0) return;
    const rest = this.count - this.#shown.length;
    throw new VerificationError(`${dir} failed verification: ${this.count} finding(s)`, [
      ...this.#shown,
      ...(rest > 0 ? [`… and ${rest} more`] : []),
      ...this.#advice,
    ]);
  }
}

/** Thrown when an output differs from the files that a build makes. */
export class VerificationError extends CliError {
  override readonly name = 'VerificationError';
  constructor(message: string, details: readonly string[]) {
    super(message, EXIT.verificationFailed, details);
  }
}

/** Like `orFinding`, for a check that returns a promise. */
export const orLaterFinding = <Result>(findings: Findings, check: () => Promise<Result>): Promise<Result | undefined> =>
  check().catch((error: unknown) => {
    findings.addDamage(error);
    return undefined;
  });

/** Runs a check. If a file is damaged, adds a finding and returns undefined. */
export function orFinding<Result>(findings: Findings, check: () => Result): Result | undefined {
  try {
    return check();
  } catch (error) {
    findings.addDamage(error);
    return undefined;
  }
}
