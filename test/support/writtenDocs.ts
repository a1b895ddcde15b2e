/**
 * What is generated from the source: the picture of the folders, the table of the API's endpoints, and the JSON schema of the settings
 * file. `npm run docs` writes it (writeDocs.ts).
 */
import { program } from '../../src/program.ts';
import { settingsSchema } from '../../src/setup/settingsSchema.ts';
import { withEndpoints } from './endpointTable.ts';
import { withPicture } from './imports.ts';

/** For each file, a function that returns its text with the generated parts. */
export const WRITTEN: Readonly<Record<string, (text: string) => string>> = {
  'docs/architecture.md': withPicture,
  'docs/api.md': withEndpoints,
  [program.settingsSchema]: settingsSchema,
};
