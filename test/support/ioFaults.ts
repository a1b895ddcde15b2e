/** Makes system calls of this process fail on demand. Wraps the functions of node:fs, which otherwise use the real disk. */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

/** Calls that change files. A call with a file descriptor counts only if one of these calls opened the descriptor. */
const BY_PATH = ['openSync', 'mkdirSync', 'renameSync', 'rmSync', 'rmdirSync', 'linkSync', 'copyFileSync', 'truncateSync'] as const;
const BY_HANDLE = ['writeSync', 'fsyncSync'] as const;

/** A counted call, such as `fsyncSync out/runes/v1/manifest.json`. */
export type Call = `${(typeof BY_PATH)[number] | (typeof BY_HANDLE)[number]} ${string}`;

/**
 * Runs `work`, and counts the calls for files below these folders. If `failing` is a number (from 0), that call fails with `code`. If it is
 * a name, every call with this name fails. A failing write writes half of its data. Returns the calls.
 */
export async function withFault(
  folders: readonly string[],
  failing: number | (typeof BY_PATH)[number],
  code: 'EIO' | 'ENOSPC' | 'EPERM',
  work: () => Promise<void>,
): Promise<Call[]> {
  const calls: Call[] = [];
  const handles = new Map<number, string>();
  const real: Record<string, unknown> = {};
  const wrapped = fs as unknown as Record<string, (...args: never[]) => unknown>;
  const isDue = (name: (typeof BY_PATH)[number] | (typeof BY_HANDLE)[number], path: string): boolean => {
    if (!folders.some((folder) => path === folder || path.startsWith(`${folder}/`))) return false;
    calls.push(`${name} ${path}`);
    return name === failing || calls.length - 1 === failing;
  };
  const fault = (name: string, path: string) =>
    Object.assign(new Error(`${code}: i/o error, ${name.replace('Sync', '')} '${path}'`), {
      code,
      syscall: name.replace('Sync', ''),
      path,
    });
  for (const name of BY_PATH) {
    const call = wrapped[name] as (...args: unknown[]) => unknown;
    real[name] = call;
    wrapped[name] = (...args: unknown[]) => {
      const path = String(args[0]);
      if (isDue(name, path)) throw fault(name, path);
      const result = call(...args);
      if (name === 'openSync') handles.set(result as number, path);
      return result;
    };
  }
  for (const name of BY_HANDLE) {
    const call = wrapped[name] as (...args: unknown[]) => unknown;
    real[name] = call;
    wrapped[name] = (...args: unknown[]) => {
      const path = handles.get(args[0] as number) ?? '';
      if (!isDue(name, path)) return call(...args);
      const bytes = args[1];
      if (bytes instanceof Uint8Array) call(args[0], bytes, Number(args[2] ?? 0), Math.floor((Number(args[3] ?? bytes.length) || 0) / 2));
      throw fault(name, path);
    };
  }
  syncBuiltinESMExports();
  try {
    await work();
  } finally {
    Object.assign(fs, real);
    syncBuiltinESMExports();
  }
  return calls;
}

/** A write to the disk, or a sync of a file or folder. */
export interface Step {
  readonly does: 'write' | 'sync' | 'rename' | 'remove';
  readonly path: string;
  /** New path of a rename. */
  readonly to?: string;
}

/**
 * Runs `work`. Returns its writes and syncs below a folder, in order. Does not see writes to DuckDB's files, because DuckDB does not use
 * node:fs.
 */
export async function recordSteps(folder: string, work: () => Promise<unknown>): Promise<Step[]> {
  const steps: Step[] = [];
  const paths = new Map<number, string>();
  const wrapped = fs as unknown as Record<string, (...args: unknown[]) => unknown>;
  const promises = fs.promises as unknown as { open: (...args: unknown[]) => Promise<{ sync: () => Promise<void> }> };
  const { open } = promises;
  const real: Record<string, unknown> = {};
  const pathOf = (file: unknown): string => (typeof file === 'number' ? (paths.get(file) ?? '') : String(file));
  const add = (does: Step['does'], file: unknown, to?: unknown): void => {
    const path = pathOf(file);
    if (path === folder || path.startsWith(`${folder}/`)) steps.push({ does, path, ...(to === undefined ? {} : { to: String(to) }) });
  };
  const wrap = (name: string, after: (args: unknown[], result: unknown) => void): void => {
    const call = wrapped[name] as (...args: unknown[]) => unknown;
    real[name] = call;
    wrapped[name] = (...args) => {
      const result = call(...args);
      after(args, result);
      return result;
    };
  };
  wrap('openSync', ([path], handle) => void paths.set(handle as number, String(path)));
  wrap('writeSync', ([file]) => add('write', file));
  wrap('ftruncateSync', ([file]) => add('write', file));
  wrap('fsyncSync', ([file]) => add('sync', file));
  wrap('renameSync', ([from, to]) => add('rename', from, to));
  wrap('rmSync', ([path]) => add('remove', path));
  wrap('writeFileSync', ([file, , options]) => {
    add('write', file);
    if ((options as { flush?: boolean } | undefined)?.flush === true) add('sync', file);
  });
  promises.open = async (...args) => {
    const handle = await open(...args);
    const sync = handle.sync.bind(handle);
    handle.sync = async () => {
      await sync();
      add('sync', args[0]);
    };
    return handle;
  };
  syncBuiltinESMExports();
  try {
    await work();
  } finally {
    Object.assign(fs, real);
    promises.open = open;
    syncBuiltinESMExports();
  }
  return steps;
}
