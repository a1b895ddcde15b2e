/** Reads the settings file: values, by command, of flags that are not given. Commands check them like those of the command line. */
import { existsSync, readFileSync } from 'node:fs';
import { messageOf, UsageError } from '../errors.ts';
import { CONFIG, type Command, type Flag, type Flags, HELP, SECTIONS, SETTINGS_FILE } from './flags.ts';
import { didYouMean } from './nearestWord.ts';

/** Values of flags by their names. */
export type Settings = ReadonlyMap<string, readonly string[]>;

export const SCHEMA = '$schema';

export const settingsFileOf = (flags: Flags): string | undefined =>
  flags.one(CONFIG.name) ?? (existsSync(SETTINGS_FILE) ? SETTINGS_FILE : undefined);

/** Flags that are settings: all but `--config` and `--help`. */
export const settable = ({ flags }: Command): readonly Flag[] => flags.filter((one) => one !== CONFIG && one !== HELP);

/** Returns the settings of a command in a file. None without a file. Throws a UsageError for a file that is not valid. */
export function readSettings(file: string | undefined, command: Command): Settings {
  if (file === undefined) return new Map();
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(file, 'utf8').replace(/^\uFEFF/, ''));
  } catch (error) {
    throw new UsageError(`the settings file ${file} cannot be read: ${messageOf(error)}`);
  }
  return settingsIn(json, command, file);
}

/** Returns the settings of a command in the value of a file. `file` is its name in messages. */
export function settingsIn(json: unknown, command: Command, file: string): Settings {
  const { section } = command;
  const sections = objectOf(json, `${file} must be a JSON object, such as {"pull": {"from": "https://host"}}`);
  for (const [name, value] of Object.entries(sections)) {
    if (name === SCHEMA) continue;
    if (!SECTIONS.some((one) => one === name))
      throw new UsageError(`${file}: unknown key ${JSON.stringify(name)}${didYouMean(name, SECTIONS)}; keys are ${SECTIONS.join(', ')}`);
    objectOf(value, `${file}: ${name} must be an object with flags of ${name}, such as {"log": "json"}`);
  }
  if (section === undefined) return new Map();
  const flags = settable(command);
  const settings = new Map<string, readonly string[]>();
  for (const [name, value] of Object.entries(objectOf(sections[section] ?? {}, ''))) {
    const found = flags.find((one) => one.name === name);
    const names = flags.map((one) => one.name);
    if (found === undefined) throw new UsageError(`${file}: ${section} has no flag ${JSON.stringify(name)}${didYouMean(name, names)}`);
    // False stands for the opposite flag, if there is one.
    if (value === false && found.value === undefined) {
      const opposite = oppositeOf(name, flags);
      if (opposite !== undefined) settings.set(opposite, ['true']);
    } else settings.set(name, valuesOf(found, value, `${file}: ${section}.${name}`));
  }
  return settings;
}

function valuesOf({ value: valueName, repeatable }: Flag, value: unknown, place: string): readonly string[] {
  if (valueName === undefined) {
    if (value === true) return ['true'];
    throw new UsageError(`${place} must be true or false`);
  }
  const values = repeatable === true && Array.isArray(value) ? value : [value];
  if (values.length > 0 && values.every((one) => typeof one === 'string' || typeof one === 'number')) return values.map(String);
  throw new UsageError(`${place} must be a string${repeatable === true ? ' or a list of strings' : ' or a number'}`);
}

function objectOf(value: unknown, message: string): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new UsageError(message);
}

/** Returns the name of the flag that switches off what a flag switches on: `no-lists` for `lists`, and the other way round. */
function oppositeOf(name: string, flags: readonly Flag[]): string | undefined {
  const opposite = name.startsWith('no-') ? name.slice('no-'.length) : `no-${name}`;
  return flags.find((one) => one.name === opposite)?.name;
}

/** Returns the flags of a command, with values from the settings for flags that are not given. */
export function withSettings(flags: Flags, command: Command, settings: Settings): Flags {
  const isOff = (name: string) => flags.has(oppositeOf(name, command.flags) ?? '');
  return flags.with(new Map([...settings].filter(([name]) => !isOff(name))));
}
