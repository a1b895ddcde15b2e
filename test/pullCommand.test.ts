import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { filesBelow, temporaryFolder } from './support/build.ts';
import { run, start } from './support/cli.ts';
import { testPull } from './support/pull.ts';
import { base, builtDigest, digest, server, shortChain, to, useRecordedServer } from './support/recordedServer.ts';

useRecordedServer();

describe('npm run pull', () => {
  const flags = () => ['--from', base, '--to', to, '--rate', '0'];
  const work = temporaryFolder();

  it('keeps to a polite rate', async () => {
    shortChain();
    const begun = performance.now();
    await testPull(base, to, { wanted: { from: 1001, to: undefined }, rate: 50 });
    // The first request goes at once, the others 20 ms apart.
    expect(performance.now() - begun).toBeGreaterThanOrEqual((server.requests.length - 1) * 20 - 5);
  });

  it('sends its key with every request, and never shows it', async () => {
    shortChain();
    const keys = new Set<unknown>();
    server.fault = (_, request) => {
      keys.add(`${request.headers['x-api-key']} ${request.headers['x-other']}`);
      return server.requests.length % 4 === 0 ? { kind: 'status', status: 503 } : undefined;
    };
    process.env['PULL_HEADERS'] = 'x-api-key: from the environment SECRET\nx-other: SECRET 2';
    try {
      for (const format of ['text', 'json']) {
        const { code, stdout, stderr } = await run(
          'pull',
          [...flags(), '--blocks', '1001..', '--log', format, '--header', 'X-Api-Key:  SECRET '],
          work,
        );
        expect(code).toBe(0);
        expect(stdout + stderr).not.toMatch(/SECRET/);
        expect(stderr).toMatch(/status 503/);
      }
    } finally {
      delete process.env['PULL_HEADERS'];
    }
    expect([...keys]).toEqual(['SECRET SECRET 2']);
    for (const bad of ['SECRET', 'a b: SECRET', 'x-key: SECRET\nx-b: y']) {
      const { code, stderr } = await run('pull', [...flags(), '--header', bad], work);
      expect([code, stderr]).toEqual([1, expect.not.stringContaining('SECRET')]);
    }
  });

  it.each([
    [[], /--from must be given/],
    [['--from', 'nonsense SECRET'], /--from must be a URL such as/],
    [['--from', 'ftp://user:SECRET@host'], /--from must be a URL such as/],
    [['--from', 'https://user:SECRET@host'], /without a user, a query and a fragment/],
    [['--from', 'https://host', '--blocks', '7..3'], /--blocks "7\.\.3" must be heights/],
    [['--from', 'https://host', '--blocks', '-5..9'], /must be heights/],
    [['--from', 'https://host', '--blocks', '-0..'], /must be heights/],
    [['--from', 'https://host', '--rate', '-1'], /--rate/],
    [['--from', 'https://host', '--header', 'Connection: SECRET'], /--header Connection is a header of the connection/],
    [['--from', 'postgres://user:12/SECRET@host/db'], /write \/ and @ in a password as %2F and %40/],
    [['--from', 'https://host', '--what'], /--what/],
  ])('refuses %j', async (args, message) => {
    const folder = temporaryFolder();
    const { code, stderr } = await run('pull', args, folder);
    expect([code, stderr]).toEqual([1, expect.stringMatching(message)]);
    expect(stderr).not.toMatch(/SECRET/);
    expect(filesBelow(folder)).toEqual([]);
  });

  it('says what it did in lines, or in JSON', async () => {
    shortChain();
    const { stdout, stderr } = await run('pull', [...flags(), '--blocks', '1001..'], work);
    expect(stdout.split('\n')).toEqual([
      `${base} has blocks up to 1010: 10 blocks to fetch.`,
      expect.stringMatching(/^Fetched 10 blocks with 30 records \(0\.0 MB\) in [\d.]+ s\. .*\/input\/pulled holds blocks 1001\.\.1010\.$/),
      expect.stringMatching(/^ {2}blocks +10 fetched, 0 of those held are others now$/),
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
    expect(JSON.parse(second.stderr)).toMatchObject({ level: 'notice', message: expect.stringMatching(/also holds sample\.ndjson/) });
  });

  it('stops at Ctrl-C, and goes on', async () => {
    const child = start('pull', [...flags(), '--concurrency', '2'], work);
    let error = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      error += chunk.toString();
    });
    server.fault = () => {
      if (server.requests.length === 30) child.kill('SIGINT');
      return server.requests.length >= 30 ? { kind: 'silence' } : undefined;
    };
    const [code] = await once(child, 'exit');
    expect([code, error]).toEqual([130, 'Error: stopped; what was fetched is kept, and the same command goes on from here\n']);
    server.fault = () => undefined;
    const held = filesBelow(join(to, 'pulled')).length;
    expect(held).toBeGreaterThan(0);
    expect(held).toBeLessThan(40);
    expect(await testPull(base, to)).toMatchObject({ blocks: 40 - held });
    expect(await builtDigest()).toBe(digest);
  });

  it('in a folder that another pull works on stops at once', async () => {
    let release: () => void = () => undefined;
    const waiting = new Promise<void>((resolve) => {
      release = resolve;
    });
    const first = start('pull', flags(), work);
    await new Promise<void>((resolve) => {
      server.fault = () => {
        resolve();
        return { kind: 'silence' };
      };
    });
    const { code, stderr } = await run('pull', flags(), work);
    expect([code, stderr]).toEqual([
      3,
      expect.stringMatching(/^Error: another pull is at work on the folder .*\/input\/pulled \(process \d+\)/),
    ]);
    release();
    await waiting;
    first.kill('SIGINT');
    expect((await once(first, 'exit'))[0]).toBe(130);
    server.fault = () => undefined;
    expect(await testPull(base, to)).toMatchObject({ blocks: 40 });
  });
});
