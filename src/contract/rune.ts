import { z } from 'zod';

/** Id, number and names of a rune. */
export const rune = z
  .strictObject({
    id: z.string().describe('Height of the block and index of the transaction that etched the rune, as in `840000:3`.'),
    number: z.int().min(0).describe('Number of the rune, in the order of etchings, from 0.'),
    name: z.string().describe('Name without spacers.'),
    spaced_name: z.string().describe('Name with spacers, the bullets between letters.'),
  })
  .describe('Id, number and names of a rune.');
