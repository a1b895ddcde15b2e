import type { Flag } from '../cli/flags.ts';
import { SCHEMA, settable } from '../cli/settings.ts';
import { BUILD_COMMAND } from '../engine/buildCommand.ts';
import { PULL_COMMAND } from '../pull/pullCommand.ts';
import { UPDATE_COMMAND } from './updateCommand.ts';

/** Returns the JSON schema of settings files, for editors, from the flags of the commands that read them. */
export function settingsSchema(): string {
  const strict = (properties: object) => ({ type: 'object', properties, additionalProperties: false });
  const sections = [PULL_COMMAND, BUILD_COMMAND, UPDATE_COMMAND].map((command) => [
    command.section,
    { description: command.about, ...strict(Object.fromEntries(settable(command).map((one) => [one.name, schemaOf(one)]))) },
  ]);
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    ...strict({ [SCHEMA]: { type: 'string', description: 'The JSON schema of this file, for editors.' }, ...Object.fromEntries(sections) }),
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

/** Names of values that are numbers, in the help. */
const NUMBERS = ['N', 'SECONDS'];

function schemaOf({ value, repeatable, about, byDefault }: Flag): object {
  const one = { type: value === undefined ? 'boolean' : NUMBERS.includes(value) ? 'integer' : 'string' };
  const type = repeatable === true ? { anyOf: [one, { type: 'array', minItems: 1, items: one }] } : one;
  return { description: byDefault === undefined ? about : `${about} Default: ${byDefault}.`, ...type };
}
