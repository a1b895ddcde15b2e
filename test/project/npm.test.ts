/** Tests commands that npm runs: flags that npm consumes if `--` is missing, and signals that end npm. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { finished, ROOT } from '../support/cli.ts';
import { ndjson, record } from '../support/records.ts';
import { sendTo } from '../support/server.ts';
import { until } from '../support/until.ts';

/** Makes a folder with the scripts of this project and one valid input file. */
function npmFolder(): string {
  const work = temporaryFolder();
  const command = (name: string) => `node "${join(ROOT, 'scripts/run.cjs')}" ${name}`;
  const scripts = { build: command('build'), start: command('serve'), pull: command('pull') };
  writeFiles(work, { 'package.json': JSON.stringify({ private: true, scripts }), 'input/a.ndjson': ndjson([record(5, 1)]) });
  return work;
}

/** Runs npm in such a folder. */
async function npm(...args: string[]): Promise<{ code: number | null; stderr: string; wasBuilt: boolean }> {
  const work = npmFolder();
  const child = spawn('npm', args, { cwd: work, stdio: ['ignore', 'ignore', 'pipe'] });
  const { code, stderr } = await finished(child);
  return { code, stderr, wasBuilt: existsSync(join(work, 'dist')) };
}

describe('a flag that npm consumed', () => {
  it.each([
    [['run', 'build', '--dry-run'], 'npm kept --dry-run for itself; write npm run build -- --dry-run\n'],
    [['run', 'build', '--no-sync', '--full'], 'npm kept --full, --no-sync for itself; write npm run build -- --full --no-sync\n'],
    [['run', 'build', '--layout', 'archive', '--', '--full'], 'npm kept --layout for itself; write npm run build -- --layout NAME\n'],
    [['start', '--port=0'], 'npm kept --port for itself; write npm start -- --port PORT\n'],
    [['run', 'pull', '--from=https://host/SECRET'], 'npm kept --from for itself; write npm run pull -- --from URL\n'],
  ])('stops the command: npm %s', async (args, message) => {
    const { code, stderr, wasBuilt } = await npm(...args);
    expect([code, wasBuilt]).toEqual([1, false]);
    expect(stderr).toContain(`Error: ${message}`);
    expect(stderr).not.toMatch(/SECRET/);
  });

  it('is not assumed after --, nor for the cache of npm', async () => {
    expect(await npm('run', 'build', '--', '--no-sync')).toMatchObject({ code: 0, wasBuilt: true });
    expect(await npm('run', 'build', '--cache', join(temporaryFolder(), 'cache'), '--', '--dry-run')).toMatchObject({
      code: 0,
      wasBuilt: false,
    });
  });
});

describe('npm start', () => {
  it('leaves no server behind if npm gets a SIGTERM', async () => {
    const work = npmFolder();
    await testBuild(join(work, 'dist'), { inputs: [join(work, 'input')] });
    const npm = spawn('npm', ['start', '--', '--port', '0'], { cwd: work, stdio: ['ignore', 'pipe', 'ignore'] });
    let said = '';
    for await (const part of npm.stdout) {
      said += String(part);
      if (said.includes('Serving')) break;
    }
    const port = Number(/:(\d+) \(/.exec(said)?.[1]);
    expect((await sendTo(port)('GET', '/runes/v1/')).status).toBe(200);
    npm.kill('SIGTERM');
    const answers = () =>
      sendTo(port)('GET', '/runes/v1/').then(
        () => true,
        () => false,
      );
    await until(async () => !(await answers()));
  });
});
