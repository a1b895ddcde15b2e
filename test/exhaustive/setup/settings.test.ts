/** Tests the settings file: which flags it replaces, which values it refuses, and which commands write and use it. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attempt } from '../../../src/attempt.ts';
import { type Command, Flags } from '../../../src/cli/flags.ts';
import { settingsIn, withSettings } from '../../../src/cli/settings.ts';
import { BUILD_COMMAND, buildOptions } from '../../../src/engine/buildCommand.ts';
import { UsageError } from '../../../src/errors.ts';
import { PULL_COMMAND, parseFrom } from '../../../src/pull/pullCommand.ts';
import { INIT_COMMAND, settingsOf } from '../../../src/setup/initCommand.ts';
import { settingsSchema } from '../../../src/setup/settingsSchema.ts';
import { remoteOf, UPDATE_COMMAND } from '../../../src/setup/updateCommand.ts';
import { temporaryFolder, testBuild, writeFiles } from '../../support/build.ts';
import { endOf, runProcess, saidBy, start } from '../../support/cli.ts';
import { FakeNode } from '../../support/fakeNode.ts';
import { writeRows } from '../../support/nodeRows.ts';
import { freePort } from '../../support/ports.ts';
import { extended, memoryOf } from '../../support/runeChains.ts';
import { randomFor } from '../../support/seed.ts';
import { type LocalHost, listening, sendTo, startServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const SETTINGS = {
  pull: { from: 'core:http://127.0.0.1:8332', blocks: '840000..', rate: 5 },
  build: { layout: 'archive', dialect: 'hiro', 'site-url': 'https://mirror.example/', 'key-file': ['a', 'b'] },
  update: { upload: 'r2:my-bucket', log: 'json' },
};

/** Returns the flags of a command line with the settings of a file. */
const flagsOf = (command: Command, args: readonly string[], settings: unknown) =>
  withSettings(Flags.parse(command, args), command, settingsIn(settings, command, 'a.json'));

