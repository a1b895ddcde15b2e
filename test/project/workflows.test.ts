/** Tests rules that hold for all workflows in .github. test/project/workflow.test.ts tests the workflow that updates a mirror. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from '../support/cli.ts';

interface Workflow {
  readonly permissions: object;
  readonly jobs: Readonly<
    Record<
      string,
      { readonly permissions?: object; readonly 'timeout-minutes': number; readonly steps: readonly { readonly run?: string }[] }
    >
  >;
}

const FOLDER = join(ROOT, '.github/workflows');
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly scripts: object };

describe.each(readdirSync(FOLDER))('%s', (file) => {
  const text = readFileSync(join(FOLDER, file), 'utf8');
  const workflow = parse(text) as Workflow;

  it('names each action by its commit, with the version beside it', () => {
    const used = text.match(/uses: .*/g) ?? [];
    expect(used.length).toBeGreaterThan(0);
    for (const line of used) expect(line).toMatch(/^uses: [a-z]+\/[a-z/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it('may only read the repository, except for a job that deploys', () => {
    expect(workflow.permissions).toEqual({ contents: 'read' });
    const further = Object.entries(workflow.jobs).flatMap(([name, { permissions }]) =>
      permissions === undefined ? [] : [[name, permissions]],
    );
    expect(further).toEqual(file === 'mirror.yml' ? [['pages', { pages: 'write', 'id-token': 'write' }]] : []);
  });

  it('has valid scripts, which call commands of this project, and ends by itself', () => {
    for (const { steps, 'timeout-minutes': minutes } of Object.values(workflow.jobs)) {
      expect(minutes).toBeGreaterThan(0);
      for (const { run = '' } of steps) {
        expect(spawnSync('bash', ['-n'], { input: run, encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
        for (const [, name = ''] of run.matchAll(/npm run ([a-z:]+)/g)) expect(scripts).toHaveProperty([name]);
        for (const [path] of run.matchAll(/(?<!\S)(?:hosting|\.ci)\/[A-Za-z./-]+/g)) expect(existsSync(join(ROOT, path)), path).toBe(true);
      }
    }
  });
});
