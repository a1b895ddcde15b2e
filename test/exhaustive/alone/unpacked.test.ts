/** Measures the memory of a process, which the work of others on the machine must not change. */
import { existsSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { filesBelow, temporaryFolder, writeFiles } from '../../support/build.ts';
import { start } from '../../support/cli.ts';
import { ndjson, record } from '../../support/records.ts';

it('input that unpacks to a thousand times its size takes little memory', async () => {
  const work = temporaryFolder();
  writeFiles(work, { 'in/a.ndjson': ndjson([record(5, 1)]) });
  // Concatenates gzip members of 20 MB, because compressing all data would take seconds.
  const member = gzipSync(Buffer.alloc(20 * 1024 * 1024, 'a'), { level: 9 });
  expect(member.length).toBeLessThan((20 * 1024 * 1024) / 1000);
  writeFiles(work, { 'in/b.ndjson.gz': Buffer.concat(Array.from({ length: 35 }, () => member)) });
  // Limits the number of threads, because each thread takes memory.
  const child = start('build', ['--threads', '2'], work);
  let peak = 0;
  const watch = setInterval(() => {
    const status = existsSync(`/proc/${child.pid}/status`) ? readFileSync(`/proc/${child.pid}/status`, 'utf8') : '';
    peak = Math.max(peak, Number(/VmHWM:\s+([0-9]+)/.exec(status)?.[1] ?? 0) / 1024);
  }, 20);
  const code = await new Promise((resolve) => child.on('close', resolve));
  clearInterval(watch);
  // The build has removed the unpacked files.
  expect([code, filesBelow(work)]).toEqual([2, ['in/a.ndjson', 'in/b.ndjson.gz']]);
  expect(peak).toBeGreaterThan(0);
  expect(peak).toBeLessThan(500);
});
