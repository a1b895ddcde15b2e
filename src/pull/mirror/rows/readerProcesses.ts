/**
 * Processes that read the Parquet files of other mirrors (readStrangersRows.ts). They get no environment variables, at most `rowsReadMs`
 * for a file, and a memory limit. Only their replies reach this process.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { execPath, platform } from 'node:process';
import { createInterface, type Interface } from 'node:readline';
import { AtOnce } from '../../../atOnce.ts';
import type { WorkLimits } from '../../../limits.ts';
import { program } from '../../../program.ts';
import { BadDataError } from '../mirrorSource.ts';
import { type RowsRequest, rowsReply } from './readStrangersRows.ts';

/**
 * Memory in bytes: of the pull's own process, while others read rows; and of each reader process, by which their number is computed. A
 * process takes up to 330 MB for a file of 1.6 million rows. DuckDB gets a limit from LEAST to MOST.
 */
const [PULL, EACH, LEAST, MOST] = [250e6, 350e6, 250e6, 500e6];

/** Limit of JavaScript memory in each process, in MB. It may be small, because DuckDB holds the rows. */
const HEAP_MB = 128;

/** Limit of the system for all memory of a process, in KB, because DuckDB's own does not count all. It reserves 600 MB. */
const MOST_KB = 1_500_000;

type FileRequest = Omit<RowsRequest, 'memoryLimit' | 'limits'>;

export type RowsLimits = Pick<WorkLimits, 'rowsReadMs' | 'rowBytes' | 'spentBytes'>;

interface Reader {
  readonly child: ChildProcess;
  readonly lines: Interface;
  readonly end: Promise<undefined>;
}

export class RowsReader {
  readonly #atOnce: AtOnce;
  readonly #memoryLimit: string;
  readonly #idle: Reader[] = [];
  readonly #all = new Set<Reader>();

  /** `memory` is the memory of this process and of all reader processes, in bytes. */
  constructor(
    private readonly limits: RowsLimits,
    memory: number,
  ) {
    const most = Math.max(1, Math.floor((memory - PULL) / EACH));
    const each = Math.min(Math.max((memory - PULL) / most, LEAST), MOST);
    this.#atOnce = new AtOnce(most);
    this.#memoryLimit = `${Math.floor(each / 1e6)}MB`;
  }

  /** Waits for a free process, which then checks the file. Rejects with a BadDataError if it is refused, or takes too long. */
  read(request: FileRequest): Promise<void> {
    return this.#atOnce.run(async () => {
      const reader = this.#idle.pop() ?? this.#start();
      const { rowsReadMs, rowBytes, spentBytes } = this.limits;
      const timer = setTimeout(() => reader.child.kill('SIGKILL'), rowsReadMs);
      try {
        const reply = once(reader.lines, 'line') as Promise<[string]>;
        // Paths are absolute, because DuckDB compares them with the files that it may open.
        const paths = { path: resolve(request.path), runes: request.runes.map((path) => resolve(path)) };
        const more = { memoryLimit: this.#memoryLimit, limits: { rowBytes, spentBytes } };
        reader.child.stdin?.write(`${JSON.stringify({ ...request, ...paths, ...more })}\n`);
        const line = await Promise.race([reply, reader.end]);
        if (line === undefined)
          throw new BadDataError(
            `crashed the process that read them, or took more than ${rowsReadMs / 1000} s: the files are damaged or too large`,
          );
        const { fault } = rowsReply.parse(JSON.parse(line[0]));
        this.#idle.push(reader);
        if (fault !== undefined) throw new BadDataError(`are refused: ${fault}`);
      } finally {
        clearTimeout(timer);
      }
    });
  }

  close(): void {
    for (const { child } of this.#all) child.kill('SIGKILL');
  }

  #start(): Reader {
    const command = [execPath, `--max-old-space-size=${HEAP_MB}`, program.runner, 'readRows'];
    // Linux then refuses more memory to the process, whatever asks for it. Other systems have no such limit.
    const limited = ['/bin/sh', '-c', `ulimit -d ${MOST_KB} 2>/dev/null; exec "$0" "$@"`, ...command];
    const [file = '', ...args] = platform === 'linux' && existsSync('/bin/sh') ? limited : command;
    const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'ignore'], env: {} });
    const lines = createInterface({ input: child.stdout });
    const end = new Promise<undefined>((done) => child.on('exit', () => done(undefined)).on('error', () => done(undefined)));
    const reader = { child, lines, end };
    // An error here means that the process ended, which the pending request reports.
    child.stdin.on('error', () => undefined);
    child.on('exit', () => this.#all.delete(reader));
    this.#all.add(reader);
    return reader;
  }
}
