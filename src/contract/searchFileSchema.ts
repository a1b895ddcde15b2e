/** Schema of the files that find runes by the first letters of their names (lists/searchFiles.ts). */
import { z } from 'zod';
import { objectOf } from './schemaParts.ts';

const spacedName = z.string().describe('Name with its spacers.');
const id = z.string().describe('Rune id.');
const number = z.int().min(0).describe('Rune number.');
const symbol = z.string().describe('Symbol; left out if the rune has none, or the mirror has no etchings.');

/** Schema of `runes/v1/search/do.json`. */
export const searchFile = objectOf('Runes by the first letters of their names.', {
  runes: z
    .array(z.union([z.tuple([spacedName, id, number]), z.tuple([spacedName, id, number, symbol])]))
    .describe(
      'Runes whose names begin with these letters, oldest first. Complete, except for names that continue with a letter in `more`.',
    ),
  more: z.string().describe('Next letters that have their own file. Of the runes with these letters, only the oldest are in this file.'),
});
