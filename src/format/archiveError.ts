/**
 * Thrown if a file of an archive is missing, too short, or damaged. A reader then reads the manifest again and retries once, because its
 * manifest may be outdated and name files that the host has replaced.
 */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError';
}

/** True for an ArchiveError. Compares names instead of classes, because each bundle of this program has its own class. */
export const isArchiveError = (error: unknown): error is ArchiveError => error instanceof Error && error.name === 'ArchiveError';
