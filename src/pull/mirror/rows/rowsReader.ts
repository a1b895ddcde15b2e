/**
 * Processes that read the Parquet files of other mirrors (readStrangersRows.ts). They get no environment, at most
 * `rowsReadMs` for a file, and a limit of memory. Only the rows that they write reach this process.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { execPath } from 'node:process';
import { createInterface, type Interface } from 'node:readline';
import type { WorkLimits } from '../../../limits.ts';
import { program } from '../../../program.ts';
import { BadBlockError } from '../../blockIdentity.ts';
import { type RowsReply, type RowsRequest, rowsReply } from './readStrangersRows.ts';

/** Memory limits of each process: of DuckDB, and of Node.js. */
const MEMORY = { limit: '500MB', flag: '--max-old-space-size=512' };

interface Reader {
  readonly child: ChildProcess;
  readonly lines: Interface;
  /** Resolves when the process has ended. */
  readonly end: Promise<undefined>;
}

export class RowsReader {
  readonly #limits: Pick<WorkLimits, 'rowsReadMs'>;
  readonly #idle: Reader[] = [];
  readonly #all = new Set<Reader>();

  constructor(limits: Pick<WorkLimits, 'rowsReadMs'>) {
    this.#limits = limits;
  }

  /** Rejects with a BadBlockError if a file is refused, or if its process ends or takes too long. */
  async read(request: Omit<RowsRequest, 'memoryLimit'>): Promise<Exclude<RowsReply, { fault: string }>> {
    const reader = this.#idle.pop() ?? this.#start();
    const timer = setTimeout(() => reader.child.kill('SIGKILL'), this.#limits.rowsReadMs);
    try {
      const reply = once(reader.lines, 'line') as Promise<[string]>;
      // Paths are absolute, because DuckDB compares them with the files that it may open.
      const absolute = { ...request, parts: request.parts.map((part) => ({ ...part, path: resolve(part.path) })), to: resolve(request.to) };
      const runes = request.runes === undefined ? {} : { runes: resolve(request.runes) };
      reader.child.stdin?.write(`${JSON.stringify({ ...absolute, ...runes, memoryLimit: MEMORY.limit })}\n`);
      const line = await Promise.race([reply, reader.end]);
      if (line === undefined) throw new BadBlockError('ended the process that read them: they are damaged, or too large');
      const parsed = rowsReply.parse(JSON.parse(line[0]));
      this.#idle.push(reader);
      if ('fault' in parsed) throw new BadBlockError(`are refused: ${parsed.fault}`);
      return parsed;
    } finally {
      clearTimeout(timer);
    }
  }

  close(): void {
    for (const { child } of this.#all) child.kill('SIGKILL');
  }

  #start(): Reader {
    const child = spawn(execPath, [MEMORY.flag, program.runner, 'readRows'], { stdio: ['pipe', 'pipe', 'ignore'], env: {} });
    const lines = createInterface({ input: child.stdout });
    const end = new Promise<undefined>((done) => child.on('exit', () => done(undefined)).on('error', () => done(undefined)));
    const reader = { child, lines, end };
    // The request sees that the process ended.
    child.stdin.on('error', () => undefined);
    child.on('exit', () => this.#all.delete(reader));
    this.#all.add(reader);
    return reader;
  }
}
