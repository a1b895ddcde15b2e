/**
 * Replaces outputs while the local server runs. An answer comes from the old build or from the new build, or is a 503.
 * It never mixes both builds.
 */
import { once } from 'node:events';
import { cpSync, renameSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { createMirrorServer } from '../../../src/serve/local/server.ts';
import { temporaryFolder } from '../../support/build.ts';
import { activityPaths } from '../../support/outputs.ts';
import { recordedOutput } from '../../support/recorded.ts';
import { type LocalHost, sendTo, startServer } from '../../support/server.ts';

describe('an output that is replaced under the local server', () => {
  const outputs = new Map<Name, string>();
  /** Options of several builds of the same data. */
  const BUILDS = {
    files: { layout: 'files', dialect: 'contract' },
    archive: { layout: 'archive', dialect: 'contract' },
    'files-hiro': { layout: 'files', dialect: 'hiro' },
    'archive-hiro': { layout: 'archive', dialect: 'hiro' },
  } as const;
  type Name = keyof typeof BUILDS;
  const NAMES = Object.keys(BUILDS) as Name[];
  const built = (name: Name) => outputs.get(name) ?? '';
  const expected = new Map<Name, string[]>();
  let targets: string[] = [];

  const ask = async (host: LocalHost, target: string) => {
    const { status, body } = await host.send('GET', target);
    return status === 503 ? '503' : `${status} ${body}`;
  };

  beforeAll(async () => {
    for (const name of NAMES) outputs.set(name, await recordedOutput(BUILDS[name].layout, BUILDS[name].dialect));
    // Requests blocks by height and by hash, with windows across pages. Requests transactions with many different first
    // digits.
    targets = [
      ...activityPaths(built('files'), ['blocks']).flatMap((path) =>
        ['', '?limit=60&offset=13', '?limit=3&offset=2&operation_type=receive'].map((query) => path + query),
      ),
      ...activityPaths(built('files'), ['transactions']).filter((_, i) => i % 24 === 0),
      // In these builds, only archives have lists. Layout `files` refuses these requests.
      ...['1:0', '840000:4', '3'].flatMap((rune) => [
        `/runes/v1/etchings/${rune}/activity`,
        `/runes/v1/etchings/${rune}/activity?offset=50`,
      ]),
      '/runes/v1/addresses/bc1q6387s5lqmxvrw6qjt5fma4ncjd6aha4dwvh9km/activity?limit=60',
    ];
    for (const name of NAMES) {
      const host = await startServer(built(name));
      const answers: string[] = [];
      for (const target of targets) answers.push(await ask(host, target));
      expected.set(name, answers);
      await host.close();
    }
  });

  it.each<[Name, Name]>([
    ['files', 'archive'],
    ['files', 'archive-hiro'],
    ['archive', 'files'],
    ['archive', 'archive-hiro'],
  ])('from %s to %s between the start of a request and its first file: the answer is the new one', async (from, to) => {
    const folder = temporaryFolder();
    const at = (name: string) => join(folder, name);
    cpSync(built(from), at('out'), { recursive: true });
    cpSync(built(to), at('next'), { recursive: true });
    for (let i = 0; i < targets.length; i += Math.ceil(targets.length / 5)) {
      const server = createMirrorServer(at('out'));
      // The request starts with the old manifest, which is in memory.
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
});
