/** Tests the settings file: which flags it replaces, which values it refuses, and which commands write and use it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Flags } from '../../../src/cli/flags.ts';
import { withSettings } from '../../../src/cli/settings.ts';
import { parseSettings, type Settings, settingsSchema } from '../../../src/cli/settingsFile.ts';
import { BUILD_COMMAND, buildOptions } from '../../../src/engine/buildCommand.ts';
import { UsageError } from '../../../src/errors.ts';
import { program } from '../../../src/program.ts';
import { PULL_COMMAND } from '../../../src/pull/pullCommand.ts';
import { INIT_COMMAND, settingsOf } from '../../../src/setup/initCommand.ts';
import { temporaryFolder, testBuild, writeFiles } from '../../support/build.ts';
import { endOf, ROOT, runProcess, start } from '../../support/cli.ts';
import { FakeNode } from '../../support/fakeNode.ts';
import { writeRows } from '../../support/nodeRows.ts';
import { extended, memoryOf } from '../../support/runeChains.ts';
import { randomFor } from '../../support/seed.ts';
import { type LocalHost, startServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const SETTINGS: Settings = {
  source: 'core:http://127.0.0.1:8332',
  blocks: '840000..',
  layout: 'archive',
  dialect: 'hiro',
  siteUrl: 'https://mirror.example/',
};

describe('settings', () => {
  const optionsOf = (settings: Settings, ...args: string[]) =>
    buildOptions(withSettings(Flags.parse(BUILD_COMMAND, args), BUILD_COMMAND, settings));
  const pullFlags = (...args: string[]) => withSettings(Flags.parse(PULL_COMMAND, args), PULL_COMMAND, SETTINGS);

  it('replace flags of a build, but not flags that the user gives', () => {
    const { site, siteUrl, lists, blocks } = optionsOf(SETTINGS);
    expect([site.layout, site.dialect, siteUrl, lists, blocks]).toEqual(['archive', 'hiro', 'https://mirror.example/', true, undefined]);
    expect(optionsOf(SETTINGS, '--dialect', '0x', '--layout', 'files').site).toMatchObject({ layout: 'files', dialect: 'contract' });
  });

  it.each([
    [{ lists: true }, [], true],
    [{ lists: false }, [], false],
    [{}, [], false],
    [{ lists: false, layout: 'archive' }, [], false],
    [{ layout: 'archive' }, [], true],
    [{ lists: true, layout: 'archive' }, [], true],
    [{ lists: true, layout: 'files' }, ['--layout', 'archive'], true],
    [{ lists: false, layout: 'files' }, ['--layout', 'archive'], false],
    [{ lists: true, layout: 'archive' }, ['--layout', 'files'], true],
    [{ lists: false, layout: 'archive' }, ['--lists'], true],
    [{ lists: true }, ['--no-lists'], false],
  ] as const)('%j with the flags %j give lists: %s', (settings, args, expected) => {
    expect(optionsOf(settings, ...args).lists).toBe(expected);
  });

  it('replace flags of a pull that are not given, and no build gets the setting of blocks', () => {
    const flags = pullFlags();
    expect([flags.one('from'), flags.one('blocks')]).toEqual([SETTINGS.source, '840000..']);
    const other = pullFlags('--from', 'https://host', '--blocks', '3..');
    expect([other.one('from'), other.one('blocks')]).toEqual(['https://host', '3..']);
  });

  it.each([
    [{ sorce: 'https://host' }, 'unknown setting "sorce"; did you mean source?'],
    [{ colour: 'red' }, 'unknown setting "colour"'],
    [{ source: '' }, 'source: must not be empty'],
    [{ source: 'postgres://user:secret@host/db' }, 'source: must not have a password'],
    [{ source: 'core:http://user:secret@127.0.0.1:8332' }, 'source: must not have a password'],
    [{ source: 'postgres://host/db?password=secret' }, 'source: must not have a password'],
    [{ upload: ':s3,secret_access_key=secret:bucket' }, 'upload: must name a remote'],
    [{ upload: 'r2,ssh="sh secret":bucket' }, 'upload: must name a remote'],
    [{ upload: '-v:bucket' }, 'upload: must name a remote'],
    [{ siteUrl: 'mirror.example' }, 'siteUrl: must be an http or https URL'],
    [{ siteUrl: 'https://user:secret@mirror.example/' }, 'siteUrl: must be an http or https URL'],
    [{ dialect: 'Hiro' }, 'dialect: must be one of 0x, contract, hiro'],
    [{ lists: 'yes' }, 'lists: must be true or false'],
    [{ source: 3 }, 'source: must be a string'],
    [{ upload: null }, 'upload: must be a string'],
    [[], 'must be a JSON object with settings'],
    [3, 'must be a JSON object with settings'],
    [null, 'must be a JSON object with settings'],
    ['x', 'must be a JSON object with settings'],
  ])('refuse %j without showing a secret', (settings, message) => {
    const parse = () => parseSettings(JSON.stringify(settings), (field) => (field === '' ? 'a.json' : `a.json: ${field}`));
    expect(parse).toThrow(UsageError);
    expect(parse).toThrow(`a.json: ${message}`);
    expect(parse).not.toThrow('secret');
  });

  it('have a schema for editors, which is in the documents and accepts them', () => {
    expect(JSON.parse(readFileSync(join(ROOT, program.settingsSchema), 'utf8'))).toEqual(JSON.parse(settingsSchema()));
    const isRight = new Ajv2020().compile(JSON.parse(settingsSchema()));
    expect([isRight(SETTINGS), isRight({ ...SETTINGS, sorce: 1 })]).toEqual([true, false]);
  });
});

it('init asks what no flag says, again after a wrong answer, and says what is wrong', async () => {
  const answers = ['localhost:3000', 'http://127.0.0.1:8332', 'core:http://127.0.0.1:8332', 'x', '', 'Hiro', '', '', '', ' r2:b '];
  const asked: string[] = [];
  const answered = (...args: string[]) =>
    settingsOf(Flags.parse(INIT_COMMAND, args), parseSettings, (text) => {
      asked.push(text);
      return Promise.resolve(answers.shift() ?? '');
    });
  const all = { source: 'core:http://127.0.0.1:8332', dialect: 'hiro', layout: 'archive', upload: 'r2:b' };
  expect(await answered()).toEqual(all);
  const wrong = asked.filter((text) => text.includes('\n')).map((text) => text.split('\n')[0]);
  expect(wrong).toEqual([
    expect.stringContaining('--source must be a URL such as'),
    expect.stringContaining('Write core: before the URL'),
    expect.stringContaining('--blocks "x" must be heights'),
    expect.stringContaining('--dialect: must be one of 0x, contract, hiro'),
  ]);
  asked.length = 0;
  const given = await answered('--source', 'https://host', '--dialect', '0x', '--upload', 'r2:b');
  expect([given, asked.length]).toEqual([{ ...all, source: 'https://host', blocks: '-1008..', dialect: '0x' }, 3]);
  await expect(answered('--source', 'x')).rejects.toThrow('--source must be a URL such as');
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
    expect(await runProcess('init', [], work)).toMatchObject({ code: 1, stderr: expect.stringContaining('--source is missing') });
    await done('init', ['--source', source, '--blocks', '3..'], work);
    expect(JSON.parse(readFileSync(settings, 'utf8'))).toEqual({
      $schema: './docs/rune-mirror.schema.json',
      source,
      blocks: '3..',
      dialect: 'hiro',
      layout: 'archive',
    });
    expect(await runProcess('init', ['--source', 'https://host'], work)).toMatchObject({ code: 2 });
    const { stdout } = await done('update', [], work);
    expect(stdout).toMatch(/Updated the mirror in [0-9.]+ s; nothing was uploaded, because rune-mirror.json has no value of "upload"\.\n$/);
    const manifest = () => JSON.parse(readFileSync(join(work, 'dist/runes/v1/manifest.json'), 'utf8')) as object;
    expect(manifest()).toMatchObject({ layout: 'archive', dialect: 'hiro', tip: { height: tip } });
    const before = manifest();
    writeFileSync(settings, JSON.stringify({ source, dialect: '0x', layout: 'archive' }));
    const refused = await runProcess('update', [], work);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('is a mirror in dialect hiro, not 0x')]);
    expect(refused.stderr).toContain('build ended with exit code 2');
    expect(refused.stderr).not.toContain('did not run');
    expect(manifest()).toEqual(before);
    await done('build', ['--input', 'input/pulled', '--change-dialect'], work);
    expect(manifest()).toMatchObject({ dialect: 'contract' });
    writeFileSync(settings, JSON.stringify({ source: 'http://127.0.0.1:8332', upload: 'r2:bucket' }));
    expect((await runProcess('update', [], work)).stderr).toContain(
      'pull ended with exit code 1\n  These steps did not run: build, upload.',
    );
  });

  it('update --follow keeps the mirror at the tip of a node, also if an upload fails, until SIGTERM', async () => {
    const work = temporaryFolder();
    const next = randomFor('following with settings');
    const chain = extended([], 8, (below) => Math.floor(next() * below));
    const node = await FakeNode.start(chain.slice(0, 6), { network: 'regtest' });
    const settings = { source: `core:${node.url}`, dialect: 'hiro', layout: 'archive', upload: 'nowhere:bucket' };
    writeFiles(work, { 'rune-mirror.json': JSON.stringify(settings) });
    const child = start('update', ['--follow'], work);
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text: Buffer) => (said += text.toString()));
    const failed = /upload ended with exit code 1; trying again after the next block/g;
    try {
      await until(() => said.match(failed)?.length === 1, child);
      expect(said).toContain('Following');
      node.replace(chain);
      await until(() => said.match(failed)?.length === 2, child);
      expect(said).toContain('2 blocks to 7: ');
      child.kill('SIGTERM');
      expect(await endOf(child)).toEqual([0, null]);
    } finally {
      child.kill('SIGKILL');
      await node.close();
    }
    const manifest = JSON.parse(readFileSync(join(work, 'dist/runes/v1/manifest.json'), 'utf8')) as object;
    expect(manifest).toMatchObject({ layout: 'archive', dialect: 'hiro', tip: { height: 7 } });
    writeFiles(work, { 'rune-mirror.json': JSON.stringify({ source, upload: 'nowhere:bucket' }) });
    expect(await runProcess('update', ['--follow'], work)).toMatchObject({ code: 1, stderr: expect.stringContaining('needs a node') });
  });

  it('name the settings if a flag that they replace is wrong, and the file if the file is wrong', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'other.json': JSON.stringify({ source, blocks: 'x' }) });
    const wrong = await runProcess('pull', ['--config', 'other.json'], work);
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('Flags that are not given come from other.json.')]);
    const missing = await runProcess('build', ['--config', 'none.json'], work);
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('the settings file none.json cannot be read')]);
  });
});
