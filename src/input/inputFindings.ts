/** Collects findings about the input. Reports the first findings and the number of the others. */
import { InputError } from '../errors.ts';

/** Maximum number of findings that a report shows. */
const REPORT_LIMIT = 20;

const VALUE_LENGTH = 60;

/** Formats a value for a message: JSON, cut after 60 characters. */
export function shorten(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > VALUE_LENGTH ? `${text.slice(0, VALUE_LENGTH)}… (${text.length} characters)` : text;
}

export class Report {
  readonly #lines: string[] = [];
  #count = 0;

  /** Number of findings that the report can still show. */
  get room(): number {
    return Math.max(0, REPORT_LIMIT - this.#lines.length);
  }

  /** Adds findings. `count` is their total number when `lines` has only the first of them. */
  add(lines: readonly string[], count = lines.length): void {
    for (const line of lines.slice(0, this.room)) this.#lines.push(line);
    this.#count += count;
  }

  /** Throws an InputError with the findings as its details, if there are any. */
  throwIfAny(summary: (count: number) => string): void {
    if (this.#count === 0) return;
    const rest = this.#count - this.#lines.length;
    const details = rest > 0 ? [...this.#lines, `… and ${rest} more`] : this.#lines;
    throw new InputError(summary(this.#count), details);
  }
}
