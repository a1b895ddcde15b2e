/**
 * Finds the states in which a kill or a power cut can leave a folder. Wraps the functions of node:fs that change files, and calls each of
 * these a step. Between two steps, a kill leaves all files as they are. A power cut may also lose
 *
 * - the content of a file since its last sync: the file then has its synced content, a part of the new one, or nothing
 * - the newest names in a folder since the folder's last sync, but no name without all that came after it, as on file systems with a
 *   journal. A rename between folders may be lost in one of them
 *
 * Counts only steps of this thread. DuckDB does not use node:fs and syncs its databases itself, so these keep their content.
 */
import childProcess from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';

/** Content of a file, whatever its names are. `synced` is undefined if no content is on the disk. */
interface Inode {
  synced: Buffer | undefined;
}
type Names = ReadonlyMap<string, Inode | 'folder'>;
const NO_NAMES: Names = new Map();

/** A file of a state. Equal inodes are hard links. */
interface StoredFile {
  readonly inode: Inode;
  readonly bytes: Buffer;
  readonly modified: Date | undefined;
}

/** A state of the folder. Maps relative paths to files, and to undefined for folders. */
type State = ReadonlyMap<string, StoredFile | undefined>;

export interface Crash {
  readonly kind: 'kill' | 'power cut';
  /** Step before which the crash happens, and what it loses, for messages. */
  readonly name: string;
  readonly state: State;
}

/** What a power cut leaves of names and contents. Both lists begin with what is on the disk, and end with the present. */
interface Loss {
  readonly what: string;
  names(of: readonly Names[]): Names;
  content(synced: Buffer, now: Buffer): Buffer;
}

const KILL: Loss = { what: 'nothing', names: (of) => of.at(-1) ?? NO_NAMES, content: (_, now) => now };

/** Synced names of files with all folders, because otherwise a folder that was never synced would hide other losses. */
function oldFiles(of: readonly Names[]): Names {
  const folders = [...(of.at(-1) ?? NO_NAMES)].filter(([, entry]) => entry === 'folder');
  return new Map([...folders, ...(of[0] ?? NO_NAMES)]);
}

const losses = (random: () => number): Loss[] => [
  { what: 'contents', names: KILL.names, content: (synced) => synced },
  { what: 'names of files', names: oldFiles, content: KILL.content },
  { what: 'contents and names of files', names: oldFiles, content: (synced) => synced },
  { what: 'all that is not synced', names: (of) => of[0] ?? NO_NAMES, content: (synced) => synced },
  {
    what: 'some',
    names: (of) => of[Math.floor(random() * of.length)] ?? NO_NAMES,
    content: (synced, now) => [synced, now, now.subarray(0, now.length / 2)][Math.floor(random() * 3)] ?? now,
  },
];

/** Functions of node:fs that change files. `rmSync` of a folder makes a step of each of its files. */
const CHANGES = [
  ...['writeSync', 'writeFileSync', 'appendFileSync', 'ftruncateSync', 'truncateSync', 'copyFileSync'],
  ...['openSync', 'mkdirSync', 'renameSync', 'linkSync', 'rmSync', 'rmdirSync', 'fsyncSync'],
] as const;

/** Name of the step after the last one. */
export const END = 'the end';

class Recorder {
  readonly steps: string[] = [];
  readonly crashes: Crash[] = [];
  readonly #handles = new Map<number, string>();
  readonly #inodes = new Map<number, Inode>();
  /** Names in each folder since its last sync, oldest first. */
  readonly #names = new Map<string, Names[]>();
  readonly #contents = new Map<string, Buffer>();
  readonly #seen = new Set<string>();

  constructor(
    readonly root: string,
    private readonly isWanted: ((step: number) => boolean) | undefined,
    private readonly random: () => number,
  ) {
    if (isWanted !== undefined) this.#syncAll(root);
  }

