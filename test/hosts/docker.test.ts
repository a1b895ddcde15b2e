/**
 * Tests the image of hosting/own-server. buildah builds it from its recipe, and its commands run in it. The base image has Node and npm of
 * this machine, because only npm packages can be downloaded here.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { folderOnDisk, testBuild, tree } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { ROOT } from '../support/cli.ts';
import { findProgram, startProgram } from './plainHost.ts';

const work = folderOnDisk();
const dist = join(work, 'dist');
const NATIVE = join(ROOT, 'node_modules/@duckdb/node-bindings-linux-x64');
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
/** Programs that npm packages and builds call. */
const SHELL = ['/bin/sh', '/bin/sync', '/usr/bin/env'];
const STORAGE = ['--storage-driver', 'vfs', '--root', join(work, 'images'), '--runroot', join(work, 'runs')];
let program: string;
let container: string;
let healthcheck: string[];
let command: string[];

const buildah = (...args: readonly string[]): string =>
  execFileSync(program, [...STORAGE, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1e9 }).trim();

/** Returns the arguments for buildah that run a command in the container, with the folder `data` mounted. */
const inContainer = (data: string, ...args: readonly string[]): string[] => [
  ...STORAGE,
  ...['run', '--isolation', 'chroot', '--volume', `${data}:/data:rw`, container, '--', ...args],
];

/** Returns the paths of the shared libraries that these programs load. */
function librariesOf(...programs: readonly string[]): string[] {
  const found = spawnSync('ldd', programs, { encoding: 'utf8' }).stdout.match(/(?<=\s)\/\S+(?= \()/g);
  return [...new Set(found)];
}

/** Makes the root folder of a base image: Node, npm, a shell, and the same user as in Node's own images. */
function makeBase(): string {
  const base = join(work, 'base');
  const put = (from: string, to: string) => {
    mkdirSync(dirname(join(base, to)), { recursive: true });
    cpSync(realpathSync(from), join(base, to), { recursive: true });
  };
  const npm = dirname(dirname(realpathSync(findProgram('npm'))));
  put(npm, '/usr/lib/npm');
  put(process.execPath, '/usr/bin/node');
  for (const one of SHELL) put(one, one);
  const libraries = librariesOf(process.execPath, ...SHELL, join(NATIVE, 'duckdb.node'), join(NATIVE, 'libduckdb.so'));
  for (const library of libraries.filter((path) => !path.startsWith(ROOT))) put(library, library);
  if (existsSync(CERTIFICATES)) put(CERTIFICATES, CERTIFICATES);
  mkdirSync(join(base, 'etc'), { recursive: true });
  writeFileSync(join(base, 'usr/bin/npm'), '#!/bin/sh\nexec node /usr/lib/npm/bin/npm-cli.js "$@"\n', { mode: 0o755 });
  writeFileSync(join(base, 'etc/passwd'), 'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n');
  mkdirSync(join(base, 'tmp'), { mode: 0o777 });
  return base;
}

beforeAll(async () => {
  program = findProgram('buildah');
  const scratch = buildah('from', 'scratch');
  buildah('add', '--quiet', scratch, makeBase(), '/');
  buildah('config', '--env', 'PATH=/usr/bin:/bin', '--env', `NODE_EXTRA_CA_CERTS=${CERTIFICATES}`, scratch);
  buildah('commit', '--quiet', '--rm', scratch, 'docker.io/library/node:24-slim');
  // Uses the npm configuration and cache of this machine.
  const mounts = ['.npmrc', '.npm'].filter((name) => existsSync(join(homedir(), name)));
  const volumes = mounts.flatMap((name) => ['--volume', `${join(homedir(), name)}:/root/${name}`]);
  const [, ...args] =
    /^# {5}docker (.*) \.$/m.exec(readFileSync(join(ROOT, 'hosting/own-server/Dockerfile'), 'utf8'))?.[1]?.split(' ') ?? [];
  buildah('build', '--isolation', 'chroot', '--pull-never', '--format', 'docker', ...volumes, ...args, ROOT);
  container = buildah('from', '--pull-never', 'rune-mirror');
  const { Docker } = JSON.parse(buildah('inspect', container)) as { readonly Docker: { readonly config: Config } };
  const { Entrypoint, Cmd, Healthcheck } = Docker.config;
  command = [...Entrypoint, ...Cmd];
  healthcheck = Healthcheck.Test.slice(1);
  await testBuild(dist, { inputs: [SAMPLE_INPUT], parquet: true });
}, 600_000);
afterAll(() => {
  if (container !== undefined) buildah('rm', '--all');
  if (program !== undefined) buildah('rmi', '--all', '--force');
});

interface Config {
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly Healthcheck: { readonly Test: readonly string[] };
}

it('serves a build, and reports its health', async () => {
  const data = join(work, 'served');
  cpSync(dist, join(data, 'dist'), { recursive: true });
  const check = (port: number) => inContainer(data, ...healthcheck.map((text) => text.replace('3000', `${port}`)));
  const host = await startProgram((port) => ({
    program,
    args: inContainer(data, ...command.map((text) => ({ '3000': `${port}`, '0.0.0.0': '127.0.0.1' })[text] ?? text)),
  }));
  try {
    const answer = await host.send('GET', '/runes/v1/blocks/2000007/activity?limit=60&offset=30');
    expect([answer.status, JSON.parse(answer.body)]).toEqual([200, expect.objectContaining({ total: 437, offset: 30 })]);
    expect(spawnSync(program, check(host.port)).status).toBe(0);
  } finally {
    await host.close();
  }
  expect(spawnSync(program, check(host.port)).status).not.toBe(0);
});

it('builds the same files as the checkout', () => {
  const data = join(work, 'built');
  cpSync(SAMPLE_INPUT, join(data, 'input'), { recursive: true });
  execFileSync('chown', ['-R', '1000', data]);
  const [node = '', script = ''] = command;
  const finished = spawnSync(program, inContainer(data, node, script, 'build'), { encoding: 'utf8' });
  expect(finished.stderr).toBe('');
  expect(finished.status).toBe(0);
  const builtBy = (folder: string) => Object.entries(tree(join(folder, 'runes')));
  expect(builtBy(join(data, 'dist'))).toEqual(builtBy(dist));
});