describe('settings', () => {
  it('replace flags of their command, but not flags that the user gives', () => {
    const flags = flagsOf(BUILD_COMMAND, ['--dialect', '0x'], SETTINGS);
    expect([flags.one('layout'), flags.one('dialect'), flags.all('key-file'), flags.one('blocks')]).toEqual([
      'archive',
      '0x',
      ['a', 'b'],
      undefined,
    ]);
    const pull = flagsOf(PULL_COMMAND, ['--blocks', '3..'], SETTINGS);
    expect([pull.one('from'), pull.one('blocks'), pull.integer('rate', 1, 0, 9)]).toEqual(['core:http://127.0.0.1:8332', '3..', 5]);
    const update = flagsOf(UPDATE_COMMAND, [], SETTINGS);
    expect([update.one('upload'), update.one('log'), update.has('follow')]).toEqual(['r2:my-bucket', 'json', false]);
    expect(flagsOf(BUILD_COMMAND, [], { $schema: 'x' }).one('layout')).toBeUndefined();
  });

  it('can have each flag of pull, build and update, as one value', () => {
    for (const command of [PULL_COMMAND, BUILD_COMMAND, UPDATE_COMMAND])
      for (const { name, value } of command.flags.filter((one) => !['config', 'help'].includes(one.name))) {
        const { section = '' } = command;
        const flags = flagsOf(command, [], { [section]: { [name]: value === undefined ? true : 'x' } });
        expect([name, flags.all(name)]).toEqual([name, [value === undefined ? 'true' : 'x']]);
      }
  });

  it.each([
    [{ lists: true }, [], true],
    [{ lists: false }, [], false],
    [{}, [], false],
    [{ lists: false, layout: 'archive' }, [], false],
    [{ 'no-lists': true, layout: 'archive' }, [], false],
    [{ 'no-lists': false, layout: 'files' }, [], true],
    [{ layout: 'archive' }, [], true],
    [{ lists: true, layout: 'archive' }, [], true],
    [{ lists: true, layout: 'files' }, ['--layout', 'archive'], true],
    [{ lists: false, layout: 'files' }, ['--layout', 'archive'], false],
    [{ lists: true, layout: 'archive' }, ['--layout', 'files'], true],
    [{ lists: false, layout: 'archive' }, ['--lists'], true],
    [{ lists: true }, ['--no-lists'], false],
    [{ full: false, lists: true }, [], true],
  ] as const)('%j with the flags %j give lists: %s', (build, args, expected) => {
    expect(buildOptions(flagsOf(BUILD_COMMAND, args, { build })).lists).toBe(expected);
  });

  it.each([
    [{ bild: {} }, 'a.json: unknown key "bild"; did you mean build?; keys are pull, build, update'],
    [{ source: 'https://host' }, 'a.json: unknown key "source"; keys are pull, build, update'],
    [{ pull: 'https://host' }, 'a.json: pull must be an object with flags of pull'],
    [{ build: { layuot: 'files' } }, 'a.json: build has no flag "layuot"; did you mean layout?'],
    [{ build: { from: 'https://host' } }, 'a.json: build has no flag "from"'],
    [{ build: { config: 'x' } }, 'a.json: build has no flag "config"'],
    [{ build: { lists: 'yes' } }, 'a.json: build.lists must be true or false'],
    [{ build: { full: null } }, 'a.json: build.full must be true or false'],
    [{ build: { layout: false } }, 'a.json: build.layout must be a string or a number'],
    [{ build: { layout: ['files'] } }, 'a.json: build.layout must be a string or a number'],
    [{ build: { input: [] } }, 'a.json: build.input must be a string or a list of strings'],
    [{ build: { input: ['a', {}] } }, 'a.json: build.input must be a string or a list of strings'],
    [[], 'a.json must be a JSON object'],
    [3, 'a.json must be a JSON object'],
    [null, 'a.json must be a JSON object'],
    ['x', 'a.json must be a JSON object'],
  ])('refuse %j', (settings, message) => {
    const parse = () => settingsIn(settings, BUILD_COMMAND, 'a.json');
    expect(parse).toThrow(UsageError);
    expect(parse).toThrow(message);
  });

  it.each([
    [{ from: 'core:http://user:secret@127.0.0.1:8332' }, parseFrom],
    [{ from: 'https://user:secret@host' }, parseFrom],
  ])('show no secret of %j', (pull, parse) => {
    const run = () => parse(flagsOf(PULL_COMMAND, [], { pull }).one('from'));
    expect(run).toThrow(UsageError);
    expect(run).not.toThrow('secret');
  });

  it.each([':s3,secret_access_key=secret:bucket', 'r2,ssh="sh secret":bucket', '-v:bucket secret', 'bucket/secret'])(
    'refuse %s as a remote without showing it',
    (upload) => {
      const run = () => remoteOf(flagsOf(UPDATE_COMMAND, [], { update: { upload } }));
      expect(run).toThrow('--upload must name a remote');
      expect(run).not.toThrow('secret');
    },
  );

  it('have a schema for editors, which accepts them', () => {
    const isRight = new Ajv2020().compile(JSON.parse(settingsSchema()));
    expect([isRight({ $schema: 'x', ...SETTINGS }), isRight({ ...SETTINGS, sorce: 1 }), isRight({ build: { layuot: 'files' } })]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

it('init asks what no flag says, again after a wrong answer, and says what is wrong', async () => {
  const answers = ['localhost:3000', 'http://127.0.0.1:8332', 'core:http://127.0.0.1:8332', 'x', '', 'Hiro', '', '', '', ' r2:b '];
  const asked: string[] = [];
  const answered = (...args: string[]) =>
    settingsOf(Flags.parse(INIT_COMMAND, args), (text) => {
      asked.push(text);
      return Promise.resolve(answers.shift() ?? '');
    });
  const all = {
    pull: { from: 'core:http://127.0.0.1:8332' },
    build: { dialect: 'hiro', layout: 'archive' },
    update: { upload: 'r2:b' },
  };
  expect(await answered()).toEqual(all);
  const wrong = asked.filter((text) => text.includes('\n')).map((text) => text.split('\n')[0]);
  expect(wrong).toEqual([
    expect.stringContaining('--from must be a URL such as'),
    expect.stringContaining('Write core: before the URL'),
    expect.stringContaining('--blocks "x" must be heights'),
    expect.stringContaining('--dialect "Hiro" must be one of 0x, contract, hiro; did you mean hiro?'),
  ]);
  asked.length = 0;
  const given = await answered('--from', 'https://host', '--dialect', '0x', '--upload', 'r2:b');
  const mirror = { pull: { from: 'https://host', blocks: '-1008..' }, build: { dialect: '0x', layout: 'archive' }, update: all.update };
  expect([given, asked.length]).toEqual([mirror, 3]);
  await expect(answered('--from', 'x')).rejects.toThrow('--from must be a URL such as');
});

/** Runs a command in its own process. Throws if its exit code is not 0. */
async function done(command: string, args: readonly string[], cwd: string) {
  const finished = await runProcess(command, args, cwd);
  expect([finished.code, finished.stderr]).toEqual([0, expect.any(String)]);
  return finished;
}

describe('commands', () => {
  let server: LocalHost;
  let source: string;
  let tip: number;
  beforeAll(async () => {
    const [work, out] = [temporaryFolder(), join(temporaryFolder(), 'dist')];
    const next = randomFor('mirrors with settings');
    const memory = memoryOf(extended([], 8, (below) => Math.floor(next() * below)));
    writeRows(memory, work);
    tip = memory.rows.at(-1)?.block_height ?? 0;
    await testBuild(out, { inputs: [work], parquet: true });
    server = await startServer(out);
    source = `http://127.0.0.1:${server.port}`;
  });
  afterAll(() => server.close());

  it('init writes the file that update uses, and neither command replaces changed files', async () => {
    const work = temporaryFolder();
    const settings = join(work, 'rune-mirror.json');
    expect(await runProcess('update', [], work)).toMatchObject({ code: 1, stderr: expect.stringContaining('npm run init') });
    expect(await runProcess('init', [], work)).toMatchObject({ code: 1, stderr: expect.stringContaining('--from is missing') });
    await done('init', ['--from', source, '--blocks', '3..'], work);
    expect(JSON.parse(readFileSync(settings, 'utf8'))).toEqual({
      $schema: './docs/rune-mirror.schema.json',
      pull: { from: source, blocks: '3..' },
      build: { dialect: 'hiro', layout: 'archive' },
    });
    expect(await runProcess('init', ['--from', 'https://host'], work)).toMatchObject({ code: 2 });
    const { stdout } = await done('update', [], work);
    expect(stdout).toMatch(
      /Updated the mirror in [0-9.]+ s; nothing was uploaded, because --upload and rune-mirror.json name no remote\.\n$/,
    );
    const manifest = () => JSON.parse(readFileSync(join(work, 'dist/runes/v1/manifest.json'), 'utf8')) as object;
    expect(manifest()).toMatchObject({ layout: 'archive', dialect: 'hiro', tip: { height: tip } });
    const before = manifest();
    writeFileSync(settings, JSON.stringify({ pull: { from: source }, build: { dialect: '0x', layout: 'archive' } }));
    const refused = await runProcess('update', [], work);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('is a mirror in dialect hiro, not 0x')]);
    expect(refused.stderr).toContain('build ended with exit code 2');
    expect(refused.stderr).not.toContain('did not run');
    expect(manifest()).toEqual(before);
    await done('build', ['--input', 'input/pulled', '--change-dialect'], work);
    expect(manifest()).toMatchObject({ dialect: 'contract' });
    // Nothing answers there, so a pull would try for minutes.
    writeFileSync(settings, JSON.stringify({ pull: { from: 'core:http://127.0.0.1:1' }, build: { layout: 'tar' } }));
    expect(await runProcess('update', [], work)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('--layout "tar" must be one of'),
    });
    writeFileSync(settings, JSON.stringify({ pull: { from: 'http://127.0.0.1:8332' }, update: { upload: 'r2:bucket' } }));
    expect((await runProcess('update', [], work)).stderr).toContain(
      'pull ended with exit code 1\n  These steps did not run: build, upload.',
    );
  });

  /** Starts `update --follow` for a node, with an upload that fails. */
  async function following(args: readonly string[] = [], blocks = '0..') {
    const work = temporaryFolder();
    const next = randomFor('following with settings');
    const chain = extended([], 8, (below) => Math.floor(next() * below));
    const node = await FakeNode.start(chain.slice(0, 6), { network: 'regtest' });
    const settings = {
      pull: { from: `core:${node.url}`, to: 'data', blocks },
      build: { dialect: 'hiro', layout: 'archive', out: 'site' },
      update: { upload: 'nowhere:bucket' },
    };
    writeFiles(work, { 'rune-mirror.json': JSON.stringify(settings) });
    const child = start('update', ['--follow', ...args], work);
    return { work, node, chain, child, said: saidBy(child) };
  }

  it.each([
    ['text', 'SIGTERM'],
    ['json', 'SIGINT'],
  ] as const)(
    'update --follow with --log %s keeps the mirror at the tip of a node, also if an upload fails, until %s',
    async (format, signal) => {
      const metrics = await freePort();
      const { work, node, chain, child, said } = await following(['--log', format, '--metrics', String(metrics)]);
      const failures = () =>
        said.stderr.match(/upload ended with exit code 3; trying again in \d+ s, or after the next block/g)?.length ?? 0;
      try {
        await until(() => failures() > 0, child);
        expect(said.stdout).toContain('Following');
        node.replace(chain);
        // On a slow machine, the upload is tried again before the new blocks are built.
        await until(() => said.stdout.includes('2 blocks to 7: ') && failures() > 1, child);
        const { body } = await sendTo(metrics)('GET', '/metrics');
        expect(body).toContain('rune_mirror_height 7\n');
        expect(body).toMatch(/rune_mirror_failures_total\{step="upload"\} [1-9]\d*\n/);
        expect(body).toContain('rune_mirror_failures_total{step="build"} 0\n');
        expect(body).toMatch(/rune_mirror_step_timestamp_seconds\{step="build"\} \d{10}/);
        expect(body).toContain('rune_mirror_step_timestamp_seconds{step="upload"} 0\n');
        expect(body).toMatch(/rune_mirror_pull_peak_memory_bytes \d{8,}\n/);
        child.kill(signal);
        expect(await endOf(child)).toEqual([0, null]);
      } finally {
        child.kill('SIGKILL');
        await node.close();
      }
      for (const line of `${said.stdout}${said.stderr}`.trim().split('\n')) {
        const entry = attempt(() => JSON.parse(line) as { readonly time: string; readonly level: string });
        expect([line, entry !== undefined]).toEqual([line, format === 'json']);
        if (entry === undefined) continue;
        expect(entry.time).toMatch(/^2\d{3}-\d{2}-\d{2}T[\d:.]+Z$/);
        expect([line, entry.level === 'error']).toEqual([line, line.includes('trying again in')]);
      }
      const manifest = JSON.parse(readFileSync(join(work, 'site/runes/v1/manifest.json'), 'utf8')) as object;
      expect(manifest).toMatchObject({ layout: 'archive', dialect: 'hiro', tip: { height: 7 } });
      writeFiles(work, { 'rune-mirror.json': JSON.stringify({ pull: { from: source }, update: { upload: 'nowhere:bucket' } }) });
      expect(await runProcess('update', ['--follow'], work)).toMatchObject({ code: 1, stderr: expect.stringContaining('needs a node') });
    },
  );

  it.each([
    [['--follow', '--log', 'json'], 'SIGINT'],
    [[], 'SIGTERM'],
  ] as const)('update %j says once that it was stopped in the first pull, by %s', async (args, signal) => {
    const work = temporaryFolder();
    let isAsked = false;
    const silent = await listening(
      createServer(() => {
        isAsked = true;
      }),
    );
    writeFiles(work, { 'rune-mirror.json': JSON.stringify({ pull: { from: `core:${silent.url}` }, update: { upload: 'r2:bucket' } }) });
    const child = start('update', args, work);
    const said = saidBy(child);
    try {
      await until(() => isAsked, child);
      child.kill(signal);
      expect(await endOf(child)).toEqual([130, null]);
    } finally {
      child.kill('SIGKILL');
      await silent.close();
    }
    const text = 'stopped; fetched blocks are kept, and the same command continues from here';
    if (args.length === 0) expect(said.stderr).toBe(`Error: ${text}\n`);
    else expect(JSON.parse(said.stderr)).toMatchObject({ level: 'error', event: 'error', message: text, exit_code: 130 });
  });

  it('update --follow uploads nothing before there is a build', async () => {
    const { node, chain, child, said } = await following([], '7..');
    try {
      await until(() => said.stdout.includes('Following'), child);
      node.replace(chain);
      await until(() => said.stderr.includes('upload ended with exit code 3'), child);
      expect(said.stderr).not.toContain('build not found');
    } finally {
      child.kill('SIGKILL');
      await node.close();
    }
  });

  it('the pull of update --follow ends when its command is killed', async () => {
    const { node, child, said } = await following();
    try {
      await until(() => said.stdout.includes('Following'), child);
      const pids = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n');
      const [pull = 0] = pids
        .map((line) => line.trim().split(/ +/).map(Number))
        .flatMap(([pid = 0, parent]) => (parent === child.pid ? [pid] : []));
      expect(pull).toBeGreaterThan(0);
      child.kill('SIGKILL');
      await until(() => attempt(() => process.kill(pull, 0)) === undefined);
    } finally {
      child.kill('SIGKILL');
      await node.close();
    }
  });

  it('name the settings if a flag that they replace is wrong, and the file if the file is wrong', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'other.json': JSON.stringify({ pull: { from: source, blocks: 'x' } }) });
    const wrong = await runProcess('pull', ['--config', 'other.json'], work);
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('Flags that are not given come from other.json.')]);
    const missing = await runProcess('build', ['--config', 'none.json'], work);
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('the settings file none.json cannot be read')]);
  });
});
