/** Outputs that are replaced while they are read: an answer is the old one, the new one, or a 503, never of both. */
import { once } from 'node:events';
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { FetchMirror } from '../src/hosts/fetch.ts';
import { createMirrorServer } from '../src/hosts/node.ts';
import { CONFORMANCE_INPUTS, temporaryFolder, testBuild, tree, writeFiles } from './support/build.ts';
import { runProcess } from './support/cli.ts';
import { hex, ndjson, record } from './support/records.ts';
import { type LocalHost, sendTo, startServer } from './support/server.ts';

describe('a window of two pages, layout files', () => {
  const work = temporaryFolder();
  const ID = `0x${hex('the transaction')}`;
  /** Records of one transaction in one block. */
  const build = (name: string, records: number, block: string, more: { amount?: string; pageSizes?: readonly number[] } = {}) => {
    const { amount = '', pageSizes = [20, 60] } = more;
    const place = { block_hash: `0x${hex(block)}`, tx_id: ID, output: ID };
    const all = Array.from({ length: records }, (_, i) => record(5, 1, { amount: `${amount}${i}`, location: place }));
    writeFiles(work, { [`in-${name}/a.ndjson`]: ndjson(all) });
    return testBuild(join(work, name), { inputs: [join(work, `in-${name}`)], pageSizes });
  };
  beforeAll(async () => {
    await build('old', 75, 'a');
    await build('longer', 76, 'a');
    await build('fork', 75, 'b', { amount: '9' });
    await build('sizes', 75, 'a', { pageSizes: [10, 60] });
  });

  /** The answer over files of which `fromNew` picks those that are of another build; `then` is called before the second reading of the manifest. */
  async function ask(target: string, other: string, fromNew: (path: string) => boolean, isDoneByThen: boolean): Promise<string> {
    let manifests = 0;
    const mirror = new FetchMirror((path) => {
      if (path.endsWith('manifest.json')) manifests += 1;
      const file = join(work, fromNew(path) || (isDoneByThen && manifests > 1) ? other : 'old', path);
      const isFile = existsSync(file) && statSync(file).isFile();
      return Promise.resolve(isFile ? new Response(readFileSync(file)) : new Response(null, { status: 404 }));
    }, 0);
    const response = await mirror.answer(new Request(`http://127.0.0.1${target}`));
    return `${response?.status} ${response?.status === 503 ? '' : await response?.text()}`;
  }

  const BLOCK = '/runes/v1/blocks/5/activity?limit=60&offset=10';
  it.each([
    ['of which one has another total', 'longer', BLOCK],
    ['of which one is of another block', 'fork', BLOCK],
    ['of a transaction that is in another block now', 'fork', `/runes/v1/transactions/${ID}/activity?limit=60&offset=10`],
    ['by operation, of which one is of another block', 'fork', `${BLOCK}&operation_type=receive`],
  ])('%s is answered with the new list when it is there by then, and else with a 503', async (_, other, target) => {
    const fresh = await ask(target, other, () => true, false);
    expect(JSON.parse(fresh.slice(4))).toMatchObject({ limit: 60, offset: 10 });
    for (const page of ['/60/0.json', '/60/60.json']) {
      expect(await ask(target, other, (path) => path.endsWith(page), false)).toBe('503 ');
      expect(await ask(target, other, (path) => path.endsWith(page), true)).toBe(fresh);
    }
  });

  it.each(['?limit=5&offset=12', '?limit=1'])('or of one, %s, does not take a first page of another size for its own', async (query) => {
    const target = `/runes/v1/blocks/5/activity${query}`;
    const fresh = await ask(target, 'sizes', () => true, false);
    expect(fresh).toBe(await ask(target, 'old', () => true, false));
    expect(await ask(target, 'sizes', (path) => path.endsWith('/5.json'), false)).toBe('503 ');
    expect(await ask(target, 'sizes', (path) => path.endsWith('/5.json'), true)).toBe(fresh);
  });
});

