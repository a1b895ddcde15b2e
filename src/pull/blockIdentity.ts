/** Errors of data from a source. */
import { PassingError } from './httpClient.ts';

/**
 * Thrown for inconsistent data from a source. A retry can help, because a build may have replaced the data between two
 * requests. The message continues a sentence that begins with the name of the data or the source.
 */
export class BadBlockError extends PassingError {}
