/** Format version of a mirror's files, in the manifest and the root. A change raises it if older programs would misread a file. */
export const FORMAT = 4;

/** Thrown if a file of a mirror has a format version that this program does not read. The message says what to do. */
export class FormatError extends Error {
  override readonly name = 'FormatError';
}

/** Returns a message for files of another format version: what is wrong, and what to do. Undefined for FORMAT. */
export function formatFault(format: unknown): string | undefined {
  if (format === FORMAT) return undefined;
  const isNewer = Number.isSafeInteger(format) && Number(format) > FORMAT;
  const found = Number.isSafeInteger(format) ? `format ${format}` : 'no format version';
  const advice = isNewer ? 'update this program or client module' : 'the mirror has to be built again with this version';
  return `the files of this mirror have ${found}, and this version of rune-activity-mirror reads format ${FORMAT}: ${advice}`;
}

/** Throws a FormatError for any format version except FORMAT. */
export function checkFormat(format: unknown): void {
  const fault = formatFault(format);
  if (fault !== undefined) throw new FormatError(fault);
}