describe('an output that becomes another under the local server', () => {
  const work = temporaryFolder();
  /** Some builds of the same data. */
  const BUILDS = {
    files: { layout: 'files', dialect: 'contract' },
    packed: { layout: 'packed', dialect: 'contract' },
    'files-hiro': { layout: 'files', dialect: 'hiro' },
    'packed-hiro': { layout: 'packed', dialect: 'hiro' },
  } as const;
  type Name = keyof typeof BUILDS;
  const NAMES = Object.keys(BUILDS) as Name[];
  const expected = new Map<Name, string[]>();
  let targets: string[] = [];

  // In processes of their own, so that the server is asked meanwhile.
  const build = (out: string, name: Name) => {
    const inputs = CONFORMANCE_INPUTS.flatMap((path) => ['--input', path]);
    const { layout, dialect } = BUILDS[name];
    return runProcess('build', [...inputs, '--out', out, '--cache', `${out}.cache`, '--layout', layout, '--dialect', dialect], work);
  };
  const ask = async (host: LocalHost, target: string) => {
    const { status, body } = await host.send('GET', target);
    return status === 503 ? '503' : `${status} ${body}`;
  };

  beforeAll(async () => {
    for (const name of NAMES) await testBuild(join(work, name), { inputs: CONFORMANCE_INPUTS, ...BUILDS[name] });
    const names = (folder: string) =>
      readdirSync(join(work, 'files/runes/v1', folder))
        .filter((name) => name.endsWith('.json'))
        .map((name) => `/runes/v1/${folder}/${name.slice(0, -5)}/activity`);
    // Blocks by height and by hash, with windows across pages, and transactions of all prefixes.
    targets = [
      ...names('blocks').flatMap((path) =>
        ['', '?limit=60&offset=13', '?limit=3&offset=2&operation_type=receive'].map((query) => path + query),
      ),
      ...names('transactions').filter((_, i) => i % 24 === 0),
    ];
    for (const name of NAMES) {
      const host = await startServer(join(work, name));
      const answers: string[] = [];
      for (const target of targets) answers.push(await ask(host, target));
      expected.set(name, answers);
      await host.close();
    }
  });

  it.each<[string, typeof build, Name, Name]>([
    ['a build of another layout', build, 'files', 'packed'],
    ['a build in another dialect', build, 'files', 'files-hiro'],
    ['a build in another dialect, layout packed', build, 'packed', 'packed-hiro'],
    ['a build in another layout and dialect', build, 'packed-hiro', 'files'],
  ])('by %s: every answer is the old one, the new one, or a 503', async (_, make, from, to) => {
    const out = join(temporaryFolder(), 'out');
    cpSync(join(work, from), out, { recursive: true });
    const host = await startServer(out);
    const [old = [], fresh = []] = [expected.get(from), expected.get(to)];
    let answered = 0;
    const wrong: string[] = [];
    let isDone = false;
    const poll = async (first: number) => {
      for (let i = first; !isDone; i = (i + 7) % targets.length) {
        const answer = await ask(host, targets[i] ?? '');
        if (answer === fresh[i] || answer === old[i]) answered += 1;
        else if (answer !== '503') wrong.push(`${targets[i]}: ${answer.slice(0, 100)}`);
      }
    };
    const polls = [0, 1, 2, 3].map((i) => poll(i * Math.floor(targets.length / 4)));
    try {
      const { code, stderr } = await make(out, to);
      expect(code, stderr).toBe(0);
      // What the server remembers must not last.
      for (const [i, target] of targets.entries()) if ((await ask(host, target)) !== fresh[i]) wrong.push(`${target} after it`);
    } finally {
      isDone = true;
      await Promise.all(polls);
      await host.close();
    }
    expect([wrong.length, wrong.slice(0, 5)]).toEqual([0, []]);
    expect(answered).toBeGreaterThan(0);
    expect(tree(out)).toEqual(tree(join(work, to)));
  });

  it.each<[Name, Name]>([
    ['files', 'packed'],
    ['files', 'packed-hiro'],
    ['packed', 'files'],
    ['packed', 'packed-hiro'],
  ])('from %s to %s between the beginning of a request and its first file: the answer is the new one', async (from, to) => {
    const folder = temporaryFolder();
    const at = (name: string) => join(folder, name);
    cpSync(join(work, from), at('out'), { recursive: true });
    cpSync(join(work, to), at('next'), { recursive: true });
    for (let i = 0; i < targets.length; i += Math.ceil(targets.length / 5)) {
      const server = createMirrorServer(at('out'));
      // The request begins with the manifest of before, which is in memory.
      server.prependListener('request', () => {
        renameSync(at('out'), at('gone'));
        renameSync(at('next'), at('out'));
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { status, body } = await sendTo((server.address() as AddressInfo).port)('GET', targets[i] ?? '');
      expect([targets[i], `${status} ${body}`]).toEqual([targets[i], expected.get(to)?.[i]]);
      server.close();
      renameSync(at('out'), at('next'));
      renameSync(at('gone'), at('out'));
    }
  });

  it('is a 503 while it is gone, and answered again when it is back', async () => {
    const out = join(temporaryFolder(), 'out');
    writeFiles(work, { 'small.ndjson': ndjson([record(5, 1)]) });
    const options = { inputs: [join(work, 'small.ndjson')] };
    await testBuild(out, options);
    const host = await startServer(out);
    const target = '/runes/v1/blocks/5/activity';
    const before = await ask(host, target);
    rmSync(out, { recursive: true });
    expect(await ask(host, target)).toBe('503');
    await testBuild(out, options);
    expect(await ask(host, target)).toBe(before);
    await host.close();
  });
});
