/** Environment variables with passwords and keys. Only pulls need them. */
export const SECRETS = {
  rpcUser: 'CORE_RPC_USER',
  rpcPassword: 'CORE_RPC_PASSWORD',
  headers: 'PULL_HEADERS',
  databasePassword: 'PGPASSWORD',
} as const;

/** Returns an environment variable. Undefined if the runtime may not read it, such as Deno without `--allow-env`. */
export function variableOf(name: string, env: NodeJS.ProcessEnv): string | undefined {
  try {
    return env[name];
  } catch {
    return undefined;
  }
}
