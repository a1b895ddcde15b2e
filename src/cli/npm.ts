/** Works around habits of npm: it keeps flags, as in `npm run build --dry-run`, and passes SIGTERM only to a shell, which drops it. */
import { attempt } from '../attempt.ts';
import { UsageError } from '../errors.ts';
import { type Command, type Flag, HELP } from './flags.ts';

/** Flags that cannot be checked: npm always sets `npm_config_cache`, and shows its own help for `--help`. */
const NOT_SEEN = ['cache', HELP.name];

/** Throws a UsageError with the right command line, without values, if npm took flags of the command. */
export function checkNpmFlags(command: Command, env: NodeJS.ProcessEnv = process.env): void {
  if (attempt(() => env['npm_lifecycle_event']) === undefined) return;
  const taken = command.flags.filter((flag) => !NOT_SEEN.includes(flag.name) && isTaken(flag, env));
  if (taken.length === 0) return;
  const names = taken.map(({ name }) => `--${name}`).join(', ');
  const spelled = taken.map(({ name, value }) => (value === undefined ? `--${name}` : `--${name} ${value}`)).join(' ');
  throw new UsageError(`npm kept ${names} for itself; write ${command.call} ${spelled}`);
}

/** True if npm read the flag as a setting: `--no-sync` sets `npm_config_sync` to '', `--site-url x` `npm_config_site_url=true`. */
function isTaken({ name }: Flag, env: NodeJS.ProcessEnv): boolean {
  const configOf = (key: string) => env[`npm_config_${key.replaceAll('-', '_')}`];
  if (name.startsWith('no-')) return configOf(name.slice('no-'.length)) === '';
  const value = configOf(name);
  return value !== undefined && value !== '';
}

/** Milliseconds between two checks of the parent process. */
const LOOK_MS = 500;

/** Environment variable of commands that another command runs (setup/updateCommand.ts). */
export const STEP_VARIABLE = 'RUNE_MIRROR_STEP';

/**
 * Sends this process a SIGTERM when it has another parent, because npm, its shell or the command that runs this one has ended. Returns a
 * function that stops the checks. Does nothing if nobody runs this command, or npm runs it in the background.
 */
export function endWithNpm(env: NodeJS.ProcessEnv = process.env): () => void {
  const script = attempt(() => env['npm_lifecycle_script']) ?? '';
  const isStep = attempt(() => env[STEP_VARIABLE]) === '1';
  if (!isStep && (!/run\.cjs|rune-mirror/.test(script) || /(?<!&)&(?!&)/.test(script))) return () => undefined;
  const first = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === first) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  }, LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}
