/** Tests `--metrics` of the local server: numbers for Prometheus, also of its workers. `update --follow` has its test in setup/settings.test.ts. */
import { execFileSync } from 'node:child_process';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { temporaryFolder, testBuild } from '../../support/build.ts';
import { SAMPLE_INPUT } from '../../support/cases.ts';
import { endOf, portOf, ROOT, runProcess, start } from '../../support/cli.ts';
import { freePort } from '../../support/ports.ts';
import { sendTo } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const dist = join(temporaryFolder(), 'dist');
const manifest = join(dist, 'runes/v1/manifest.json');
let tip: number | undefined;
beforeAll(async () => {
  tip = (await testBuild(dist, { inputs: [SAMPLE_INPUT] })).manifest.tip?.height;
});

it.each([1, 2])('%d processes count their answers by status', async (workers) => {
  const metrics = await freePort();
  const child = start('serve', ['--dir', dist, '--port', '0', '--workers', String(workers), '--metrics', String(metrics)], ROOT);
  try {
    const send = sendTo(await portOf(child));
    for (const path of ['/runes/v1/', '/runes/v1/blocks/x/activity', `/runes/v1/blocks/${tip}/activity`]) await send('GET', path);
    const ask = sendTo(metrics);
    let text = '';
    await until(async () => {
      text = (await ask('GET', '/metrics')).body;
      return text.includes('{status="200"} 2\n') && text.includes('{status="400"} 1\n');
    }, child);
    const values = new Map(
      text.split('\n').flatMap((line) => (line === '' || line.startsWith('#') ? [] : [line.split(' ') as [string, string]])),
    );
    expect(values.get('rune_mirror_height')).toBe(String(tip));
    for (const name of ['rune_mirror_build_timestamp_seconds', 'rune_mirror_disk_free_bytes', 'process_resident_memory_bytes'])
      expect([name, Number(values.get(name)) > 0]).toEqual([name, true]);
    for (const name of values.keys()) expect(text).toMatch(new RegExp(`# TYPE ${name.split('{')[0]} (?:counter|gauge)\n`));
    expect((await ask('GET', '/')).status).toBe(404);
    // A pipe in place of the manifest must not stop the process.
    renameSync(manifest, `${manifest}.kept`);
    execFileSync('mkfifo', [manifest]);
    expect((await ask('GET', '/metrics')).body).toContain('rune_mirror_requests_total');
    renameSync(`${manifest}.kept`, manifest);
    const other = await runProcess('serve', ['--dir', dist, '--port', '0', '--metrics', String(metrics)], ROOT);
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('choose another with --metrics')]);
    child.kill('SIGTERM');
    expect(await endOf(child)).toEqual([0, null]);
  } finally {
    child.kill('SIGKILL');
  }
});
