/** Takes values from the settings file for flags that are not given. Its reader is loaded only if the file exists. */
import { existsSync } from 'node:fs';
import { CONFIG, type Command, type Flags, SETTINGS_FILE } from './flags.ts';
import type { Settings } from './settingsFile.ts';

/** Maps the name of a flag to the setting that gives the flag its value. */
const FLAGS = {
  from: 'source',
  blocks: 'blocks',
  layout: 'layout',
  dialect: 'dialect',
  'site-url': 'siteUrl',
} as const satisfies Readonly<Record<string, keyof Settings>>;

/** Returns the flags of a command, with values from the settings for flags that are not given. */
export function withSettings(flags: Flags, command: Command, settings: Settings): Flags {
  const names = new Set(command.flags.map(({ name }) => name));
  const values = new Map<string, readonly string[]>();
  for (const [flag, name] of Object.entries(FLAGS)) {
    const value = settings[name];
    // The setting `blocks` is only for pulls, which have the flag `--from`. A build takes all pulled blocks.
    const isOther = flag === 'blocks' && !names.has('from');
    if (value !== undefined && names.has(flag) && !isOther) values.set(flag, [value]);
  }
  const lists = settings.lists === false ? 'no-lists' : 'lists';
  if (settings.lists !== undefined && names.has(lists) && !flags.has('lists') && !flags.has('no-lists')) values.set(lists, ['true']);
  return flags.with(values);
}

export const settingsFileOf = (flags: Flags): string | undefined =>
  flags.one(CONFIG.name) ?? (existsSync(SETTINGS_FILE) ? SETTINGS_FILE : undefined);

/** Loads settingsFile.ts with the loader of this file. The other one would make copies of the classes of errors. */
export const settingsReader = async (): Promise<typeof import('./settingsFile.ts')> =>
  typeof require === 'function' ? require('./settingsFile.ts') : import('./settingsFile.ts');
