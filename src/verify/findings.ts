/**
 * What verification found wrong.
 */
import { CliError, EXIT } from '../errors.ts';

/** How many findings are shown. */
const SHOWN = 20;

export class Findings {
  readonly #shown: string[] = [];
  count = 0;

  add(finding: string): void {
    this.count += 1;
    if (this.#shown.length < SHOWN) this.#shown.push(finding);
  }

  /** Throws a VerificationError when there are any. */
  throwIfAny(dir: string): void {
    if (this.count === 0) return;
    const rest = this.count - this.#shown.length;
    throw new VerificationError(`${dir} is not as it should be: ${this.count} finding(s)`, [
      ...this.#shown,
      ...(rest > 0 ? [`… and ${rest} more`] : []),
      'Repair it with the flags of its build and --full, or remove it and build again.',
    ]);
  }
}

/** The output does not hold what it should. */
export class VerificationError extends CliError {
  override readonly name = 'VerificationError';
  constructor(message: string, details: readonly string[]) {
    super(message, EXIT.verificationFailed, details);
  }
}
