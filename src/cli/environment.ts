/** Environment variables with passwords and keys, which only pulls need. */
export const SECRETS = {
  rpcUser: 'CORE_RPC_USER',
  rpcPassword: 'CORE_RPC_PASSWORD',
  headers: 'PULL_HEADERS',
  databasePassword: 'PGPASSWORD',
} as const;

/** Returns an environment without secrets, for the builds that a pull starts. */
export const withoutSecrets = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !Object.values<string>(SECRETS).includes(name)));

/** Returns a variable of the environment. Undefined where a runtime may not read it, as Deno without `--allow-env`. */
export function variableOf(name: string, env: NodeJS.ProcessEnv): string | undefined {
  try {
    return env[name];
  } catch {
    return undefined;
  }
}
