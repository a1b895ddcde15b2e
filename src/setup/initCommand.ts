/** The init command: asks what a mirror needs, and writes the settings file. */
import { createInterface } from 'node:readline/promises';
import { type Command, type Flag, type Flags, flag, HELP, LOG, SETTINGS_FILE } from '../cli/flags.ts';
import type { Log } from '../cli/log.ts';
import { settingsReader } from '../cli/settings.ts';
import type { Settings } from '../cli/settingsFile.ts';
import { createDurably } from '../disk/replaceFile.ts';
import { BuildError, CliError, codeOf, EXIT, InputError, messageOf, UsageError } from '../errors.ts';
import { plainCall, program } from '../program.ts';
import { parseFrom, parseWanted } from '../pull/pullCommand.ts';

/** Question of the command: its setting, the flag that answers it, and the default, which Enter chooses. */
type Question = Flag & { readonly setting: keyof Settings; readonly question: string };

const QUESTIONS: readonly Question[] = [
  {
    ...flag('source URL', 'Where blocks come from, as in pull --from.'),
    setting: 'source',
    question: 'Where do blocks come from? A Bitcoin Core node (core:http://127.0.0.1:8332), a database or another mirror (https://host)',
  },
  {
    ...flag('blocks RANGE', 'Heights to pull, as in pull --blocks.', { byDefault: '-1008..' }),
    setting: 'blocks',
    question: 'Which blocks? 840000.. is all of history of mainnet, -1008.. the last week',
  },
  {
    ...flag('dialect NAME', 'Spelling of hashes, as in build --dialect.', { byDefault: 'hiro' }),
    setting: 'dialect',
    question: "How do hashes look? hiro, for clients of Hiro's API, or 0x, with 0x before them",
  },
  {
    ...flag('layout NAME', 'Layout of the output, as in build --layout.', { byDefault: 'archive' }),
    setting: 'layout',
    question: 'Few large files (archive), or a file for each page (files)? A host without code answers the URLs of the API only from files',
  },
  {
    ...flag('site-url URL', 'The public URL of the mirror.', { byDefault: '' }),
    setting: 'siteUrl',
    question: 'What is the public URL of the mirror? Enter if it has none',
  },
  {
    ...flag('upload REMOTE', 'Where update uploads the output.', { byDefault: '' }),
    setting: 'upload',
    question: 'Where is it uploaded? An rclone remote and a bucket, such as r2:my-bucket. Enter for nowhere',
  },
];

export const INIT_COMMAND: Command = {
  call: program.callOf('init'),
  about: `Asks what a mirror needs, and writes ${SETTINGS_FILE}, which pull, build and update read.`,
  flags: [...QUESTIONS, LOG, HELP],
  examples: [
    { args: '', about: 'Asks on the terminal.' },
    { args: '--source core:http://127.0.0.1:8332 --blocks 840000..', about: 'Writes a mirror of all history, without questions.' },
  ],
  exits: ['done', 'usage', 'badInput', 'buildFailed', 'interrupted'],
};

/**
 * Runs the command. If a flag is given, or without a terminal, takes all settings from flags. Never replaces a file.
 */
export async function runInit(flags: Flags, log: Log): Promise<void> {
  const { parseSettings } = await settingsReader();
  const asks = QUESTIONS.every(({ name }) => !flags.has(name)) && process.stdin.isTTY && process.stdout.isTTY;
  const settings = asks ? await askOnTerminal(parseSettings) : fromFlags(flags, parseSettings);
  writeSettings(settings);
  log.info('written', `Wrote ${SETTINGS_FILE}. Next: ${plainCall('update')}`, { path: SETTINGS_FILE });
}

/** Writes the settings file into the current folder. Throws an InputError if it exists. */
export function writeSettings(settings: Settings): void {
  const text = `${JSON.stringify({ $schema: program.settingsSchema, ...settings }, null, 2)}\n`;
  try {
    createDurably(SETTINGS_FILE, text);
  } catch (error) {
    if (codeOf(error) === 'EEXIST')
      throw new InputError(`${SETTINGS_FILE} exists, and init never replaces a file`, ['Change it, or remove it first.']);
    throw new BuildError(`${SETTINGS_FILE} cannot be written: ${messageOf(error)}`);
  }
}

type Parse = typeof import('../cli/settingsFile.ts').parseSettings;

/**
 * Adds the setting of an answer to the settings so far. Adds none for an empty answer without a default. Throws a
 * UsageError for a wrong answer.
 */
function withAnswer(settings: Settings, one: Question, answer: string, parse: Parse): Settings {
  const { name, setting, byDefault = '' } = one;
  const value = answer.trim() || byDefault;
  if (value === '' && setting === 'source') throw new UsageError('--source must be given, as in --source core:http://127.0.0.1:8332');
  if (value === '') return settings;
  if (setting === 'source') parseFrom(value, '--source');
  if (setting === 'blocks') parseWanted(value);
  return parse(JSON.stringify({ ...settings, [setting]: value }), () => `--${name}`);
}

/** Returns the settings that the flags give. Throws a UsageError for a wrong value. */
function fromFlags(flags: Flags, parse: Parse): Settings {
  let settings: Settings = {};
  for (const one of QUESTIONS) settings = withAnswer(settings, one, flags.one(one.name) ?? '', parse);
  return settings;
}

/**
 * Asks all questions, each until its answer is valid. `question` shows a text and resolves to the
 * answer.
 */
export async function ask(question: (text: string) => Promise<string>, parse: Parse): Promise<Settings> {
  let settings: Settings = {};
  for (const one of QUESTIONS) {
    const text = `${one.question}${one.byDefault ? ` [${one.byDefault}]` : ''}: `;
    let hint = '';
    for (let isRight = false; !isRight; ) {
      try {
        settings = withAnswer(settings, one, await question(`${hint}${text}`), parse);
        isRight = true;
      } catch (error) {
        if (!(error instanceof UsageError)) throw error;
        hint = `${error.message}\n`;
      }
    }
  }
  return settings;
}

async function askOnTerminal(parse: Parse): Promise<Settings> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return await ask((text) => terminal.question(text), parse);
  } catch (error) {
    // Ctrl-C and Ctrl-D cause an AbortError.
    throw Object(error).name === 'AbortError' ? new CliError('stopped; no file was written', EXIT.interrupted) : error;
  } finally {
    terminal.close();
  }
}
