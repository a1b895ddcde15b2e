/** Small file systems of a test's own. */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';

/** Makes the folder and mounts an empty tmpfs there; false where this user may not: it takes root on Linux. */
export function mountDisk(path: string, size: string): boolean {
  mkdirSync(path);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
