/** Schemas of the files of changes (lists/changes.ts). */
import { z } from 'zod';
import type { Dialect } from '../pages/mirrorOptions.ts';
import { hashIn, objectOf, optional } from './schemaParts.ts';
import { hex64 } from './schemas.ts';

/** Returns the schemas of the files of changes in a dialect, by name in the OpenAPI document. */
export function changesSchemas(dialect: Dialect) {
  const point = {
    height: z.int().min(0).describe('Height of the block.'),
    hash: hashIn(dialect).describe('Hash of the block, in the same form as in lists.'),
  };
  const outpoints = z.array(z.string().regex(/^[0-9a-f]{64}:[0-9]+$/));
  const Changes = objectOf('What a block touched. Each list is sorted by bytes.', {
    ...point,
    previous: optional(
      z.strictObject(point),
      'The block below. Blocks without activity whose hash the mirror does not know are skipped. Left out in the lowest block.',
    ),
    runes: z.array(z.string()).describe('Ids of the runes in its records.'),
    addresses: z.array(z.string()).describe('Addresses in its records.'),
    made: outpoints.describe('Outputs that received runes, as `txid:vout`.'),
    spent: optional(outpoints, 'Outputs with runes that the block spends. Left out if the mirror is not from a node.'),
    more: optional(z.literal(true), 'True if a list was cut after its first `most_entries` entries. Left out otherwise.'),
  });
  const ChangesIndex = objectOf('The list of the files of changes.', {
    most_blocks: z.int().min(1).describe('Most blocks with such a file.'),
    most_entries: z.int().min(1).describe('Most entries of a list in such a file.'),
    blocks: z
      .array(z.strictObject({ ...point, sha256: hex64.describe('SHA-256 of the file of the block.') }))
      .describe('The newest blocks, heights ascending.'),
  });
  return { Changes, ChangesIndex };
}
