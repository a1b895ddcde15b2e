/**
 * Flags: one table per command, which parses them and makes its help (help.ts). An unknown flag, a flag twice or a value that does not fit is
 * a UsageError.
 */
import { parseArgs } from 'node:util';
import { type Exit, UsageError } from '../errors.ts';
import { didYouMean } from './suggest.ts';

export interface Flag {
  readonly name: string;
  /** What its value is called in the help; a flag without one is a switch. */
  readonly value?: string;
  readonly repeatable?: boolean;
  /** As the help shows it. */
  readonly byDefault?: string;
  readonly about: string;
  /** What the help writes above this flag: it and those after it belong together. */
  readonly heading?: string;
}

export interface Command {
  /** As it is called, e.g. `npm run build --`. */
  readonly call: string;
  readonly about: string;
  readonly flags: readonly Flag[];
  /** What it takes besides flags, as the help shows it, and the fewest of them. A command without this takes none. */
  readonly positionals?: { readonly name: string; readonly least: number };
  /** Command lines worth knowing: what follows the call, and what that does. */
  readonly examples: readonly { readonly args: string; readonly about: string }[];
  /** The ways in which it can end. */
  readonly exits: readonly Exit[];
}

/** Flags that several commands have. */
export const LOG: Flag = {
  name: 'log',
  value: 'FORMAT',
  byDefault: 'text',
  about: 'text, or json for a JSON object a line.',
};
export const HELP: Flag = { name: 'help', about: 'Print this and end.' };

/** The values given, by flag; switches have the value `true`. */
export class Flags {
  readonly #values: ReadonlyMap<string, readonly string[]>;
  /** What was given besides flags. */
  readonly positionals: readonly string[];

  private constructor(values: ReadonlyMap<string, readonly string[]>, positionals: readonly string[]) {
    this.#values = values;
    this.positionals = positionals;
  }

  /** Throws a UsageError for what the table does not allow, the first of it. When help is asked for, nothing may be missing. */
  static parse(command: Command, args: readonly string[]): Flags {
    const { flags } = command;
    const options = Object.fromEntries(
      flags.map((f) => [f.name, { type: f.value === undefined ? ('boolean' as const) : ('string' as const) }]),
    );
    const given = joinNegatives(command, args);
    // Not strict: what is wrong is said here, in words for people.
    const { tokens } = parseArgs({
      args: given,
      options: { ...options, help: { type: 'boolean', short: 'h' } },
      strict: false,
      tokens: true,
    });
    const values = new Map<string, string[]>();
    const positionals: string[] = [];
    for (const token of tokens) {
      if (token.kind === 'positional') positionals.push(token.value);
      if (token.kind !== 'option') continue;
      const flag = flags.find((f) => f.name === token.name && (token.rawName.startsWith('--') || token.rawName === '-h'));
      if (flag === undefined) throw unknownFlag(given[token.index] ?? token.rawName, flags);
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

  has(name: string): boolean {
    return this.#values.has(name);
  }

  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }

  /** The value; undefined when the flag is not given. An empty value is none that any flag takes. */
  one(name: string): string | undefined {
    const value = this.#values.get(name)?.[0];
    if (value === '') throw new UsageError(`--${name} has no value`);
    return value;
  }

  /** One of the choices, by default the first. */
  choice<T extends string>(name: string, choices: readonly [T, ...T[]]): T {
    const value = this.one(name) ?? choices[0];
    const found = choices.find((choice) => choice === value);
    if (found !== undefined) return found;
    throw new UsageError(`--${name} ${JSON.stringify(value)} must be one of ${choices.join(', ')}${didYouMean(value, choices)}`);
  }

  /** A whole number within bounds. */
  integer(name: string, byDefault: number, minimum: number, maximum: number): number {
    const value = this.one(name);
    if (value === undefined) return byDefault;
    const number = Number(value);
    if (!/^[0-9]{1,15}$/.test(value) || number < minimum || number > maximum) {
      throw new UsageError(`--${name} ${JSON.stringify(value)} must be a whole number from ${minimum} to ${maximum}`);
    }
    return number;
  }
}

/** `--blocks -2016..` as `--blocks=-2016..`: parseArgs takes a value that begins with a dash for a flag. */
function joinNegatives({ flags }: Command, args: readonly string[]): string[] {
  const valued = new Set(flags.filter((f) => f.value !== undefined).map((f) => `--${f.name}`));
  const joined: string[] = [];
  for (const arg of args) {
    const flag = joined.at(-1) ?? '';
    if (/^-[0-9]/.test(arg) && valued.has(flag)) joined[joined.length - 1] = `${flag}=${arg}`;
    else joined.push(arg);
  }
  return joined;
}

function unknownFlag(arg: string, flags: readonly Flag[]): UsageError {
  // The value is not repeated: it may be a key.
  const [written = ''] = arg.split('=', 1);
  const names = flags.map((f) => f.name);
  return new UsageError(`there is no flag ${written}${didYouMean(written.replace(/^-+/, ''), names, (name) => `--${name}`)}`);
}

function givenTo({ name, value }: Flag, given: string | undefined, isInline: boolean): string {
  if (given === undefined) throw new UsageError(`--${name} needs a value: --${name} ${value}`);
  if (!isInline && /^--?[a-z]/i.test(given)) {
    const [other = ''] = given.split('=', 1);
    throw new UsageError(`--${name} needs a value, and ${other} is a flag; a value that begins with a dash is given as --${name}=...`);
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
  // Only what can be no secret is repeated: a URL may hold a password.
  const shown = /^[\w./*-]{0,60}$/.test(first) ? ` ${JSON.stringify(first)}` : '';
  const names = flags.map((f) => f.name);
  const meant = didYouMean(first, names, (name) => `--${name}`);
  throw new UsageError(`unexpected argument${shown}${meant || `; npm passes flags on only after a lone --, as in ${call} --help`}`);
}
