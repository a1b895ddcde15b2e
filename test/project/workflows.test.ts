/** Tests the workflows of GitHub Actions: rules for all, and the one that updates a mirror, whose steps test/hosts/update.test.ts does. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { INIT_COMMAND } from '../../src/setup/initCommand.ts';
import { ROOT } from '../support/cli.ts';

const FOLDER = join(ROOT, '.github/workflows');
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly scripts: object };
const text = readFileSync(join(FOLDER, 'mirror.yml'), 'utf8');
const documentation = readFileSync(join(ROOT, 'docs/run-a-mirror.md'), 'utf8');

const values = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]));
const step = z.strictObject({
  id: z.string().optional(),
  name: z.string().optional(),
  if: z.string().optional(),
  uses: z.string().optional(),
  with: values.optional(),
  env: values.optional(),
  run: z.string().optional(),
  'timeout-minutes': z.number().optional(),
});
/** Keys of workflows. A workflow with another one, which may be misspelled, fails these tests. */
const workflows = z.strictObject({
  name: z.string(),
  on: z.record(z.string(), z.unknown()),
  permissions: values,
  concurrency: values.optional(),
  env: values.optional(),
  defaults: z.strictObject({ run: z.strictObject({ shell: z.literal('bash') }) }),
  jobs: z.record(
    z.string(),
    z.strictObject({
      if: z.string().optional(),
      needs: z.string().optional(),
      strategy: z.object({}).optional(),
      'runs-on': z.string(),
      container: values.optional(),
      'timeout-minutes': z.number(),
      permissions: values.optional(),
      environment: values.optional(),
      steps: z.array(step),
    }),
  ),
});
const read = (file: string) => workflows.parse(parse(readFileSync(join(FOLDER, file), 'utf8')));

describe.each(readdirSync(FOLDER))('%s', (file) => {
  const used = readFileSync(join(FOLDER, file), 'utf8').match(/uses: .*/g) ?? [];
  const workflow = read(file);

  it('names each action by its commit, with the version beside it', () => {
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

const workflow = read('mirror.yml');
const { mirror: job, pages, ...otherJobs } = workflow.jobs;
const steps = job?.steps ?? [];
const indexOf = (part: string) => steps.findIndex((s) => s.run?.includes(part) === true || s.uses?.startsWith(part) === true);
const using = (action: string) => steps.find((s) => s.uses?.startsWith(action) === true);

describe('the workflow of a mirror', () => {
  it('is a job on a schedule or by hand, only with a source, with a time limit, and never runs twice at the same time', () => {
    expect(otherJobs).toEqual({});
    expect(workflow.on).toEqual({ schedule: [{ cron: expect.stringMatching(/^[1-9][0-9]? \* \* \* \*$/) }], workflow_dispatch: null });
    expect(job?.if).toBe("vars.PULL_FROM != ''");
    expect(job?.['timeout-minutes']).toBeLessThanOrEqual(360);
    // The concurrency group must not depend on the branch, because all branches upload to the same bucket.
    expect(workflow.concurrency).toEqual({ group: 'mirror', 'cancel-in-progress': false });
  });

  it('deploys to GitHub Pages afterwards if no bucket is set, in a job that has no other rights', () => {
    expect(pages).toMatchObject({ if: "vars.BUCKET == ''", needs: 'mirror', permissions: { pages: 'write', 'id-token': 'write' } });
    expect(using('actions/upload-pages-artifact')).toMatchObject({ if: "vars.BUCKET == ''", with: { path: 'dist' } });
    expect(steps[indexOf('command -v rclone')]?.if).toBe("vars.BUCKET != ''");
    expect(pages?.steps.map(({ uses, run }) => [uses?.replace(/@.*/, ''), run])).toEqual([['actions/deploy-pages', undefined]]);
  });

  it('stores no credentials in its clone', () => {
    expect(using('actions/checkout')?.with).toMatchObject({ 'persist-credentials': false });
  });

  it("uses only GitHub's own actions", () => {
    const used = steps.flatMap((s) => s.uses ?? []).map((name) => name.replace(/@.*/, ''));
    const names = ['checkout', 'setup-node', 'cache/restore', 'cache/save', 'upload-pages-artifact'];
    expect(used).toEqual(names.map((name) => `actions/${name}`));
    expect(steps.filter((s) => (s.uses === undefined) === (s.run === undefined))).toEqual([]);
  });

  it('runs in order: restore, install, update, save, pass to Pages', () => {
    const order = ['actions/checkout', 'actions/setup-node', 'actions/cache/restore', 'npm ci', 'npm run init', 'command -v rclone']
      .concat(['npm run update', 'actions/cache/save', 'actions/upload-pages-artifact'])
      .map(indexOf);
    expect(order).toEqual(steps.map((_, i) => i));
  });

  it('keeps pulled blocks, cache and output in one cache entry, with a new one for each run', () => {
    const [restore, save] = [using('actions/cache/restore'), using('actions/cache/save')];
    expect(save?.with).toEqual({ path: restore?.with?.['path'], key: restore?.with?.['key'] });
    expect(
      String(restore?.with?.['path'])
        .trim()
        .split(/\s*\n\s*/),
    ).toEqual(['input/pulled', '.cache', 'dist']);
    const key = String(restore?.with?.['key']);
    for (const name of ['run_number', 'run_id', 'run_attempt']) expect(key).toContain(`\${{ github.${name} }}`);
    expect(key.startsWith(String(restore?.with?.['restore-keys']))).toBe(true);
    expect(save?.if).toBe("always() && steps.update.outcome != 'skipped'");
  });

  it('leaves time to save the cache if an update takes too long', () => {
    const update = steps.find((s) => s.id === 'update');
    expect(update?.['timeout-minutes']).toBeLessThanOrEqual((job?.['timeout-minutes'] ?? 0) - 30);
  });

  it('puts no expression into a script, and secrets only into the environment of steps that need them', () => {
    for (const { run = '' } of steps) expect(run).not.toContain('${{');
    const secrets = [...text.matchAll(/secrets\.([A-Za-z_0-9]+)/g)].map(([, name]) => name);
    const inSteps = steps.flatMap((s) =>
      Object.entries(s.env ?? {})
        .filter(([, value]) => String(value).includes('secrets.'))
        .map(([name, value]) => `${name}=${value}`),
    );
    expect(inSteps.length).toBe(secrets.length);
    for (const line of inSteps) expect(line).toMatch(/^[A-Z_0-9]+=\$\{\{ secrets\.[A-Z_0-9]+ \}\}$/);
    for (const { run = '', env = {} } of steps) {
      for (const [name, value] of Object.entries(env)) if (String(value).includes('secrets.')) expect(run).not.toContain(name);
    }
  });

  it('names flags that the command has', () => {
    const run = steps[indexOf(INIT_COMMAND.call)]?.run ?? '';
    const flags = [...run.slice(run.indexOf(INIT_COMMAND.call) + INIT_COMMAND.call.length).matchAll(/--([a-z-]+)/g)].map(
      ([, name]) => name,
    );
    expect(flags.length).toBeGreaterThan(0);
    expect(INIT_COMMAND.flags.map(({ name }) => name)).toEqual(expect.arrayContaining(flags));
  });

  it('is documented: every variable and secret', () => {
    const names = [...text.matchAll(/\b(?:vars|secrets)\.([A-Za-z_0-9]+)/g)].map(([, name = '']) => name);
    expect(new Set(names).size).toBeGreaterThan(8);
    expect(names.filter((name) => !documentation.includes(`\`${name}\``))).toEqual([]);
  });
});