  /** Called before a step. */
  begin(name: string, [file, to]: readonly unknown[]): void {
    const path = this.#pathOf(file);
    if (!this.#isInside(path)) return;
    this.crash(`${name} ${relative(this.root, path)}`);
    if (this.isWanted === undefined) return;
    // The next file with the inode number of a removed file is another file.
    const gone = name.startsWith('rm') ? path : name === 'renameSync' ? resolve(String(to)) : '';
    const stats = fs.lstatSync(gone, { throwIfNoEntry: false });
    if (stats?.nlink === 1) this.#inodes.delete(stats.ino);
  }

  /** Adds the states in which a crash now would leave the folder. */
  crash(what: string): void {
    const isWanted = this.isWanted?.(this.steps.length);
    const step = `${this.steps.length}: ${what}`;
    this.steps.push(step);
    if (isWanted !== true) return;
    // At the end, a state is wrong that was right before: the program has promised that its work is done.
    if (what === END) this.#seen.clear();
    const now = this.#presentFiles();
    for (const loss of [KILL, ...losses(this.random)]) {
      const state = this.#stateAfter(loss, now);
      const digest = digestOf(state);
      if (this.#seen.has(digest)) continue;
      this.#seen.add(digest);
      this.crashes.push({ kind: loss === KILL ? 'kill' : 'power cut', name: `${step} (lost: ${loss.what})`, state });
    }
  }

  /** Called after a step. */
  end(name: string, [file, to, options]: readonly unknown[], result: unknown): void {
    const path = this.#pathOf(file);
    if (name === 'openSync' && typeof result === 'number') this.#handles.set(result, path);
    if (this.isWanted === undefined) return;
    if (name === 'fsyncSync' || (options as { flush?: boolean } | undefined)?.flush === true) this.synced(path);
    for (const changed of [path, ...(typeof to === 'string' ? [resolve(to)] : [])])
      for (const folder of [dirname(changed), changed]) this.#note(folder);
  }

  synced(file: unknown): void {
    const path = this.#pathOf(file);
    if (!this.#isInside(path)) return;
    if (fs.statSync(path).isDirectory()) {
      this.#names.set(path, [this.#list(path)]);
      return;
    }
    const inode = this.#inode(path);
    if (inode !== undefined) inode.synced = this.#stored(fs.readFileSync(path));
  }

  /** The program `sync` syncs all files below a folder. */
  #syncAll(folder: string): void {
    this.synced(folder);
    for (const [name, entry] of this.#list(folder)) {
      const path = join(folder, name);
      if (entry === 'folder') this.#syncAll(path);
      else this.synced(path);
    }
  }

  syncProgram(folder: string): void {
    if (!this.#isInside(folder)) return;
    if (this.isWanted !== undefined) this.#syncAll(folder);
    this.crash(`sync -f ${relative(this.root, folder)}`);
  }

  #isInside(path: string): boolean {
    return path === this.root || path.startsWith(`${this.root}/`);
  }

  #pathOf(file: unknown): string {
    return typeof file === 'number' ? (this.#handles.get(file) ?? '') : resolve(String(file));
  }

  /** Undefined if another thread, such as one of DuckDB, has just removed the file. */
  #inode(path: string): Inode | undefined {
    const ino = fs.lstatSync(path, { throwIfNoEntry: false })?.ino;
    if (ino === undefined) return undefined;
    const known = this.#inodes.get(ino) ?? { synced: undefined };
    this.#inodes.set(ino, known);
    return known;
  }

  #list(folder: string): Names {
    const entries = fs.readdirSync(folder, { withFileTypes: true });
    return new Map(
      entries.flatMap((entry) => {
        const found = entry.isDirectory() ? 'folder' : this.#inode(join(folder, entry.name));
        return found === undefined ? [] : [[entry.name, found] as const];
      }),
    );
  }

