/**
 * Creates one scratch folder per build, inside the cache folder. Removes the folder when the build ends. Also removes
 * folders that killed builds left.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { BuildError, codeOf, messageOf } from '../errors.ts';

const PREFIX = 'scratch-';

/** Age in milliseconds above which a scratch folder of another machine is removed, because no build takes this long. */
const ABANDONED_MS = 7 * 24 * 3600 * 1000;

/**
 * Returns a name for the host and the container of this process. In another container or on another host, the same
 * process id belongs to another process.
 */
function spaceOfIds(): string {
  let space = '';
  try {
    space = readlinkSync('/proc/self/ns/pid');
  } catch {
    // Only Linux has /proc/self/ns/pid. On other systems, the result depends only on the host name.
  }
  return createHash('sha256').update(`${hostname()} ${space}`).digest('hex').slice(0, 12);
}

/**
 * Runs `work` with an empty scratch folder, and then removes this folder. Also removes the cache folder, if this call
 * created it and it is empty.
 */
export async function withScratch<T>(cache: string, work: (scratch: string) => Promise<T>): Promise<T> {
  const folder = resolve(cache);
  const existed = existsSync(folder);
  let scratch: string;
  try {
    mkdirSync(folder, { recursive: true });
    const space = spaceOfIds();
    scratch = mkdtempSync(join(folder, `${PREFIX}${space}-${process.pid}-`));
    removeAbandoned(folder, space);
  } catch (error) {
    throw unusableCache(cache, error);
  }
  try {
    return await work(scratch);
  } finally {
    removeIfPossible(scratch);
    if (!existed) removeIfEmpty(folder);
  }
}

/** Returns the error for a cache folder in which a file or folder cannot be created, moved or removed. */
export const unusableCache = (cache: string, error: unknown): BuildError =>
  new BuildError(`the cache folder ${cache} cannot be used: ${messageOf(error)}`, ['Use another folder with --cache.']);

/**
 * Removes a file or folder, if possible. Ignores errors, because the next build removes or replaces the path. An error
 * here would also hide the error of the build.
 */
export function removeIfPossible(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // The next build removes or replaces the path.
  }
}

function removeAbandoned(folder: string, here: string): void {
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(PREFIX)) continue;
    const [space, pid] = name.slice(PREFIX.length).split('-');
    const isAbandoned = space === here ? !isAlive(Number(pid)) : isOld(join(folder, name));
    if (isAbandoned) rmSync(join(folder, name), { recursive: true, force: true });
  }
}

/** True for an old folder, and for a missing folder, which another build has removed meanwhile. */
const isOld = (path: string): boolean => Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) > ABANDONED_MS;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // The folder is not empty, so it stays.
  }
}
