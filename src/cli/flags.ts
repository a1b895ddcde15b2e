/** Parses the arguments of a command by its table of flags, from which help.ts makes the help. Throws UsageErrors. */
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type Exit, UsageError } from '../errors.ts';
import { didYouMean } from './nearestWord.ts';

export interface Flag {
  readonly name: string;
  /** Name of the flag's value in the help. A flag without this name is a switch. */
  readonly value?: string;
  readonly repeatable?: boolean;
  /** Default value as shown in the help. */
  readonly byDefault?: string;
  readonly about: string;
  /** Heading in the help above this flag and the flags after it. */
  readonly heading?: string;
}

/** Commands that read the settings file (settings.ts). Each has the flag `--config`. */
export const SECTIONS = ['pull', 'build', 'update'] as const;

export interface Command {
  /** Name of the command's object in the settings file. Undefined if the command reads no settings. */
  readonly section?: (typeof SECTIONS)[number];
  /** Command line without arguments, such as `npm run build --`. */
  readonly call: string;
  readonly about: string;
  readonly flags: readonly Flag[];
  /** Positional arguments: their name in the help and minimum number. Undefined if the command takes none. */
  readonly positionals?: { readonly name: string; readonly least: number };
  readonly examples: readonly { readonly args: string; readonly about: string }[];
  readonly exits: readonly Exit[];
}

/** Returns a row of a table of flags. `spelled` is the flag as in the help without dashes: `input PATH`, or a switch `full`. */
export function flag(spelled: string, about: string, more: Pick<Flag, 'heading' | 'byDefault' | 'repeatable'> = {}): Flag {
  const [name = '', value] = spelled.split(' ');
  return { name, ...(value === undefined ? {} : { value }), about, ...more };
}

export const LOG: Flag = flag('log FORMAT', 'text, or json for one JSON object per line.', { byDefault: 'text' });
/** Settings file in the working directory. Commands read it if it exists and `--config` names no other file. */
export const SETTINGS_FILE = 'rune-mirror.json';
export const CONFIG: Flag = flag('config FILE', 'File of settings, with values for flags that are not given.', {
  byDefault: `${SETTINGS_FILE}, if it exists`,
});
export const HELP: Flag = flag('help', 'Prints this help.');

export class Flags {
  private constructor(
    /** Values by flag. The value of a switch is `true`. */
    private readonly values: ReadonlyMap<string, readonly string[]>,
    readonly positionals: readonly string[],
  ) {}

  /** Parses arguments. Throws a UsageError for the first that is not allowed. With `--help`, required ones may be missing. */
  static parse(command: Command, args: readonly string[]): Flags {
    const { flags } = command;
    const options = Object.fromEntries(
      flags.map(({ name, value }) => [name, { type: value === undefined ? 'boolean' : 'string' } as const]),
    );
    // Not strict, because the errors of parseArgs do not say what to do, and a value such as `-2016..` may begin with a dash.
    const withShort = { ...options, help: { type: 'boolean', short: 'h' } } as const;
    const { tokens } = parseArgs({ args: [...args], options: withShort, strict: false, tokens: true });
    const values = new Map<string, string[]>();
    const positionals: string[] = [];
    for (const token of tokens) {
      if (token.kind === 'positional') positionals.push(token.value);
      if (token.kind !== 'option') continue;
      const flag = flags.find((f) => f.name === token.name && (token.rawName.startsWith('--') || token.rawName === '-h'));
      if (flag === undefined) throw unknownFlag(args[token.index] ?? token.rawName, flags);
      if (flag.value === undefined && token.inlineValue === true) throw new UsageError(`--${flag.name} takes no value`);
      const value = flag.value === undefined ? 'true' : givenTo(flag, token.value, token.inlineValue === true);
      values.set(flag.name, [...(values.get(flag.name) ?? []), value]);
    }
    for (const flag of flags) {
      const times = values.get(flag.name)?.length ?? 0;
      if (times < 2 || flag.repeatable === true || flag === HELP) continue;
      throw new UsageError(`--${flag.name} is given ${times} times; ${flag.value === undefined ? 'once is enough' : 'it takes one value'}`);
    }
    if (!values.has(HELP.name)) checkPositionals(command, positionals);
    return new Flags(values, positionals);
  }

  /** Returns a copy that also has the flags of `others`. If both have a flag, the values of this object stay. */
  with(others: ReadonlyMap<string, readonly string[]>): Flags {
    return new Flags(new Map([...others, ...this.values]), this.positionals);
  }

  has(name: string): boolean {
    return this.values.has(name);
  }

  all(name: string): readonly string[] {
    return this.values.get(name) ?? [];
  }

  /** Returns the value of a flag. Undefined if the flag is not given. Throws a UsageError for an empty value. */
  one(name: string): string | undefined {
    const value = this.values.get(name)?.[0];
    if (value === '') throw new UsageError(`--${name} has no value`);
    return value;
  }

  /** Returns the value of a flag, by default the first choice. Throws a UsageError unless it is one of `choices`. */
  choice<T extends string>(name: string, choices: readonly [T, ...T[]]): T {
    const value = this.one(name) ?? choices[0];
    const found = choices.find((choice) => choice === value);
    if (found !== undefined) return found;
    throw new UsageError(`--${name} ${JSON.stringify(value)} must be one of ${choices.join(', ')}${didYouMean(value, choices)}`);
  }

  /** Returns a flag's integer, or `byDefault` if not given. Throws a UsageError unless it is `minimum` to `maximum`. */
  integer(name: string, byDefault: number, minimum: number, maximum: number): number {
    const value = this.one(name);
    if (value === undefined) return byDefault;
    const number = Number(value);
    if (!/^[0-9]{1,15}$/.test(value) || number < minimum || number > maximum)
      throw new UsageError(`--${name} ${JSON.stringify(value)} must be a whole number from ${minimum} to ${maximum}`);
    return number;
  }
}

function unknownFlag(arg: string, flags: readonly Flag[]): UsageError {
  // The message does not show the value, which may be a secret.
  const [written = ''] = arg.split('=', 1);
  const names = flags.map((f) => f.name);
  return new UsageError(`unknown flag ${written}${didYouMean(written.replace(/^-+/, ''), names, (name) => `--${name}`)}`);
}

function givenTo({ name, value }: Flag, given: string | undefined, isInline: boolean): string {
  if (given === undefined) throw new UsageError(`--${name} needs a value: --${name} ${value}`);
  if (!isInline && /^--?[a-z]/i.test(given)) {
    const [other = ''] = given.split('=', 1);
    throw new UsageError(`--${name} needs a value, but ${other} is a flag; write a value that begins with a dash as --${name}=...`);
  }
  return given;
}

function checkPositionals({ call, flags, positionals }: Command, given: readonly string[]): void {
  if (positionals !== undefined) {
    if (given.length >= positionals.least && given.every((one) => one !== '')) return;
    throw new UsageError(`${positionals.name} must be given`);
  }
  const [first] = given;
  if (first === undefined) return;
  // The message shows only an argument that cannot be a secret, because a URL may contain a password.
  const shown = /^[\w./*-]{0,60}$/.test(first) ? ` ${JSON.stringify(first)}` : '';
  const names = flags.map((f) => f.name);
  const folder = shown !== '' && names.includes('dir') && existsSync(first) ? `; name the folder with --dir ${first}` : '';
  const meant = folder || didYouMean(first, names, (name) => `--${name}`);
  const advice = call.startsWith('npm ') ? `; npm passes on only the flags after --, as in ${call} --help` : '';
  throw new UsageError(`unexpected argument${shown}${meant || advice}`);
}
