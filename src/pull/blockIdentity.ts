/** Identities of blocks, by which two copies of a block are compared. */
import { PassingError } from './httpClient.ts';

/** Values that distinguish a block from any other block of the same height. */
export interface BlockIdentity {
  /** 64 lower-case hex digits. Empty for a block without records, because no source gives the hash of such a block. */
  readonly hash: string;
  readonly records: number;
}

/**
 * Thrown for an inconsistent block from a source. A retry can help, because a reorganisation may have replaced the
 * block between two requests. The message continues a sentence that begins with the name of the block or the source.
 */
export class BadBlockError extends PassingError {}
