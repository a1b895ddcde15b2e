/** Returns a variable of the environment. Undefined where a runtime may not read it, as Deno without `--allow-env`. */
export function variableOf(name: string, env: NodeJS.ProcessEnv): string | undefined {
  try {
    return env[name];
  } catch {
    return undefined;
  }
}
