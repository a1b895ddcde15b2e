/**
 * Lists of the API: all records of one transaction, of one block, or of one operation within a block. Builds write the files of lists, and
 * the page map (respond.ts) finds the files for a request. Both use the paths of filePaths.ts.
 */

/** The kinds of rune activity. Do not reorder them: the renderer passes the index of an operation to the writer. */
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
