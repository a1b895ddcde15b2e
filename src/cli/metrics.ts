/** Numbers of a long-running command for a monitor, in the text format of Prometheus, on this machine only. */
import { once } from 'node:events';
import { readFileSync, statfsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { attempt } from '../attempt.ts';
import { BuildError, codeOf, messageOf, UsageError } from '../errors.ts';
import { MANIFEST_PATH } from '../pages/filePaths.ts';
import { type Flag, type Flags, flag } from './flags.ts';

export const METRICS: Flag = flag('metrics PORT', 'Answers http://127.0.0.1:PORT/metrics with numbers for Prometheus.');

/** Descriptions of metrics by name. Those whose name ends with `_total` are counters, the others are gauges. */
type Descriptions = Readonly<Record<string, string>>;

/** Metrics of every command: the build in its output folder, and its process. */
const COMMON: Descriptions = {
  rune_mirror_height: 'Height of the highest block of the build.',
  rune_mirror_build_timestamp_seconds: 'When the build changed last, in seconds since 1970.',
  rune_mirror_disk_free_bytes: 'Free space on the disk of the build.',
  process_resident_memory_bytes: 'Memory of the process that answers.',
};

export class Metrics {
  /** Values by name and labels, as in the text: `requests_total{status="200"}`. */
  readonly #values = new Map<string, number>();

  constructor(private readonly descriptions: Descriptions) {}

  set(name: string, value: number): void {
    this.#values.set(name, value);
  }

  add(name: string, by = 1): void {
    this.#values.set(name, (this.#values.get(name) ?? 0) + by);
  }

  /** Returns all values, with those of the build in `out` and its disk as they are now. */
  text(out: string): string {
    const path = join(out, MANIFEST_PATH);
    const stats = attempt(() => statSync(path));
    // Reading a pipe would block until another process writes to it.
    if (stats?.isFile() === true) {
      const { tip } = attempt(() => JSON.parse(readFileSync(path, 'utf8')) as { readonly tip?: { readonly height: number } }) ?? {};
      if (tip !== undefined) this.set('rune_mirror_height', Number(tip.height));
      this.set('rune_mirror_build_timestamp_seconds', stats.mtimeMs / 1000);
    }
    const disk = attempt(() => statfsSync(out));
    if (disk !== undefined) this.set('rune_mirror_disk_free_bytes', disk.bavail * disk.bsize);
    this.set('process_resident_memory_bytes', process.memoryUsage.rss());
    const lines = [...this.#values].map(([name, value]) => `${name} ${value}\n`);
    return Object.entries({ ...COMMON, ...this.descriptions })
      .map(([name, help]) => {
        const own = lines.filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`)).join('');
        return own === '' ? '' : `# HELP ${name} ${help}\n# TYPE ${name} ${name.endsWith('_total') ? 'counter' : 'gauge'}\n${own}`;
      })
      .join('');
  }

  /** Answers on the port of `--metrics`, if given, until the process ends. Rejects with a UsageError if the port is in use. */
  async serve(flags: Flags, out: string): Promise<void> {
    if (!flags.has(METRICS.name)) return;
    const port = flags.integer(METRICS.name, 0, 1, 65_535);
    const server = createServer((request, response) => {
      if (request.url === '/metrics') response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(this.text(out));
      else response.writeHead(404).end();
    });
    server.unref().listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
    } catch (error) {
      if (codeOf(error) === 'EADDRINUSE') throw new UsageError(`port ${port} is already in use; choose another with --metrics`);
      throw new BuildError(`the metrics cannot be served: ${messageOf(error)}`);
    }
  }
}
