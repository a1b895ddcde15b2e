/**
 * Collects what verification found wrong.
 */
import { CliError, EXIT } from '../errors.ts';

/** Findings to show; further ones are only counted. */
const SHOWN = 20;

export class Findings {
  readonly #shown: string[] = [];
  count = 0;

  add(finding: string): void {
    this.count += 1;
    if (this.#shown.length < SHOWN) this.#shown.push(finding);
  }

  /** Throws a VerificationError if there are findings. */
  throwIfAny(dir: string): void {
    if (this.count === 0) return;
    const rest = this.count - this.#shown.length;
    throw new VerificationError(`${dir} failed verification: ${this.count} finding(s)`, [
      ...this.#shown,
      ...(rest > 0 ? [`… and ${rest} more`] : []),
      'Build again with the same flags and --full, or remove the folder and build again.',
    ]);
  }
}

/** The output differs from what a build makes. */
export class VerificationError extends CliError {
  override readonly name = 'VerificationError';
  constructor(message: string, details: readonly string[]) {
    super(message, EXIT.verificationFailed, details);
  }
}
