/**
 * The lists of the API: all records of one transaction, of one block, or of one operation within a block. The writer makes
 * the files of each list, and the reader maps requests to them. Both take the paths from `paths.ts`.
 */

/** The kinds of rune activity. The position in this list is the code that the renderer passes to the writer. */
export const OPERATIONS = ['etching', 'mint', 'burn', 'send', 'receive'] as const;
export type Operation = (typeof OPERATIONS)[number];

export type ActivityList =
  | { readonly kind: 'transaction' /** 64 lower-case hex digits, no prefix */; readonly txId: string }
  | {
      readonly kind: 'block';
      /** A height without leading zeros ("840000"), or a hash of 64 lower-case hex digits, no prefix. */
      readonly block: string;
      readonly operation?: Operation;
    };
