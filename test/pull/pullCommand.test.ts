/** Tests the pull command: flags, output, signals, locks and full disks. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Flags } from '../../src/cli/flags.ts';
import { CliError } from '../../src/errors.ts';
import { PULL_COMMAND, parseWanted } from '../../src/pull/pullCommand.ts';
import { runPull } from '../../src/pull/runPull.ts';
import { RecordingLog, temporaryFolder, tree, writeFiles } from '../support/build.ts';
import { endOf, run, runProcess, start } from '../support/cli.ts';
import { mountDisk } from '../support/disk.ts';
import { failedPull, PullClock, testPull } from '../support/pull.ts';
import { host, TIP, to, useMirror } from '../support/rowsMirror.ts';

/** Runs the pull command in this process. `said` is its complete output. */
async function runHere(args: readonly string[]): Promise<{ code: number; said: string }> {
  const log = new RecordingLog();
  let [code, error] = [0, ''];
  try {
    await runPull(Flags.parse(PULL_COMMAND, args), log);
  } catch (failure) {
    if (!(failure instanceof CliError)) throw failure;
    [code, error] = [failure.exitCode, [failure.message, ...failure.details].join('\n')];
  }
  return { code, said: [...log.infos.map((info) => JSON.stringify(info)), ...log.notices, error].join('\n') };
}

useMirror();

