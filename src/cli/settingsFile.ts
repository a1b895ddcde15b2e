/**
 * Reads the settings file, `rune-mirror.json`, with common settings of pulls, builds and uploads of a mirror. A setting
 * applies if its flag is not given. The file must not have secrets, so that it can be published with the project.
 */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { parseSiteUrl, SITE_URL_RULE } from '../contract/siteUrl.ts';
import { messageOf, UsageError } from '../errors.ts';
import { LAYOUTS } from '../pages/mirrorOptions.ts';
import { didYouMean } from './nearestWord.ts';

/** True for a URL without a password, and for other text, which the command that uses the setting refuses. */
const hasNoPassword = (text: string): boolean =>
  !/^[a-z+]+:[^/?#]*\/\/[^/?#]*:[^/?#]*@/i.test(text) && !/[?&](?:password|sslpassword)=/i.test(text);

const NO_PASSWORD = 'must not have a password: use the variables and files that docs/commands.md names';

/** Name of a remote in rclone's configuration, but no connection string, which may contain secrets and commands. */
const REMOTE = /^[\w.+@][\w.+@ -]*:/;
const text = () => z.string('must be a string').min(1, 'must not be empty');
const url = (about: string) => text().refine(hasNoPassword, NO_PASSWORD).describe(about);
const oneOf = <const Names extends readonly string[]>(names: Names) => z.enum(names, `must be one of ${names.join(', ')}`);

const FIELDS = {
  $schema: z.string('must be a string').describe('The JSON schema of this file, for editors.'),
  source: url('Where blocks come from, as in pull --from: core:http://127.0.0.1:8332 or https://host.'),
  blocks: text().describe('Heights to pull, as in pull --blocks, such as 840000.. or -1008.. for about a week.'),
  layout: oneOf(LAYOUTS).describe('Layout of the output, as in build --layout.'),
  dialect: oneOf(['0x', 'contract', 'hiro']).describe('Spelling of hashes, as in build --dialect: hiro for clients of its API.'),
  lists: z.boolean('must be true or false').describe('Whether the build has lists by rune and by address, balances, holders and outputs.'),
  siteUrl: text()
    .refine((url) => parseSiteUrl(url) !== undefined, SITE_URL_RULE)
    .describe('The public URL of the mirror, as in build --site-url.'),
  upload: z
    .string('must be a string')
    .regex(REMOTE, 'must name a remote of the configuration of rclone and a bucket, such as r2:my-bucket')
    .describe('Where update uploads the output: an rclone remote and a bucket, such as r2:my-bucket.'),
};

const SETTINGS = z
  .strictObject(FIELDS, 'must be a JSON object with settings, such as {"source": "https://host"}; docs/commands.md lists them')
  .partial();

export type Settings = Readonly<z.infer<typeof SETTINGS>>;

export const settingsSchema = (): string => `${JSON.stringify(z.toJSONSchema(SETTINGS), null, 2)}\n`;

/** Reads a settings file. Throws a UsageError if it is missing or not valid. */
export function readSettings(file: string): Settings {
  try {
    return parseSettings(readFileSync(file, 'utf8').replace(/^\uFEFF/, ''), (field) => (field === '' ? file : `${file}: ${field}`));
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError(`the settings file ${file} cannot be read: ${messageOf(error)}`);
  }
}

/** Parses settings. `nameOf` names a field in messages; '' is the whole. Throws a UsageError, or a SyntaxError for invalid JSON. */
export function parseSettings(text: string, nameOf: (field: string) => string): Settings {
  const json: unknown = JSON.parse(text);
  const { data, error } = SETTINGS.safeParse(json);
  if (data !== undefined) return data;
  const [issue] = error.issues;
  if (issue?.code === 'unrecognized_keys') {
    const [name = ''] = issue.keys;
    throw new UsageError(`${nameOf('')}: unknown setting ${JSON.stringify(name)}${didYouMean(name, Object.keys(FIELDS))}`);
  }
  throw new UsageError(`${nameOf(issue?.path.join('.') ?? '')}: ${issue?.message}`);
}
