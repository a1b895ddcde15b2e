/**
 * Ends a command when the npm that runs it has ended. npm passes a SIGTERM only to its shell, which does not forward
 * it. So without this check, a server would keep running and keep its port.
 */
import { readFileSync } from 'node:fs';
import { variableOf } from './environment.ts';

/** Milliseconds between two checks of the parent processes. */
const LOOK_MS = 500;

/**
 * Sends this process a SIGTERM when npm, or the shell between npm and this process, has ended. Returns a function that
 * stops the checks. Does nothing if npm does not run this command, or runs it in the background.
 */
export function endWithNpm(env: NodeJS.ProcessEnv = process.env): () => void {
  const script = variableOf('npm_lifecycle_script', env) ?? '';
  if (!/run\.cjs|rune-mirror/.test(script) || /(?<!&)&(?!&)/.test(script)) return () => undefined;
  const first = ancestors();
  const timer = setInterval(() => {
    if (ancestors() === first) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  }, LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/**
 * Returns the ids of the parent and the grandparent. They change when one ends, because the system assigns a new
 * parent.
 */
const ancestors = (): string => `${process.ppid} ${parentOf(process.ppid)}`;

/** Returns the parent of a process. Undefined on systems without /proc. */
function parentOf(pid: number): string | undefined {
  try {
    // The format is "pid (name) state ppid". Searches from the last bracket, because the name may have brackets too.
    return /^.*\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1];
  } catch {
    return undefined;
  }
}