describe('npm run pull', () => {
  const flags = () => ['--from', host.base, '--to', to, '--rate', '0'];
  const work = temporaryFolder();

  it('limits its rate of requests', async () => {
    const clock = new PullClock();
    const times: number[] = [];
    host.fault = () => void times.push(clock.now());
    await testPull(host.base, to, { rate: 50, concurrency: 1, clock });
    expect(times.length).toBeGreaterThan(10);
    expect(times).toEqual(times.map((_, i) => i * 20));
  });

  it.each([
    [[], /--from is missing/],
    [['--from', 'nonsense SECRET'], /--from must be a URL such as/],
    [['--from', 'ftp://user:SECRET@host'], /--from must be a URL such as/],
    [['--from', 'https://user:SECRET@host'], /without user, password, query and fragment/],
    [['--from', 'https://:SECRET@host'], /without user, password, query and fragment/],
    [['--from', 'https://host/?key=SECRET'], /without user, password, query and fragment/],
    [['--from', 'core:http://:SECRET@host'], /--from must be a URL such as core:.*, without user, password/],
    [['--from', 'core:http://host/#SECRET'], /--from must be a URL such as core:.*, without user, password/],
    [['--from', 'https://host', '--blocks', '7..3'], /--blocks "7\.\.3" must be heights/],
    [['--from', 'https://host', '--rate', '-1'], /--rate/],
    [['--from', 'postgres://user:SECRET@host/db'], /--from must be a URL such as/],
    [['--from', 'https://host', '--what'], /--what/],
  ])('refuses %j', async (args, message) => {
    const { code, said } = await runHere([...args, '--to', to]);
    expect([code, said]).toEqual([1, expect.stringMatching(message)]);
    expect(said).not.toMatch(/SECRET/);
    expect(existsSync(to)).toBe(false);
  });

  it('refuses a folder with blocks from a node, with advice that also fits update, which has no --to', async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'pulled/.state'), { recursive: true });
    const { code, said } = await runHere(['--from', host.base, '--to', folder]);
    expect([code, said]).toEqual([
      2,
      `${folder}/pulled has blocks from a Bitcoin Core node, so only a node can continue it\nGive another folder with --to, or remove ${folder}/pulled.`,
    ]);
  });

  it('reports its result in lines, or in JSON', async () => {
    const { stdout, stderr } = await run('pull', flags(), work);
    // On a slow machine, there are lines of progress.
    expect(stdout.split('\n').filter((line) => !line.startsWith('fetch:'))).toEqual([
      expect.stringMatching(/ has blocks up to 129: \d+ files to fetch\.$/),
      expect.stringMatching(/^Fetched \d+ blocks with [\d,]+ records \(0\.\d MB\) in [\d.]+ s\. .*\/input\/pulled has blocks 0\.\./),
      expect.stringMatching(/^ {2}blocks +\d+ fetched, 0 pulled before were replaced$/),
      expect.stringMatching(/^ {2}records +[\d,]+$/),
      expect.stringMatching(/^ {2}bytes +[\d,]+$/),
      expect.stringMatching(/^ {2}seconds +[\d.]+$/),
      expect.stringMatching(/^ {2}peak memory +[\d,]+ MB$/),
      '',
    ]);
    expect(stderr).toBe('');
    writeFileSync(join(to, 'sample.ndjson'), '');
    const second = await run('pull', [...flags(), '--confirmations', '0', '--log', 'json'], work);
    const lines = second.stdout
      .trimEnd()
      .split('\n')
      .map((line): unknown => JSON.parse(line));
    expect(lines).toEqual([
      expect.objectContaining({ event: 'looked', tip: TIP, blocks: 0, files: 0 }),
      expect.objectContaining({ event: 'pulled', blocks: 0, records: 0 }),
    ]);
    expect(JSON.parse(second.stderr)).toMatchObject({ level: 'notice', message: expect.stringMatching(/also has sample\.ndjson/) });
  });

  it('stops at Ctrl-C, and can continue', async () => {
    const child = start('pull', [...flags(), '--concurrency', '2'], work);
    let error = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      error += chunk.toString();
    });
    host.fault = () => {
      if (host.asked.length === 15) child.kill('SIGINT');
      return host.asked.length >= 15 ? { kind: 'silence' } : undefined;
    };
    const [code] = await endOf(child);
    expect([code, error]).toEqual([130, 'Error: stopped; fetched blocks are kept, and the same command continues from here\n']);
    host.fault = () => undefined;
    const fetched = new Set(host.asked.slice(0, 10).filter((path) => /^rows\/[0-9]/.test(path)));
    expect(fetched.size).toBeGreaterThan(0);
    host.asked.length = 0;
    await testPull(host.base, to);
    expect(host.asked.filter((path) => fetched.has(path))).toEqual([]);
    const whole = join(temporaryFolder(), 'input');
    await testPull(host.base, whole);
    expect(tree(to)).toEqual(tree(whole));
  });

  it('stops immediately in a folder that another pull uses', async () => {
    const stopping = new AbortController();
    const asked = new Promise<void>((resolve) => {
      host.fault = () => {
        resolve();
        return { kind: 'silence' };
      };
    });
    const first = failedPull(host.base, to, { signal: stopping.signal });
    await Promise.race([asked, first]);
    const { code, stderr } = await runProcess('pull', flags(), work);
    expect([code, stderr]).toEqual([
      3,
      expect.stringMatching(/^Error: another pull is using the folder .*\/input\/pulled \(process \d+\)/),
    ]);
    stopping.abort();
    expect((await first).exitCode).toBe(130);
    host.fault = () => undefined;
    expect((await testPull(host.base, to)).blocks).toBeGreaterThan(100);
  });

  it('reports a full disk, and continues when there is space', async (context) => {
    const disk = join(temporaryFolder(), 'disk');
    if (!mountDisk(disk, '1m')) return context.skip('only root can make a small disk');
    try {
      const input = join(disk, 'input');
      writeFileSync(join(disk, 'filler'), Buffer.alloc(950_000));
      const error = await failedPull(host.base, input);
      expect([error.exitCode, error.message]).toEqual([3, expect.stringMatching(/^the disk of .* is full$/)]);
      rmSync(join(disk, 'filler'));
      await testPull(host.base, input);
      await testPull(host.base, to);
      expect(tree(input)).toEqual(tree(to));
    } finally {
      execFileSync('umount', [disk]);
    }
  });

  it.skipIf(process.getuid?.() === 0).each(['pulled', 'pulled/.work/old'])('says so if it cannot read the folder %s', async (path) => {
    writeFiles(to, { 'pulled/.work/old/x': '' });
    chmodSync(join(to, path), 0o000);
    const error = await failedPull(host.base, to);
    chmodSync(join(to, path), 0o755);
    expect([error.exitCode, error.message]).toEqual([3, expect.stringMatching(/pulled cannot be (?:read|written): EACCES/)]);
  });
});

describe('--blocks', () => {
  it.each([
    ['840000..', { from: 840_000, to: undefined }],
    ['840000..849999', { from: 840_000, to: 849_999 }],
    ['..849999', { from: undefined, to: 849_999 }],
    ['-2016..', { from: { last: 2016 }, to: undefined }],
    [undefined, { from: undefined, to: undefined }],
  ])('%s', (text, wanted) => expect(parseWanted(text)).toEqual(wanted));

  it.each(['', '..', '840000', '5..4', '-5..9', '-0..', '..-5', 'a..b', '1.5..2', '1e3..', '9'.repeat(17).concat('..')])(
    'refuses %j',
    (text) => expect(() => parseWanted(text)).toThrow(/must be heights/),
  );
});