  /** Remembers the names in a folder, if the path is one. */
  #note(folder: string): void {
    if (!this.#isInside(folder) || fs.lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return;
    const names = this.#names.get(folder) ?? [NO_NAMES];
    names.push(this.#list(folder));
    this.#names.set(folder, names);
  }

  #presentFiles(): Map<Inode, { readonly bytes: Buffer; readonly modified: Date }> {
    const files = new Map<Inode, { readonly bytes: Buffer; readonly modified: Date }>();
    const walk = (folder: string): void => {
      for (const [name, entry] of this.#list(folder)) {
        const path = join(folder, name);
        if (entry === 'folder') walk(path);
        else if (!files.has(entry)) files.set(entry, { bytes: this.#stored(fs.readFileSync(path)), modified: fs.statSync(path).mtime });
      }
    };
    walk(this.root);
    return files;
  }

  #stateAfter(loss: Loss, present: ReadonlyMap<Inode, { readonly bytes: Buffer; readonly modified: Date }>): State {
    const state = new Map<string, StoredFile | undefined>();
    const chosen = new Map<Inode, StoredFile>();
    const fileOf = (inode: Inode, name: string): StoredFile => {
      const { synced = Buffer.alloc(0) } = inode;
      const { bytes: now, modified } = present.get(inode) ?? { bytes: synced, modified: undefined };
      const isDatabase = /\.duckdb$|lock$/.test(name);
      return { inode, bytes: isDatabase || now.equals(synced) ? now : loss.content(synced, now), modified };
    };
    const walk = (folder: string, above: string): void => {
      const now = fs.existsSync(folder) ? this.#list(folder) : NO_NAMES;
      // The names in the root itself are outside of the model: they are there before the program begins.
      for (const [name, entry] of above === '' ? now : loss.names([...(this.#names.get(folder) ?? [NO_NAMES]), now])) {
        const path = `${above}${name}`;
        if (entry === 'folder') {
          state.set(path, undefined);
          walk(join(folder, name), `${path}/`);
          continue;
        }
        const file = chosen.get(entry) ?? fileOf(entry, name);
        chosen.set(entry, file);
        state.set(path, file);
      }
    };
    walk(this.root, '');
    return state;
  }

  /** Returns a buffer with the same bytes that all states share. */
  #stored(bytes: Buffer): Buffer {
    const digest = createHash('sha256').update(bytes).digest('base64');
    const known = this.#contents.get(digest) ?? bytes;
    this.#contents.set(digest, known);
    return known;
  }
}

function digestOf(state: State): string {
  const hash = createHash('sha256');
  for (const path of [...state.keys()].sort()) {
    const bytes = state.get(path)?.bytes;
    hash.update(`${path} ${bytes?.length ?? 'folder'}\n`);
    if (bytes !== undefined) hash.update(bytes);
  }
  return hash.digest('base64');
}

/**
 * Runs `work`. Returns its steps below the folder `root`, and the states in which a crash would leave this folder before each step for
 * which `isWanted` is true, and after the last one. Equal states are returned once. Without `isWanted`, returns only the steps.
 */
export async function crashesOf(
  root: string,
  work: () => Promise<unknown>,
  random: () => number,
  isWanted?: (step: number) => boolean,
): Promise<Pick<Recorder, 'steps' | 'crashes'>> {
  const recorder = new Recorder(root, isWanted, random);
  type Call = (...args: unknown[]) => unknown;
  const undo: (() => void)[] = [];
  const wrap = (module: object, name: string, make: (call: Call) => Call): void => {
    const functions = module as Record<string, Call>;
    const call = functions[name] as Call;
    functions[name] = make(call);
    undo.push(() => {
      functions[name] = call;
    });
  };
  // The recorder itself also calls node:fs.
  let isOwn = false;
  const own = <T>(call: () => T): T => {
    const before = isOwn;
    isOwn = true;
    try {
      return call();
    } finally {
      isOwn = before;
    }
  };
  for (const name of CHANGES) {
    const step =
      (call: Call): Call =>
      (...args) => {
        if (isOwn) return call(...args);
        const file = String(args[0]);
        if (name === 'rmSync' && own(() => fs.lstatSync(file, { throwIfNoEntry: false })?.isDirectory()) === true)
          for (const below of own(() => fs.readdirSync(file))) step(call)(join(file, below), ...args.slice(1));
        own(() => recorder.begin(name, args));
        const result = call(...args);
        own(() => recorder.end(name, args, result));
        return result;
      };
    wrap(fs, name, step);
  }
  const asyncStep =
    (name: string) =>
    (call: Call): Call =>
    async (...args) => {
      own(() => recorder.begin(name, args));
      const result = await call(...args);
      own(() => recorder.end(name, args, result));
      return result;
    };
  for (const name of ['appendFile', 'rm']) wrap(fs.promises, name, asyncStep(name));
  wrap(fs.promises, 'open', (open) => async (...args) => {
    const handle = (await open(...args)) as fs.promises.FileHandle;
    wrap(handle, 'sync', (sync) => asyncStep('fsyncSync')(() => sync.call(handle)).bind(undefined, args[0]));
    return handle;
  });
  wrap(childProcess, 'execFile', (execFile) => (...args) => {
    const [program, flags, , done] = args as [string, string[], object, (error: null) => void];
    if (program !== 'sync') return execFile(...args);
    own(() => recorder.syncProgram(flags[1] ?? ''));
    return setImmediate(done, null);
  });
  syncBuiltinESMExports();
  try {
    await work();
    own(() => recorder.crash(END));
  } finally {
    for (const back of undo.reverse()) back();
    syncBuiltinESMExports();
  }
  return recorder;
}

/** Replaces the content of a folder by a state. */
export function restore(root: string, state: State): void {
  fs.rmSync(root, { recursive: true, force: true });
  fs.mkdirSync(root, { recursive: true });
  const first = new Map<Inode, string>();
  for (const [path, file] of state) {
    const to = join(root, path);
    if (file === undefined) {
      fs.mkdirSync(to);
      continue;
    }
    const linked = first.get(file.inode);
    if (linked !== undefined) {
      fs.linkSync(linked, to);
      continue;
    }
    fs.writeFileSync(to, file.bytes);
    if (file.modified !== undefined) fs.utimesSync(to, file.modified, file.modified);
    first.set(file.inode, to);
  }
}
