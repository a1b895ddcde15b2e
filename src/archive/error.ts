/**
 * A file of an archive is missing, shorter than it must be, or damaged. While a host replaces files, the manifest may
 * name an archive that is not there any more, so a reader reads the manifest again and tries once more.
 */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError';
}

/** True for an ArchiveError, also one of another bundle of this program, whose class is not the same. */
export const isArchiveError = (error: unknown): error is ArchiveError => error instanceof Error && error.name === 'ArchiveError';
