/** The recipes of hosting/own-server. test/hosts/docker.test.ts builds the image. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { Flags } from '../../src/cli/flags.ts';
import { PULL_COMMAND } from '../../src/pull/pullCommand.ts';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { ROOT } from '../support/cli.ts';
import { sendTo } from '../support/server.ts';

const FOLDER = join(ROOT, 'hosting/own-server');
const recipe = (name: string) => readFileSync(join(FOLDER, name), 'utf8');

let dist: string;
beforeAll(async () => {
  dist = join(temporaryFolder(), 'dist');
  await testBuild(dist, { inputs: [SAMPLE_INPUT] });
});

/** Runs a recipe's command on a free port, asks for a page, and ends it as a service manager does. */
async function checkCommand([program = '', ...args]: readonly string[], cwd: string): Promise<void> {
  expect(basename(program)).toBe('node');
  expect(args).toContain('3000');
  const own = args.map((arg) => ({ 3000: '0', dist, '0.0.0.0': '127.0.0.1' })[arg] ?? arg);
  // Nothing of the environment but what a service gets.
  const child = spawn(process.execPath, own, { cwd, env: { PATH: '/usr/bin:/bin' }, stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const answer = await sendTo(await portOf(child))('GET', '/runes/v1/blocks/2000007/activity?limit=60&offset=30');
    expect([answer.status, JSON.parse(answer.body)]).toEqual([200, expect.objectContaining({ total: 437, offset: 30 })]);
  } finally {
    child.kill('SIGTERM');
  }
  expect(await new Promise((resolve) => child.once('close', resolve))).toBe(0);
}

function portOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    let output = '';
    child.once('close', () => reject(new Error(`the server ended: ${output}`)));
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      const port = /http:\/\/127\.0\.0\.1:([0-9]+) /.exec(output)?.[1];
      if (port !== undefined) resolve(Number(port));
    });
  });
}

it('the systemd unit starts a server', async () => {
  const command = /^ExecStart=(.*)$/m.exec(recipe('rune-activity-mirror.service'))?.[1] ?? '';
  await checkCommand(command.split(' '), ROOT);
});

it('the systemd unit that follows a node calls the pull command', () => {
  const command = /^ExecStart=(.*)$/m.exec(recipe('rune-activity-mirror-follow.service'))?.[1] ?? '';
  const [program = '', script = '', name, ...args] = command.split(' ');
  expect([basename(program), script, name]).toEqual(['node', 'scripts/run.cjs', 'pull']);
  expect(Flags.parse(PULL_COMMAND, args).has('follow')).toBe(true);
});

describe('the Docker image', () => {
  const copied = [...recipe('Dockerfile').matchAll(/^COPY (?!--from)(.*) (\S+)$/gm)].map(([, from = '', to = '']) => ({
    from: from.split(' '),
    to,
  }));

  it('has a build context of only these files', () => {
    const [first, ...others] = recipe('Dockerfile.dockerignore').trimEnd().split('\n');
    expect(first).toBe('*');
    expect(others.sort()).toEqual(
      copied
        .flatMap(({ from }) => from.map((path) => `!${path}`))
        .filter((line, i, all) => all.indexOf(line) === i)
        .sort(),
    );
  });
});
