/** Environment variables with passwords and keys. Only pulls need them. */
import { attempt } from '../attempt.ts';

export const SECRETS = {
  headers: 'PULL_HEADERS',
} as const;

/** Returns an environment without secrets, for programs that need none. */
export const withoutSecrets = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !Object.values<string>(SECRETS).includes(name)));

/** Returns an environment variable. Undefined if the runtime may not read it, such as Deno without `--allow-env`. */
export const variableOf = (name: string, env: NodeJS.ProcessEnv): string | undefined => attempt(() => env[name]);
