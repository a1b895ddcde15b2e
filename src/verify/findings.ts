/** Collects the findings of a verification. A finding says what is wrong in the output. */
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

  /** `dir` is the output folder. */
  constructor(private readonly dir: string) {}

  /** Adds a finding. `advice` says what to do. Give it if building again does not help. */
  add(finding: string, advice = BUILD_AGAIN): void {
    this.count += 1;
    this.#advice.add(advice);
    if (this.#shown.length < SHOWN) this.#shown.push(finding);
  }

  error(): VerificationError {
    const rest = this.count - this.#shown.length;
    const more = rest > 0 ? [`… and ${rest} more`] : [];
    return new VerificationError(`${this.dir} failed verification: ${this.count} finding(s)`, [...this.#shown, ...more, ...this.#advice]);
  }

  throwIfAny(): void {
    if (this.count > 0) throw this.error();
  }
}

/** Thrown when an output differs from the files that a build makes. */
export class VerificationError extends CliError {
  override readonly name = 'VerificationError';
  constructor(message: string, details: readonly string[]) {
    super(message, EXIT.verificationFailed, details);
  }
}

/** Returns the finding for an error about a damaged file of an archive; undefined for any other error. */
export const damageOf = (error: unknown): string | undefined =>
  error instanceof ArchiveError ? messageOf(error).replace('was changed since the last build', 'is missing or damaged') : undefined;
