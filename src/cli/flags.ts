/**
 * Flags: one table per command, which parses them and prints its help. An unknown flag, a flag twice or a value that does not fit is a
 * UsageError.
 */
import { parseArgs } from 'node:util';
import { messageOf, UsageError } from '../errors.ts';

export interface Flag {
  readonly name: string;
  /** What its value is called in the help; a flag without one is a switch. */
  readonly value?: string;
  readonly repeatable?: boolean;
  /** As the help shows it. */
  readonly byDefault?: string;
  readonly about: string;
}

export interface Command {
  /** As it is called, e.g. `npm run build --`. */
  readonly call: string;
  readonly about: string;
  readonly flags: readonly Flag[];
  /** What it takes besides flags, as the help shows it, and the fewest of them. A command without this takes none. */
  readonly positionals?: { readonly name: string; readonly least: number };
}

export const HELP: Flag = { name: 'help', about: 'Print this and end.' };

/** The values given, by flag; switches have the value `true`. Undefined when help was asked for: it has been printed. */
export class Flags {
  readonly #values: ReadonlyMap<string, readonly string[]>;
  /** What was given besides flags. */
  readonly positionals: readonly string[];

  private constructor(values: ReadonlyMap<string, readonly string[]>, positionals: readonly string[]) {
    this.#values = values;
    this.positionals = positionals;
  }

  static parse(command: Command, args: readonly string[]): Flags {
    const options = Object.fromEntries(
      command.flags.map((f) => [f.name, { type: f.value === undefined ? ('boolean' as const) : ('string' as const), multiple: true }]),
    );
    try {
      const allowPositionals = command.positionals !== undefined;
      const { values, positionals } = parseArgs({ args: joinNegatives(command, args), options, strict: true, allowPositionals });
      const entries = Object.entries(values).map(([name, value]): [string, string[]] => [name, [value].flat().map(String)]);
      const repeated = entries.find(([name, given]) => given.length > 1 && command.flags.find((f) => f.name === name)?.repeatable !== true);
      if (repeated !== undefined) throw new Error(`--${repeated[0]} is given ${repeated[1].length} times; it takes one value`);
      const { name, least } = command.positionals ?? { name: '', least: 0 };
      const isGiven = positionals.length >= least && positionals.every((given: string) => given !== '');
      if (!isGiven && values['help'] === undefined) throw new Error(`${name} must be given`);
      return new Flags(new Map(entries), positionals);
    } catch (error) {
      const [first = ''] = messageOf(error).split(/\. (?:To specify|Did you)|\n/);
      throw new UsageError(first);
    }
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
    if (found === undefined) throw new UsageError(`--${name} ${JSON.stringify(value)} must be one of ${choices.join(', ')}`);
    return found;
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

/** The help of a command, from its table. */
export function helpOf(command: Command): string {
  const left = command.flags.map((f) => `--${f.name}${f.value === undefined ? '' : ` ${f.value}`}`);
  const width = Math.max(...left.map((text) => text.length)) + 2;
  const lines = command.flags.map((f, i) => {
    const byDefault = f.byDefault === undefined ? '' : ` (default: ${f.byDefault})`;
    const repeatable = f.repeatable === true ? ' Repeatable.' : '';
    return `  ${(left[i] ?? '').padEnd(width)}${f.about}${repeatable}${byDefault}`;
  });
  const positionals = command.positionals === undefined ? '' : ` ${command.positionals.name}`;
  return [`${command.call} [flags]${positionals}`, '', command.about, '', ...lines, ''].join('\n');
}
