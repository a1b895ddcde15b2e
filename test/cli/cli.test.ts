/** Tests the commands as a user sees them: flags, output, exit codes and signals. Also checks that help names every flag. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Flag, Flags } from '../../src/cli/flags.ts';
import { status } from '../../src/contract/schemas.ts';
import { BUILD_COMMAND, buildOptions } from '../../src/engine/buildCommand.ts';
import { EXIT, EXIT_MEANINGS, type Exit } from '../../src/errors.ts';
import { filesBelow, temporaryFolder, tree, writeFiles } from '../support/build.ts';
import { endOf, portOf, ROOT, run, runProcess, start, untilSaid } from '../support/cli.ts';
import { COMMANDS } from '../support/commands.ts';
import { ndjson, record, workFolder } from '../support/records.ts';
import { sendTo } from '../support/server.ts';

describe('scripts/run.cjs', () => {
  it.each([
    ['', ''],
    ['builds', '; did you mean build?'],
    ['vreify', '; did you mean verify?'],
    ['benchhosts', '; did you mean benchHosts?'],
    ['../src/version', ''],
    ['toString', ''],
  ])('rejects the command %j, lists the commands and suggests the nearest name', async (command, near) => {
    const { code, stderr } = await runProcess(command, [], ROOT);
    const [, suggestion] = /^Error: unknown command ".*"; commands are bench, .*build, .*verify(;.*)?\n$/.exec(stderr) ?? [stderr, stderr];
    expect([code, suggestion ?? '']).toEqual([1, near]);
  });
});

describe('an error that nothing catches', () => {
  it.each([
    ["new Error('broken')", /^Error: unexpected: Error: broken\n/],
    ["new Error('EMFILE: too many open files, open a.cjs')", /^Error: too many files are open: .* a\.cjs\n {2}Raise the limit/],
  ])('%s has exit code 3 as if it was caught', (error, message) => {
    const path = join(temporaryFolder(), 'broken.mts');
    writeFiles(join(path, '..'), {
      'broken.mts': `import { runCommand } from '${ROOT}/src/cli/run.ts';
await runCommand({ call: 'broken', about: '', flags: [], examples: [], exits: ['done'] }, [], async () => {});
setTimeout(() => { throw ${error}; });`,
    });
    const { status, stderr } = spawnSync(process.execPath, ['--import', 'tsx', path], { cwd: ROOT, encoding: 'utf8' });
    expect([status, stderr]).toEqual([3, expect.stringMatching(message)]);
  });
});

describe('scripts/build.ts', () => {
  it('reports the errors of a build also when run.cjs is not the loader that starts it', () => {
    const args = ['--import', 'tsx', 'scripts/build.ts', '--input', 'not/there', '--dry-run'];
    const { status: code, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
    expect(stderr).toMatch(/^Error: input not found: not\/there\n/);
    expect(code).toBe(EXIT.badInput);
  });
});

describe('npm run build', () => {
  it('by default builds from input to dist', async () => {
    const work = workFolder();
    const { code, stdout, stderr } = await runProcess('build', [], work);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      /^Read 1 record of 1 block from 1 file in [\d.]+ s\.\nWrote 5 files \(0\.0 MB\) of 1 transaction and 1 block to dist in [\d.]+ s\.\n(?: {2}.*\n)+$/,
    );
    expect(status.parse(JSON.parse(readFileSync(join(work, 'dist/runes/v1/index.json'), 'utf8')))).toMatchObject({ block_height: 5 });
    expect(readdirSync(join(work, '.cache'))).toEqual(['state.duckdb']);
  });

  it('takes every flag', async () => {
    const work = workFolder();
    writeFiles(work, { 'more/b.ndjson': ndjson([record(6, 1)]) });
    const flags = [
      '--input',
      'input',
      '--input=more/*.ndjson',
      '--out',
      'site',
      '--cache',
      'work',
      '--dialect',
      'hiro',
      '--page-sizes',
      '10,500',
      '--site-url',
      'https://example.org/mirror',
      '--memory-limit',
      '500MB',
      '--threads',
      '1',
    ];
    expect((await run('build', flags, work)).code).toBe(0);
    expect(JSON.parse(readFileSync(join(work, 'site/runes/v1/manifest.json'), 'utf8'))).toMatchObject({
      generator: 'rune-activity-mirror',
      layout: 'files',
      dialect: 'hiro',
      page_sizes: [10, 500],
      site_url: 'https://example.org/mirror/',
      heights: [[5, 6]],
      blocks: 2,
      transactions: 2,
      records: 2,
      files: 10,
    });
  });

  it('with --dry-run writes nothing and reports the files that it would write', async () => {
    const work = workFolder();
    const before = tree(work);
    const dry = await run('build', ['--dry-run'], work);
    expect([dry.code, tree(work)]).toEqual([0, before]);
    expect(dry.stdout).toContain('Dry run: would write 5 files (0.0 MB) of 1 transaction and 1 block to dist. Nothing was written.');
    const json = async (flags: string[]) =>
      (await run('build', ['--log', 'json', ...flags], work)).stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    const [[, would], [, did]] = [await json(['--dry-run']), await json([])];
    expect(would).toMatchObject({ event: 'dry-run', files: did?.['files'], bytes: did?.['bytes'] });
    expect(did).toMatchObject({ level: 'info', event: 'built', records: 1, kept: 0, removed: 0 });
  });

  it.each([
    [['--inptu', 'x'], 'unknown flag --inptu; did you mean --input?'],
    [['--threads', '2', '--dry'], 'unknown flag --dry; did you mean --dry-run?'],
    [['-out=a'], 'unknown flag -out; did you mean --out?'],
    [['--something=SECRET'], 'unknown flag --something\n'],
    [['-x'], 'unknown flag -x\n'],
    [['dist'], 'unexpected argument "dist"; npm passes on only the flags after --, as in npm run build -- --help'],
    [['full'], 'unexpected argument "full"; did you mean --full?'],
    [['https://user:SECRET@host'], 'unexpected argument; npm passes'],
    [['--out'], '--out needs a value: --out DIR'],
    [['--out', '--full'], '--out needs a value, but --full is a flag; write a value that begins with a dash as --out=...'],
    [['--full', '--full'], '--full is given 2 times; once is enough'],
    [['--out='], '--out has no value'],
    [['--out', 'a', '--out', 'b'], '--out is given 2 times; it takes one value'],
    [['--dry-run=1'], '--dry-run takes no value'],
    [['--no-sync=1'], '--no-sync takes no value'],
    [['--dialect', 'contrat'], '--dialect "contrat" must be one of 0x, contract, hiro; did you mean contract?'],
    [['--layout', 'archvie'], '--layout "archvie" must be one of files, archive; did you mean archive?'],
    [['--lists', '--no-lists'], '--lists and --no-lists contradict each other'],
    [['--threads', '0'], '--threads "0" must be a whole number from 1 to 256'],
    [['--page-sizes', '60,20'], '--page-sizes "60,20" must be ascending whole numbers from 1 to 100000, such as 20,60 or 20,60,1000'],
    ...['1GB', '65MB', '3KB', '64'].map(
      (size) =>
        [['--layout', 'archive', '--object-size', size], `--object-size "${size}" must be a size from 4KB to 64MB`] as [string[], string],
    ),
    [['--page-sizes', '20,,60'], '--page-sizes "20,,60" must be ascending'],
    [['--site-url', 'example.org'], '--site-url "example.org" must be an http or https URL without user, query and fragment'],
    [['--memory-limit', 'much'], '--memory-limit "much" must be a size of at least 50MB, such as 500MB or 2GB'],
    [['--memory-limit', '1MB'], '--memory-limit "1MB" must be a size of at least 50MB, such as 500MB or 2GB'],
    [['--out', 'a', '--cache', 'a/b'], '--cache a/b is in the output folder a, and would be published with it'],
    [['--log', 'xml'], '--log "xml" must be one of text, json\n'],
  ])('refuses %j with exit code 1', async (flags, message) => {
    const work = workFolder();
    const { code, stderr } = await run('build', flags, work);
    expect(code).toBe(1);
    expect(stderr).toContain(`Error: ${message}`);
    expect(stderr).toMatch(/\n {2}See npm run build -- --help\.\n$/);
    expect(stderr).not.toContain('SECRET');
    expect(existsSync(join(work, 'dist'))).toBe(false);
  });

  it('reports bad input with exit code 2, in text and in JSON', async () => {
    const work = workFolder();
    writeFiles(work, { 'input/a.ndjson': ndjson([{ ...record(5, 1), operation: 'x' }]) });
    const finding = 'input/a.ndjson line 1: operation "x" must be one of etching, mint, burn, send, receive';
    const text = await run('build', [], work);
    expect([text.code, text.stderr]).toEqual([2, `Error: the input has 1 error(s); nothing was written\n  ${finding}\n`]);
    const json = await run('build', ['--log', 'json'], work);
    expect([json.code, JSON.parse(json.stderr)]).toEqual([
      2,
      {
        time: expect.stringMatching(/^2\d{3}-\d{2}-\d{2}T[\d:.]+Z$/),
        ...{ level: 'error', event: 'error', message: 'the input has 1 error(s); nothing was written', details: [finding], exit_code: 2 },
      },
    ]);
  });

  it('reports an output folder that cannot be written with exit code 3', async () => {
    const work = workFolder();
    writeFiles(work, { file: 'x' });
    const { code, stderr } = await run('build', ['--out', 'file/dist'], work);
    expect([code, stderr.split('\n')[0]]).toEqual([3, expect.stringMatching(/^Error: writing the output failed: ENOTDIR/)]);
    expect((await run('build', ['--cache', 'file/cache'], work)).code).toBe(3);
  });
});

describe('npm start', () => {
  it('prints its address, answers, and ends on SIGTERM', async () => {
    const work = workFolder();
    await run('build', [], work);
    const child = start('serve', ['--port', '0'], work);
    const [, port] = await untilSaid(child, /^Serving dist on http:\/\/127\.0\.0\.1:(\d+) \(press Ctrl-C to stop\)\.\n$/);
    const answer = await sendTo(Number(port))('GET', '/runes/v1/blocks/5/activity');
    expect(JSON.parse(answer.body)).toMatchObject({ total: 1 });
    child.kill('SIGTERM');
    expect(await endOf(child)).toEqual([0, null]);
  });

  it.each(['1', '2'])('names the missing build, with --workers %s', async (workers) => {
    const work = temporaryFolder();
    const { code, stderr } = await runProcess('serve', ['--port', '0', '--workers', workers], work);
    expect([code, stderr]).toEqual([
      2,
      'Error: build not found: dist/runes/v1/manifest.json is missing\n  Run npm run build first, or name the folder with --dir.\n',
    ]);
  });

  it.each([
    ['verify', ['input'], 'unexpected argument "input"; name the folder with --dir input'],
    ['verify', ['--against', 'localhost:3000'], '--against "localhost:3000" must be a folder, or a URL such as http://localhost:3000'],
    ['pull', ['--from', 'https://api.hiro.so'], '--from https://api.hiro.so is no source any more'],
  ])('%s %j suggests the correct spelling', async (command, args, message) => {
    const { code, stderr } = await runProcess(command, args, workFolder());
    expect([code, stderr]).toEqual([1, expect.stringContaining(`Error: ${message}`)]);
  });

  it('refuses an invalid port', async () => {
    expect((await runProcess('serve', ['--port', '65536'], temporaryFolder())).code).toBe(1);
  });

  it('names a port that is in use', async () => {
    const work = workFolder();
    await run('build', [], work);
    const child = start('serve', ['--port', '0'], work);
    const port = await portOf(child);
    const { code, stderr } = await runProcess('serve', ['--port', String(port)], work);
    child.kill('SIGTERM');
    await endOf(child);
    expect([code, stderr.split('\n')[0]]).toEqual([1, `Error: port ${port} of 127.0.0.1 is already in use; choose another with --port`]);
  });
});

describe('help and documents', () => {
  const page = readFileSync(join(ROOT, 'docs/run-a-mirror.md'), 'utf8');
  const commands = Object.entries(COMMANDS);
  it('cover every command', () => {
    // `readRows` is not a command of users. Pulls start it, and it has no flags.
    const scripts = readdirSync(join(ROOT, 'scripts')).filter((name) => name.endsWith('.ts') && name !== 'readRows.ts');
    expect(commands.map(([name]) => `${name}.ts`).sort()).toEqual(scripts.sort());
  });

  /** Output of `--help` of each command. One process prints them all, because a process for each command would take a second. */
  const helps = new Map<string, string>();
  beforeAll(() => {
    const names = commands.map(([name]) => name);
    const script = `for (const name of ${JSON.stringify(names)}) {
      process.argv = [process.execPath, 'run.cjs', name, '--help'];
      delete require.cache[require.resolve('./run.cjs')];
      require('./run.cjs');
      process.stdout.write('\\0' + (process.exitCode ?? 0) + '\\0');
    }`;
    const { stdout } = spawnSync(process.execPath, ['-e', script], { cwd: join(ROOT, 'scripts'), encoding: 'utf8' });
    const parts = stdout.split('\0');
    for (const [i, name] of names.entries()) {
      expect([name, parts[2 * i + 1]]).toEqual([name, '0']);
      helps.set(name, parts[2 * i] ?? '');
    }
    expect(parts).toHaveLength(2 * names.length + 1);
  });

  it.each(commands)('the help of %s names every flag with its default, and exit codes', async (name, command) => {
    const stdout = helps.get(name) ?? '';
    expect(stdout).toContain(`${command.call} `);
    expect(stdout.split('\n').filter((line) => line.length > 100)).toEqual([]);
    if (name === 'sample') expect((await run(name, ['-h'], ROOT)).stdout).toBe(stdout);
    const spelled = (flag: Flag) => `--${flag.name}${flag.value === undefined ? '' : ` ${flag.value}`}`;
    for (const flag of command.flags) {
      expect(stdout).toContain(`\n  ${spelled(flag)} `);
      if (flag.byDefault !== undefined) expect(stdout.replace(/\s+/g, ' ')).toContain(`(default: ${flag.byDefault || 'none'})`);
    }
    for (const exit of command.exits) expect(stdout.replace(/\s+/g, ' ')).toContain(` ${EXIT[exit]} ${EXIT_MEANINGS[exit]}`);
  });

  it.each(commands)('the help of %s has valid examples', async (_name, command) => {
    expect(command.examples).not.toEqual([]);
    for (const { args } of command.examples) {
      const flags = Flags.parse(command, args === '' ? [] : args.split(' '));
      if (command === BUILD_COMMAND) expect(() => buildOptions(flags)).not.toThrow();
    }
  });

  it('the server loads no large packages before it answers', () => {
    const hook = join(temporaryFolder(), 'hook.cjs');
    writeFiles(join(hook, '..'), {
      'hook.cjs': `process.on('exit', () => process.stdout.write(JSON.stringify(Object.keys(require.cache))));`,
    });
    const server = [join(ROOT, 'scripts/run.cjs'), 'serve', '--wrong'];
    const { stdout } = spawnSync(process.execPath, ['--require', hook, ...server], { encoding: 'utf8' });
    const modules = JSON.parse(stdout) as string[];
    expect(modules).toContain(join(ROOT, 'scripts/serve.ts'));
    // tsx loads esbuild.
    const packages = modules.flatMap((path) => /node_modules[/]((?:@[^/]+[/])?[^/]+)/.exec(path)?.[1] ?? []);
    expect([...new Set(packages)].sort()).toEqual(['esbuild', 'fastest-levenshtein', 'tsx']);
  });

  it('docs/run-a-mirror.md names every exit code and its meaning', () => {
    for (const exit of Object.keys(EXIT) as Exit[]) expect(page).toContain(`\n- ${EXIT[exit]}: ${EXIT_MEANINGS[exit]}\n`);
  });
});

