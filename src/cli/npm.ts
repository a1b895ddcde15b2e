/**
 * Works around two habits of npm. First, npm takes flags for itself: with `npm run build --dry-run`, the script does
 * not get the flag. npm only sets `npm_config_dry_run` in the environment, so the build would ignore the flag. Second,
 * npm passes a SIGTERM only to its shell, which does not forward the signal. So a server would keep running and keep
 * its port.
 */
import { UsageError } from '../errors.ts';
import { variableOf } from './environment.ts';
import { type Command, type Flag, HELP } from './flags.ts';

/**
 * Flags that cannot be checked: npm always sets `npm_config_cache`, and for `--help` it shows its own help instead of
 * running the command.
 */
const NOT_SEEN = ['cache', HELP.name];

/**
 * Throws a UsageError with the right command line if npm took flags of the command. The message shows no values,
 * because npm may have lost them, and because they may be secrets.
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
 * True if npm read the flag as a setting of its own. For example, `--no-sync` sets `npm_config_sync` to '', and
 * `--site-url x` sets `npm_config_site_url=true`.
 */
function isTaken({ name }: Flag, env: NodeJS.ProcessEnv): boolean {
  const configOf = (key: string) => env[`npm_config_${key.replaceAll('-', '_')}`];
  if (name.startsWith('no-')) return configOf(name.slice('no-'.length)) === '';
  const value = configOf(name);
  return value !== undefined && value !== '';
}

/** Milliseconds between two checks of the parent process. */
const LOOK_MS = 500;

/**
 * Sends this process a SIGTERM when its parent has ended: the shell that npm passes a SIGTERM to, or npm itself where the
 * shell becomes this process. The system then assigns a new parent. Returns a function that stops the checks. Does nothing if npm does not run this command, or runs it in the background.
 */
export function endWithNpm(env: NodeJS.ProcessEnv = process.env): () => void {
  const script = variableOf('npm_lifecycle_script', env) ?? '';
  if (!/run\.cjs|rune-mirror/.test(script) || /(?<!&)&(?!&)/.test(script)) return () => undefined;
  const first = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === first) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  }, LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}
