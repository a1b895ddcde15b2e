/**
 * Detects flags that npm took for itself. With `npm run build --dry-run`, npm does not pass the flag to the script. It
 * only sets `npm_config_dry_run` in the environment, so the build would ignore the flag.
 */
import { UsageError } from '../errors.ts';
import { variableOf } from './environment.ts';
import { type Command, type Flag, HELP } from './flags.ts';

/** Flags that cannot be detected: npm always sets `npm_config_cache`, and shows its own help for `--help`. */
const NOT_SEEN = ['cache', HELP.name];

/**
 * Throws a UsageError with the right command line if npm took flags of the command. Shows no values, because npm may
 * have lost them, and because they may be secrets.
 */
export function checkNpmFlags(command: Command, env: NodeJS.ProcessEnv = process.env): void {
  if (variableOf('npm_lifecycle_event', env) === undefined) return;
  const taken = command.flags.filter((flag) => !NOT_SEEN.includes(flag.name) && isTaken(flag, env));
  if (taken.length === 0) return;
  const names = taken.map(({ name }) => `--${name}`).join(', ');
  const spelled = taken.map(({ name, value }) => (value === undefined ? `--${name}` : `--${name} ${value}`)).join(' ');
  throw new UsageError(`npm kept ${names} for itself; write ${command.call} ${spelled}`);
}

/**
 * True if npm took the flag: `--no-sync` sets `npm_config_sync` to '', and `--site-url x` sets
 * `npm_config_site_url=true`.
 */
function isTaken({ name }: Flag, env: NodeJS.ProcessEnv): boolean {
  const configOf = (key: string) => env[`npm_config_${key.replaceAll('-', '_')}`];
  if (name.startsWith('no-')) return configOf(name.slice('no-'.length)) === '';
  const value = configOf(name);
  return value !== undefined && value !== '';
}