describe('npm run sample', () => {
  it('writes the sample of this project', async () => {
    const work = temporaryFolder();
    expect(await run('sample', ['--to', 'here'], work)).toMatchObject({ code: 0, stderr: '' });
    for (const path of filesBelow(join(work, 'here'))) {
      expect(readFileSync(join(work, 'here', path)).equals(readFileSync(join(ROOT, 'sample', path)))).toBe(true);
    }
    expect(filesBelow(join(work, 'here'))).toHaveLength(2);
  });

  it('refuses unknown flags, and reports when it cannot write', async () => {
    const work = temporaryFolder();
    writeFiles(work, { file: 'x' });
    const wrong = await run('sample', ['--too', 'here'], work);
    expect([wrong.code, wrong.stderr]).toEqual([1, 'Error: unknown flag --too; did you mean --to?\n  See npm run sample -- --help.\n']);
    const failed = await run('sample', ['--to', 'file/x'], work);
    expect([failed.code, failed.stderr]).toEqual([3, expect.stringMatching(/^Error: the sample cannot be written: ENOTDIR/)]);
    expect(filesBelow(work)).toEqual(['file']);
  });
});

describe('npm run bench', () => {
  it.each(['foo', 'ndjson,foo', ''])('refuses --forms=%s with exit code 1', async (forms) => {
    const work = temporaryFolder();
    const { code, stderr } = await run('bench', ['--forms', forms, '--dir', 'here'], work);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^Error: --forms (?:"foo" must be one of parquet, ndjson, or several|has no value)/),
    ]);
    expect(existsSync(join(work, 'here'))).toBe(false);
  });
});
