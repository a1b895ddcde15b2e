import { attempt } from '../attempt.ts';

/** Returns an environment variable. Undefined if the runtime may not read it, such as Deno without `--allow-env`. */
export const variableOf = (name: string, env: NodeJS.ProcessEnv): string | undefined => attempt(() => env[name]);
