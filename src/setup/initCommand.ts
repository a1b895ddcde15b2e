/** The init command: writes the settings file from flags, and asks on a terminal for what they do not say. */
import { createInterface } from 'node:readline/promises';
import { type Command, type Flag, type Flags, flag, HELP, LOG, SETTINGS_FILE } from '../cli/flags.ts';
import type { Log } from '../cli/log.ts';
import { settingsReader } from '../cli/settings.ts';
import type { Settings } from '../cli/settingsFile.ts';
import { createDurably } from '../disk/replaceFile.ts';
import { BuildError, CliError, codeOf, EXIT, InputError, messageOf, UsageError } from '../errors.ts';
import { plainCall, program } from '../program.ts';
import { parseFrom, parseWanted } from '../pull/pullCommand.ts';

/** Question of the command: its setting, and the flag that answers it. */
type Question = Flag & { readonly setting: keyof Settings; readonly question: string };

const QUESTIONS: readonly Question[] = [
  {
    ...flag('source URL', 'Where blocks come from, as in pull --from.'),
    setting: 'source',
    question: 'Where do blocks come from? A Bitcoin Core node (core:http://127.0.0.1:8332) or another mirror (https://host)',
  },
  {
    ...flag('blocks RANGE', 'Heights to pull, as in pull --blocks.', { byDefault: 'all of a node, -1008.. of a mirror' }),
    setting: 'blocks',
    question:
      'Which blocks? -1008.. is the last week, 840000.. all of history of mainnet. Enter for all of a node, or the last week of a mirror',
  },
  {
    ...flag('dialect NAME', 'Spelling of hashes, as in build --dialect.', { byDefault: 'hiro' }),
    setting: 'dialect',
    question: "How do hashes look? hiro, for clients of Hiro's API, or 0x, with 0x before them [hiro]",
  },
  {
    ...flag('layout NAME', 'Layout of the output, as in build --layout.', { byDefault: 'archive' }),
    setting: 'layout',
    question:
      'Few large files (archive), or a file for each page (files)? A host without code answers the URLs of the API only from files [archive]',
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
  about: `Writes ${SETTINGS_FILE}, which pull, build and update read. On a terminal, asks for what no flag says.`,
  flags: [...QUESTIONS, LOG, HELP],
  examples: [
    { args: '', about: 'Asks on the terminal.' },
    { args: '--source core:http://127.0.0.1:8332', about: 'A mirror of all history, from a node.' },
  ],
  exits: ['done', 'usage', 'badInput', 'buildFailed', 'interrupted'],
};

/** Runs the command. Without a terminal, takes defaults for flags that are not given. Never replaces a file. */
export async function runInit(flags: Flags, log: Log): Promise<void> {
  const { parseSettings } = await settingsReader();
  const isTerminal = process.stdin.isTTY && process.stdout.isTTY;
  const terminal = isTerminal ? createInterface({ input: process.stdin, output: process.stdout }) : undefined;
  try {
    writeSettings(await settingsOf(flags, parseSettings, terminal && ((text) => terminal.question(text))));
  } catch (error) {
    // Ctrl-C and Ctrl-D cause an AbortError.
    throw Object(error).name === 'AbortError' ? new CliError('stopped; no file was written', EXIT.interrupted) : error;
  } finally {
    terminal?.close();
  }
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

/** Default answers. A pull from a node reads all blocks unless the setting `blocks` says otherwise. */
const DEFAULTS: Settings = { dialect: 'hiro', layout: 'archive' };

/**
 * Returns the settings that flags give, or that the user answers to `question`. Asks again after a wrong answer. Throws a
 * UsageError for a wrong flag.
 */
export async function settingsOf(flags: Flags, parse: Parse, question?: (text: string) => Promise<string>): Promise<Settings> {
  let settings: Settings = {};
  for (const { name, setting, question: text } of QUESTIONS) {
    const isMirror = settings.source?.startsWith('core:') === false;
    const byDefault = setting === 'blocks' && isMirror ? '-1008..' : (DEFAULTS[setting] ?? '');
    for (let [isRight, hint] = [false, '']; !isRight; ) {
      const given = flags.one(name) ?? (await question?.(`${hint}${text}: `)) ?? '';
      try {
        const value = given.trim() || String(byDefault);
        if (setting === 'source') parseFrom(value || undefined, '--source');
        if (setting === 'blocks' && value !== '') parseWanted(value);
        if (value !== '') settings = parse(JSON.stringify({ ...settings, [setting]: value }), () => `--${name}`);
        isRight = true;
      } catch (error) {
        if (!(error instanceof UsageError) || question === undefined || flags.has(name)) throw error;
        hint = `${error.message}\n`;
      }
    }
  }
  return settings;
}
