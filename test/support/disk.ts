/** Mounts small file systems for one test. */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';

/** Creates the folder and mounts an empty tmpfs of this size there. Returns false if this user may not mount. Only root on Linux may. */
export function mountDisk(path: string, size: string): boolean {
  mkdirSync(path);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
