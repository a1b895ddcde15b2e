/** The init command: writes the settings file from flags, and asks on a terminal for what they do not say. */
import { createInterface } from 'node:readline/promises';
import { type Command, type Flag, Flags, flag, HELP, LOG, SETTINGS_FILE } from '../cli/flags.ts';
import type { Log } from '../cli/log.ts';
import { createDurably } from '../disk/replaceFile.ts';
import { dialectOf, siteUrlOf } from '../engine/buildCommand.ts';
import { BuildError, CliError, codeOf, EXIT, InputError, messageOf, UsageError } from '../errors.ts';
import { LAYOUTS } from '../pages/mirrorOptions.ts';
import { plainCall, program } from '../program.ts';
import { parseFrom, parseWanted } from '../pull/pullCommand.ts';
import { remoteOf } from './updateCommand.ts';

/** Question of the command. Its flag answers it, and has the name of the setting. */
type Question = Flag & {
  readonly section: NonNullable<Command['section']>;
  readonly question: string;
  /** Throws a UsageError if the flag has a wrong value. */
  readonly check: (flags: Flags) => unknown;
};

const QUESTIONS: readonly Question[] = [
  {
    ...flag('from URL', 'Where blocks come from, as in pull --from.'),
    section: 'pull',
    question: 'Where do blocks come from? A Bitcoin Core node (core:http://127.0.0.1:8332) or another mirror (https://host)',
    check: (flags) => parseFrom(flags.one('from')),
  },
  {
    ...flag('blocks RANGE', 'Heights to pull, as in pull --blocks.', { byDefault: 'all of a node, -1008.. of a mirror' }),
    section: 'pull',
    question:
      'Which blocks? -1008.. is the last week, 840000.. all of history of mainnet. Enter for all of a node, or the last week of a mirror',
    check: (flags) => parseWanted(flags.one('blocks')),
  },
  {
    ...flag('dialect NAME', 'Spelling of hashes, as in build --dialect.', { byDefault: 'hiro' }),
    section: 'build',
    question: "How do hashes look? hiro, for clients of Hiro's API, or 0x, with 0x before them [hiro]",
    check: dialectOf,
  },
  {
    ...flag('layout NAME', 'Layout of the output, as in build --layout.', { byDefault: 'archive' }),
    section: 'build',
    question:
      'Few large files (archive), or a file for each page (files)? A host without code answers the URLs of the API only from files [archive]',
    check: (flags) => flags.choice('layout', LAYOUTS),
  },
  {
    ...flag('site-url URL', 'The public URL of the mirror.', { byDefault: '' }),
    section: 'build',
    question: 'What is the public URL of the mirror? Enter if it has none',
    check: siteUrlOf,
  },
  {
    ...flag('upload REMOTE', 'Where update uploads the output.', { byDefault: '' }),
    section: 'update',
    question: 'Where is it uploaded? An rclone remote and a bucket, such as r2:my-bucket. Enter for nowhere',
    check: remoteOf,
  },
];

export const INIT_COMMAND: Command = {
  call: program.callOf('init'),
  about: `Writes ${SETTINGS_FILE}, which pull, build and update read. On a terminal, asks for what no flag says.`,
  flags: [...QUESTIONS, LOG, HELP],
  examples: [
    { args: '', about: 'Asks on the terminal.' },
    { args: '--from core:http://127.0.0.1:8332', about: 'A mirror of all history, from a node.' },
  ],
  exits: ['done', 'usage', 'badInput', 'buildFailed', 'interrupted'],
};

/** Runs the command. Without a terminal, takes defaults for flags that are not given. Never replaces a file. */
export async function runInit(flags: Flags, log: Log): Promise<void> {
  const isTerminal = process.stdin.isTTY && process.stdout.isTTY;
  const terminal = isTerminal ? createInterface({ input: process.stdin, output: process.stdout }) : undefined;
  try {
    writeSettings(await settingsOf(flags, terminal && ((text) => terminal.question(text))));
  } catch (error) {
    // Ctrl-C and Ctrl-D cause an AbortError.
    throw Object(error).name === 'AbortError' ? new CliError('stopped; no file was written', EXIT.interrupted) : error;
  } finally {
    terminal?.close();
  }
  log.info('written', `Wrote ${SETTINGS_FILE}. Next: ${plainCall('update')}`, { path: SETTINGS_FILE });
}

/** Flags of commands with their values, by the name of the command. */
type Answers = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Writes the settings file into the current folder. Throws an InputError if it exists. */
export function writeSettings(settings: Answers): void {
  const text = `${JSON.stringify({ $schema: program.settingsSchema, ...settings }, null, 2)}\n`;
  try {
    createDurably(SETTINGS_FILE, text);
  } catch (error) {
    if (codeOf(error) === 'EEXIST')
      throw new InputError(`${SETTINGS_FILE} exists, and init never replaces a file`, ['Change it, or remove it first.']);
    throw new BuildError(`${SETTINGS_FILE} cannot be written: ${messageOf(error)}`);
  }
}

/** Returns the settings of flags, or of answers to `question`. Asks again after a wrong answer. Throws a UsageError for a wrong flag. */
export async function settingsOf(flags: Flags, question?: (text: string) => Promise<string>): Promise<Answers> {
  const settings: Record<string, Record<string, string>> = {};
  for (const { name, section, question: text, check, ...flag } of QUESTIONS) {
    const isMirror = settings['pull']?.['from']?.startsWith('core:') === false;
    // A pull from a node reads all blocks unless the setting `blocks` says otherwise.
    const byDefault = name !== 'blocks' ? (flag.byDefault ?? '') : isMirror ? '-1008..' : '';
    for (let [isRight, hint] = [false, '']; !isRight; ) {
      const given = flags.one(name) ?? (await question?.(`${hint}${text}: `)) ?? '';
      try {
        const value = given.trim() || byDefault;
        check(Flags.parse(INIT_COMMAND, value === '' ? [] : [`--${name}=${value}`]));
        if (value !== '') settings[section] = { ...settings[section], [name]: value };
        isRight = true;
      } catch (error) {
        if (!(error instanceof UsageError) || question === undefined || flags.has(name)) throw error;
        hint = `${error.message}\n`;
      }
    }
  }
  return settings;
}
