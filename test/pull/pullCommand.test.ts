/** Tests the pull command: flags, keys, output, signals, locks and full disks. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Flags } from '../../src/cli/flags.ts';
import { CliError } from '../../src/errors.ts';
import { PULL_COMMAND, runPull } from '../../src/pull/pullCommand.ts';
import { filesBelow, RecordingLog, temporaryFolder, tree, writeFiles } from '../support/build.ts';
import { run, runProcess, start } from '../support/cli.ts';
import { mountDisk } from '../support/disk.ts';
import { block, failedPull, PullClock, testPull } from '../support/pull.ts';
import { base, server, shortChain, to, useServer } from '../support/recordedServer.ts';

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

const wanted = { from: 1001, to: undefined };

useServer();

describe('npm run pull', () => {
  const flags = () => ['--from', base, '--to', to, '--rate', '0'];
  const work = temporaryFolder();

  it('limits its rate of requests', async () => {
    shortChain();
    const clock = new PullClock();
    const times: number[] = [];
    server.fault = () => void times.push(clock.now());
    await testPull(base, to, { wanted: { from: 1001, to: undefined }, rate: 50, concurrency: 1, clock });
    expect(times.length).toBeGreaterThan(10);
    expect(times).toEqual(times.map((_, i) => i * 20));
  });

  it('sends its key with every request, and never shows it', async () => {
    shortChain();
    const keys = new Set<unknown>();
    server.fault = (_, request) => {
      keys.add(`${request.headers['x-api-key']} ${request.headers['x-other']}`);
      return server.requests.length % 4 === 0 ? { kind: 'status', status: 503 } : undefined;
    };
    process.env['PULL_HEADERS'] = 'x-api-key: from the environment SECRET\r\nx-other: SECRET 2\r\n';
    try {
      const { code, said } = await runHere([...flags(), '--blocks', '1001..', '--confirmations', '0', '--header', 'X-Api-Key:  SECRET ']);
      expect(code).toBe(0);
      expect(said).not.toMatch(/SECRET/);
      expect(said).toMatch(/status 503/);
    } finally {
      delete process.env['PULL_HEADERS'];
    }
    expect([...keys]).toEqual(['SECRET SECRET 2']);
    for (const bad of ['SECRET', 'a b: SECRET', 'x-key: SECRET\nx-b: y']) {
      const { code, said } = await runHere([...flags(), '--header', bad]);
      expect([code, said]).toEqual([1, expect.not.stringContaining('SECRET')]);
    }
  });

  it.each([
    [[], /--from is missing/],
    [['--from', 'nonsense SECRET'], /--from must be a URL such as/],
    [['--from', 'ftp://user:SECRET@host'], /--from must be a URL such as/],
    [['--from', 'https://user:SECRET@host'], /without user, password, query and fragment/],
    [['--from', 'https://:SECRET@host'], /without user, password, query and fragment/],
    [['--from', 'https://host/?key=SECRET'], /without user, password, query and fragment/],
    [['--from', 'core:http://:SECRET@host'], /--from of a node must be core: and an http URL without user/],
    [['--from', 'core:http://host/#SECRET'], /--from of a node must be core: and an http URL without user/],
    [['--from', 'https://host', '--blocks', '7..3'], /--blocks "7\.\.3" must be heights/],
    [['--from', 'https://host', '--blocks', '-5..9'], /must be heights/],
    [['--from', 'https://host', '--blocks', '-0..'], /must be heights/],
    [['--from', 'https://host', '--rate', '-1'], /--rate/],
    [['--from', 'https://host', '--header', 'Connection: SECRET'], /--header Connection is not allowed/],
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
    const { code, said } = await runHere(['--from', base, '--to', folder]);
    expect([code, said]).toEqual([
      2,
      `${folder}/pulled has blocks from a Bitcoin Core node, so only a node can continue it\nGive another folder with --to, or remove ${folder}/pulled.`,
    ]);
  });

  it('reports its result in lines, or in JSON', async () => {
    shortChain();
    const { stdout, stderr } = await run('pull', [...flags(), '--blocks', '1001..'], work);
    expect(stdout.split('\n')).toEqual([
      `${base} has blocks up to 1010: 10 blocks to fetch.`,
      `${base} has no etchings, so builds of its blocks have none.`,
      expect.stringMatching(/^Fetched 10 blocks with 30 records \(0\.0 MB\) in [\d.]+ s\. .*\/input\/pulled has blocks 1001\.\.1010\.$/),
      expect.stringMatching(/^ {2}blocks +10 fetched, 0 pulled before were replaced$/),
      expect.stringMatching(/^ {2}records +30$/),
      expect.stringMatching(/^ {2}bytes +[\d,]+$/),
      expect.stringMatching(/^ {2}seconds +[\d.]+$/),
      expect.stringMatching(/^ {2}peak memory +[\d,]+ MB$/),
      '',
    ]);
    expect(stderr).toBe('');
    writeFileSync(join(to, 'sample.ndjson'), '');
    const second = await run('pull', [...flags(), '--log', 'json'], work);
    const lines = second.stdout
      .trimEnd()
      .split('\n')
      .map((line): unknown => JSON.parse(line));
    expect(lines).toEqual([
      expect.objectContaining({ event: 'looked', tip: 1010, blocks: 0, replaced: 0 }),
      expect.objectContaining({ event: 'pulled', blocks: 0, records: 0, held: [[1001, 1010]] }),
    ]);
    expect(JSON.parse(second.stderr)).toMatchObject({ level: 'notice', message: expect.stringMatching(/also has sample\.ndjson/) });
  });

  it('stops at Ctrl-C, and can continue', async () => {
    shortChain(1040);
    const child = start('pull', [...flags(), '--blocks', '1001..', '--concurrency', '2'], work);
    let error = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      error += chunk.toString();
    });
    server.fault = () => {
      if (server.requests.length === 30) child.kill('SIGINT');
      return server.requests.length >= 30 ? { kind: 'silence' } : undefined;
    };
    const [code] = await once(child, 'exit');
    expect([code, error]).toEqual([130, 'Error: stopped; fetched blocks are kept, and the same command continues from here\n']);
    server.fault = () => undefined;
    const held = filesBelow(join(to, 'pulled')).length;
    expect(held).toBeGreaterThan(0);
    expect(held).toBeLessThan(40);
    expect(await testPull(base, to)).toMatchObject({ blocks: 40 - held });
    const whole = join(temporaryFolder(), 'input');
    await testPull(base, whole, { wanted });
    expect(tree(to)).toEqual(tree(whole));
  });

  it('stops immediately in a folder that another pull uses', async () => {
    shortChain();
    const stopping = new AbortController();
    const asked = new Promise<void>((resolve) => {
      server.fault = () => {
        resolve();
        return { kind: 'silence' };
      };
    });
    const first = failedPull(base, to, { wanted, signal: stopping.signal });
    await asked;
    const { code, stderr } = await runProcess('pull', flags(), work);
    expect([code, stderr]).toEqual([
      3,
      expect.stringMatching(/^Error: another pull is using the folder .*\/input\/pulled \(process \d+\)/),
    ]);
    stopping.abort();
    expect((await first).exitCode).toBe(130);
    server.fault = () => undefined;
    expect(await testPull(base, to, { wanted })).toMatchObject({ blocks: 10 });
  });

  it('reports a full disk, and continues when there is space', async (context) => {
    const disk = join(temporaryFolder(), 'disk');
    if (!mountDisk(disk, '1m')) return context.skip('only root can make a small disk');
    try {
      shortChain();
      for (let height = 1001; height <= 1005; height += 1) server.blocks.set(height, block(height, 1000));
      const input = join(disk, 'input');
      writeFileSync(join(disk, 'filler'), Buffer.alloc(800_000));
      const error = await failedPull(base, input, { wanted });
      expect([error.exitCode, error.message]).toEqual([3, expect.stringMatching(/^the disk of .* is full$/)]);
      rmSync(join(disk, 'filler'));
      await testPull(base, input, { wanted });
      await testPull(base, to, { wanted });
      expect(tree(input)).toEqual(tree(to));
    } finally {
      execFileSync('umount', [disk]);
    }
  });

  it.skipIf(process.getuid?.() === 0).each(['pulled', 'pulled/1000', 'pulled/.work/old'])(
    'says so if it cannot read the folder %s',
    async (path) => {
      shortChain();
      writeFiles(to, { 'pulled/1000/x': '', 'pulled/.work/old/x': '' });
      chmodSync(join(to, path), 0o000);
      const error = await failedPull(base, to, { wanted });
      chmodSync(join(to, path), 0o755);
      expect([error.exitCode, error.message]).toEqual([3, expect.stringMatching(/pulled cannot be (?:read|written): EACCES/)]);
    },
  );
});
