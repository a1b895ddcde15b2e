/** Tests the recipes of hosting/own-server. test/hosts/docker.test.ts builds and runs the image. */
import { execFileSync, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { Flags } from '../../src/cli/flags.ts';
import { UPDATE_COMMAND } from '../../src/setup/updateCommand.ts';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { endOf, portOf, ROOT } from '../support/cli.ts';
import { sendTo } from '../support/server.ts';

const FOLDER = join(ROOT, 'hosting/own-server');
const recipe = (name: string) => readFileSync(join(FOLDER, name), 'utf8');

interface Service {
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly logging?: object;
  readonly healthcheck?: object;
}

let dist: string;
beforeAll(async () => {
  dist = join(temporaryFolder(), 'dist');
  await testBuild(dist, { inputs: [SAMPLE_INPUT] });
});

/** Runs the command of a recipe on a free port, requests a page, and ends the command like a service manager. */
async function checkCommand([program = '', ...args]: readonly string[], cwd: string): Promise<void> {
  expect(basename(program)).toBe('node');
  expect(args).toContain('3000');
  const own = args.map((arg) => ({ 3000: '0', dist, '0.0.0.0': '127.0.0.1' })[arg] ?? arg);
  // Sets only the environment variables that a service manager sets.
  const child = spawn(process.execPath, own, { cwd, env: { PATH: '/usr/bin:/bin' }, stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const answer = await sendTo(await portOf(child))('GET', '/runes/v1/blocks/2000007/activity?limit=60&offset=30');
    expect([answer.status, JSON.parse(answer.body)]).toEqual([200, expect.objectContaining({ total: 437, offset: 30 })]);
  } finally {
    child.kill('SIGTERM');
  }
  expect(await endOf(child)).toEqual([0, null]);
}

it('the systemd unit starts a server', async () => {
  const command = /^ExecStart=(.*)$/m.exec(recipe('rune-activity-mirror.service'))?.[1] ?? '';
  await checkCommand(command.split(' '), ROOT);
});

it('the systemd unit that follows a node calls the update command, which reads the settings', () => {
  const command = /^ExecStart=(.*)$/m.exec(recipe('rune-activity-mirror-follow.service'))?.[1] ?? '';
  const [program = '', script = '', name, ...args] = command.split(' ');
  expect([basename(program), script, name]).toEqual(['node', 'scripts/run.cjs', 'update']);
  expect(Flags.parse(UPDATE_COMMAND, args).has('follow')).toBe(true);
});

describe('the recipe for Docker with a node', () => {
  const services = (parse(recipe('compose.yaml'), { merge: true }) as { readonly services: Readonly<Record<string, Service>> }).services;

  it('writes settings to follow the node, and keeps them', async () => {
    const work = temporaryFolder();
    const [line = ''] = services['follow']?.command ?? [];
    const [prepare = '', update = ''] = line
      .replaceAll('$$', '$')
      .replaceAll('/app/rune-mirror.cjs', join(ROOT, 'scripts/run.cjs'))
      .split('exec ');
    const shell = (from = '') =>
      execFileSync('sh', ['-c', prepare], { cwd: work, env: { ...process.env, START_FROM: from }, stdio: 'pipe' });
    // Without the mirror's rows, there are no settings.
    expect(() => shell('no URL')).toThrow(/--from must be a URL/);
    expect(readdirSync(work)).toEqual([]);
    const settings = () => readFileSync(join(work, 'rune-mirror.json'), 'utf8');
    shell();
    const written = settings();
    expect(JSON.parse(written)).toMatchObject({ pull: { from: 'core:http://node:8332' }, build: { dialect: 'hiro', layout: 'archive' } });
    shell();
    expect(settings()).toBe(written);
    const [program, , name, ...args] = update.trim().split(' ');
    expect([program, name, Flags.parse(UPDATE_COMMAND, args).has('follow')]).toEqual(['node', 'update', true]);
  });

  it('serves when the first build is there, and limits all logs', async () => {
    const [line = ''] = services['server']?.command ?? [];
    const [wait = '', serve = ''] = line.split('exec ');
    execFileSync('sh', ['-c', wait], { cwd: join(dist, '..') });
    await checkCommand(serve.trim().replace('/app/rune-mirror.cjs', join(ROOT, 'scripts/run.cjs')).split(' '), join(dist, '..'));
    for (const service of Object.values(services)) {
      expect(service.logging).toMatchObject({ options: { 'max-size': '10m' } });
      expect(service.healthcheck).toBeDefined();
    }
  });

  it('runs a node that answers REST', () => {
    expect(services['node']?.command).toEqual(expect.arrayContaining(['-server', '-rest']));
  });

  it('prunes the node only if it continues the rows of a mirror, and serves on this machine only', () => {
    expect(services['node']?.command?.at(-1)).toMatch(/^-prune=\$\{START_FROM:\+[0-9]+\}$/);
    expect(services['server']).toMatchObject({ ports: ['127.0.0.1:3000:3000'], read_only: true, cap_drop: ['ALL'] });
    expect([services['node']?.ports, services['follow']?.ports]).toEqual([undefined, undefined]);
  });
});
