/** Settings in place of flags that are not given. The file is read by settingsFile.ts, which takes time to load. */
import { existsSync } from 'node:fs';
import { LAYOUTS } from '../pages/mirrorOptions.ts';
import { CONFIG, type Command, type Flags, SETTINGS_FILE } from './flags.ts';
import type { Settings } from './settingsFile.ts';

/** Names of flags, and the settings that take their place. */
const FLAGS = {
  from: 'source',
  blocks: 'blocks',
  cookie: 'cookie',
  'start-from': 'startFrom',
  layout: 'layout',
  dialect: 'dialect',
  'site-url': 'siteUrl',
} as const satisfies Readonly<Record<string, keyof Settings>>;

/**
 * Returns the flags of a command with the settings for flags that are not given. A start and a cookie belong to their
 * source, and lists to a layout: flags for another one replace both.
 */
export function withSettings(flags: Flags, command: Command, settings: Settings): Flags {
  const names = new Set(command.flags.map(({ name }) => name));
  const values = new Map<string, readonly string[]>();
  for (const [flag, name] of Object.entries(FLAGS)) {
    const value = settings[name];
    // `blocks` are those to pull. A build has all that were pulled.
    const isOther = flag === 'blocks' ? !names.has('from') : ['start-from', 'cookie'].includes(flag) && flags.has('from');
    if (value !== undefined && names.has(flag) && !isOther) values.set(flag, typeof value === 'string' ? [value] : value);
  }
  const layout = flags.one('layout') ?? settings.layout ?? LAYOUTS[0];
  if (settings.lists === true && layout === 'files' && names.has('lists')) values.set('lists', ['true']);
  if (settings.lists === false && layout === 'archive' && names.has('no-lists')) values.set('no-lists', ['true']);
  return flags.with(values);
}

/** Returns the settings file of a command line; undefined if there is none. */
export const settingsFileOf = (flags: Flags): string | undefined =>
  flags.one(CONFIG.name) ?? (existsSync(SETTINGS_FILE) ? SETTINGS_FILE : undefined);

/**
 * Loads the reader as this file was loaded: with two loaders, the process would have two copies of each error's class.
 */
export const settingsReader = async (): Promise<typeof import('./settingsFile.ts')> =>
  typeof require === 'function' ? require('./settingsFile.ts') : import('./settingsFile.ts');
