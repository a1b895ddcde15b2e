/**
 * Tests the files of changes, and the client that follows a mirror with them. Covers random chains with reorganisations, hosts that replace
 * files, and signed mirrors.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { CliError } from '../../../src/errors.ts';
import type { Dialect, Layout } from '../../../src/pages/mirrorOptions.ts';
import type { BlockPoint, Change, ChangesQuery } from '../../../src/serve/client/client.d.ts';
import { MANIFEST } from '../../support/archives.ts';
import { temporaryFolder, testBuild, tree, writeFiles } from '../../support/build.ts';
import { exampleBelow } from '../../support/builtClient.ts';
import { Mirror } from '../../support/bundledClient.ts';
import type { FakeBlock } from '../../support/fakeNode.ts';
import { limitsWith } from '../../support/limits.ts';
import { fetchOver, KEY, readFiles, signedFiles } from '../../support/lyingHost.ts';
import { writeChain } from '../../support/nodeRows.ts';
import { grown } from '../../support/outputStates.ts';
import { check } from '../../support/outputs.ts';
import { hex, ndjson, record } from '../../support/records.ts';
import { memoryOf } from '../../support/runeChains.ts';
import { integersFor } from '../../support/seed.ts';
import { listening, startServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const BASE = 'http://mirror.example';
const INDEX = 'runes/v1/changes/index.json';
const LIMITS = { changesBlocks: 8, changesEntries: 4, listLevels: { steps: [24, 8, 4], unsettled: 2 } };

const sorted = (all: Iterable<string | null>) => [...new Set(all)].filter((one) => one !== null).sort();

/** Computes from the rows of the chain which lists each block changes. `seen` has the blocks that the mirror knows. */
function touchedBy(chain: readonly FakeBlock[], seen = chain) {
  const { rows } = memoryOf(chain);
  return seen.map(({ height, hash }, i) => {
    const own = rows.filter((row) => row.block_height === height);
    const below = seen[i - 1];
    const spent = own.flatMap((row) => row.spent?.split(',').map((one) => one.split(':').slice(0, 2).join(':')) ?? []);
    return {
      height,
      hash,
      previous: below && { height: below.height, hash: below.hash },
      runes: sorted(own.map((row) => row.rune_id)),
      addresses: sorted(own.flatMap((row) => [row.address, row.receiver_address])),
      made: sorted(own.map((row) => (row.operation === 'receive' ? `${row.tx_id}:${row.output}` : null))),
      spent: sorted(spent),
    };
  });
}

type Touched = ReturnType<typeof touchedBy>[number];

/** Returns the content of the file of changes that a build must write for a block. */
function fileOf({ height, hash, previous, ...lists }: Touched, dialect: Dialect, most: number): string {
  const spelled = (block: BlockPoint) => ({ height: block.height, hash: `${dialect === 'contract' ? '0x' : ''}${block.hash}` });
  const cut = Object.entries(lists).map(([name, list]) => [name, list.slice(0, most)]);
  const more = Object.values(lists).some((list) => list.length > most) ? { more: true } : {};
  return JSON.stringify({ ...spelled({ height, hash }), previous: previous && spelled(previous), ...Object.fromEntries(cut), ...more });
}

const read = (out: string, path: string) => readFileSync(join(out, path), 'utf8');
const fetchOf = (out: string) => fetchOver((path) => (existsSync(join(out, path)) ? readFileSync(join(out, path)) : undefined));

async function changesOf(mirror: Mirror, query: ChangesQuery = {}): Promise<Change[]> {
  const all: Change[] = [];
  for await (const change of mirror.changes({ intervalMs: 0, ...query })) all.push(change);
  return all;
}

const shown = (changes: readonly Change[]) =>
  changes.map(({ height, hash, removed }) => `${removed === true ? '-' : '+'}${height} ${hash.slice(-64)}`);
const plus = ({ height, hash }: BlockPoint) => `+${height} ${hash}`;
const minus = ({ height, hash }: BlockPoint) => `-${height} ${hash}`;

function chainFor(name: string, blocks: number) {
  const draw = integersFor(name);
  return { draw, chain: grown([], blocks, draw) };
}

describe('a mirror of a random chain with reorganisations', () => {
  it.each<[Layout, Dialect, boolean]>([
    ['archive', 'hiro', true],
    ['files', 'contract', false],
  ])(
    'has the lists that each of the newest blocks changed, and clients see them: layout %s, dialect %s, from a node %s',
    async (layout, dialect, isFromNode) => {
      const start = chainFor(`changes in ${layout} ${dialect}`, 30);
      const { draw } = start;
      let { chain } = start;
      const [work, limits] = [temporaryFolder(), limitsWith(LIMITS)];
      const [input, out] = [join(work, 'in'), join(work, 'out')];
      const options = { inputs: [input], layout, dialect, lists: isFromNode, limits };
      let since: readonly BlockPoint[] | undefined;
      let known: FakeBlock[] = [];
      for (let step = 0; step < 4; step += 1) {
        if (step > 0) chain = grown(chain.slice(0, chain.length - draw(5)), 1 + draw(5), draw);
        writeChain(chain, input, isFromNode);
        // A mirror from a source other than a node does not know the hashes of empty blocks.
        const heights = new Set(memoryOf(chain).rows.map((row) => row.block_height));
        const seen = isFromNode ? chain : chain.filter(({ height }) => heights.has(height));
        await testBuild(out, options);
        // A full build and verification take turns, because both make all files again.
        if (step % 2 === 0) await check(out);
        else {
          await testBuild(join(work, `full-${step}`), options);
          expect(tree(out)).toEqual(tree(join(work, `full-${step}`)));
        }
        const most = limits.changesEntries;
        const newest = touchedBy(chain, seen).slice(-limits.changesBlocks);
        const names = newest.map(({ height }) => `${height}.json`);
        expect(readdirSync(join(out, 'runes/v1/changes')).sort()).toEqual([...names, 'index.json'].sort());
        for (const block of newest) expect(read(out, `runes/v1/changes/${block.height}.json`)).toBe(`${fileOf(block, dialect, most)}\n`);

        const mirror = new Mirror(BASE, { fetch: fetchOf(out) });
        const changes = await changesOf(mirror, { since });
        const gone = known.filter(({ hash }) => !seen.some((block) => block.hash === hash)).reverse();
        const common = seen.filter(({ hash }) => known.some((block) => block.hash === hash)).length;
        const lower = common === 0 ? seen.length - 1 : seen.findIndex(({ hash }) => known.some((block) => block.hash === hash)) + common;
        // If the mirror's last block is known to the client, the mirror may only lag behind, so no blocks are reported as removed.
        const isBehind = lower === seen.length;
        expect(shown(changes)).toEqual([...(isBehind ? [] : gone.map(minus)), ...seen.slice(lower).map(plus)]);
        for (const [i, { since: after }] of changes.entries())
          expect(shown(await changesOf(mirror, { since: after }))).toEqual(shown(changes.slice(i + 1)));
        since = changes.at(-1)?.since ?? since;
        if (!isBehind) known = seen.slice(-limits.changesBlocks);

        const address = newest.flatMap(({ addresses }) => addresses).at(-1) ?? 'none';
        const first = { height: newest[0]?.height ?? 0, hash: `0x${newest[0]?.hash.toUpperCase()}` };
        const isCut = (block: Touched) => fileOf(block, dialect, most).includes('"more"');
        const isMatch = (block: Touched) => block.addresses.slice(0, most).includes(address);
        const told = newest.slice(1).filter((block, i) => isMatch(block) || isCut(block) || i === newest.length - 2);
        const filtered = await changesOf(mirror, { since: first, addresses: [address.toUpperCase()] });
        expect(shown(filtered)).toEqual(told.map(plus));
        expect(filtered.map((change) => change.removed === true || change.matches)).toEqual(
          told.map((block) => (isMatch(block) ? [address] : [])),
        );
      }
    },
  );
});

it('writes files of older blocks from the input again if the tip gets lower', async () => {
  const { chain } = chainFor('a tip that gets lower', 40);
  const [work, limits] = [temporaryFolder(), limitsWith(LIMITS)];
  const [input, out] = [join(work, 'in'), join(work, 'out')];
  const options = { inputs: [input], layout: 'archive', lists: true, limits } as const;
  for (const blocks of [40, 36, 37, 20]) {
    writeChain(chain.slice(0, blocks), input);
    expect((await testBuild(out, options)).wasFull).toBe(blocks === 40);
    if (blocks === 40) continue;
    await testBuild(join(work, `full-${blocks}`), options);
    expect(tree(out)).toEqual(tree(join(work, `full-${blocks}`)));
  }
});

it('writes the file of an unchanged block again if the block below it has another hash', async () => {
  const work = temporaryFolder();
  const [input, out] = [join(work, 'in'), join(work, 'out')];
  for (const below of ['one', 'other']) {
    const [low, high] = [record(5, 1, { location: { block_hash: `0x${hex(below)}` } }), record(6, 1)];
    writeFiles(input, { 'low.ndjson': ndjson([low]), 'high.ndjson': ndjson([high]) });
    await testBuild(out, { inputs: [input] });
    expect(JSON.parse(read(out, 'runes/v1/changes/6.json'))).toMatchObject({ height: 6, previous: { height: 5, hash: `0x${hex(below)}` } });
  }
});

/** Builds a mirror of 12 blocks. Builds it again after three new blocks, the first of which replaces the last of the 12. */
async function makeBuilds() {
  const { chain, draw } = chainFor('a mirror that changes', 12);
  const work = temporaryFolder();
  const longer = grown(chain.slice(0, -1), 3, draw);
  const options = { layout: 'archive', lists: true, limits: limitsWith(LIMITS) } as const;
  writeChain(chain, join(work, 'in'));
  await testBuild(join(work, 'one'), { ...options, inputs: [join(work, 'in')] });
  writeChain(longer, join(work, 'in'));
  await testBuild(join(work, 'two'), { ...options, inputs: [join(work, 'in')] });
  return { chain, longer, one: join(work, 'one'), two: join(work, 'two') };
}

let made: ReturnType<typeof makeBuilds> | undefined;
function twoBuilds() {
  made ??= makeBuilds();
  return made;
}

describe('a client that follows a mirror', () => {
  it('waits for new blocks, reads only the manifest until there are some, and ends on an abort', async () => {
    const { chain, longer, one, two } = await twoBuilds();
    let out = one;
    const asked: string[] = [];
    const counting: typeof fetch = (input, init) => {
      asked.push(new URL(String(input)).pathname);
      return fetchOf(out)(input, init);
    };
    const stop = new AbortController();
    const mirror = new Mirror(BASE, { fetch: counting });
    const seen: string[] = [];
    const following = (async () => {
      for await (const change of mirror.changes({ intervalMs: 1, signal: stop.signal })) {
        seen.push(...shown([change]));
        if (seen.length === 1) asked.length = 0;
      }
    })();
    await Promise.race([following, until(() => asked.length > 1)]);
    expect(new Set(asked)).toEqual(new Set(['/runes/v1/manifest.json']));
    out = two;
    await Promise.race([following, until(() => seen.length >= 5)]);
    expect(seen).toEqual([...chain.slice(-1).map(plus), ...chain.slice(-1).map(minus), ...longer.slice(-3).map(plus)]);
    stop.abort(new Error('enough'));
    await expect(following).rejects.toThrow('enough');
  });

  it('reads again while a host replaces files, and fails if files stay missing or come from another build', async () => {
    const { longer, one, two } = await twoBuilds();
    const since = { height: 10, hash: longer[10]?.hash ?? '' };
    // At first, the manifest and the list come from the new build, but the files of blocks from the old build.
    let left = 2;
    const mixed: typeof fetch = (input, init) => {
      const isBlock = /changes\/[0-9]+/.test(String(input));
      if (isBlock) left -= 1;
      return fetchOf(isBlock && left >= 0 ? one : two)(input, init);
    };
    expect(shown(await changesOf(new Mirror(BASE, { fetch: mixed }), { since }))).toEqual(longer.slice(11).map(plus));
    left = Number.POSITIVE_INFINITY;
    await expect(changesOf(new Mirror(BASE, { fetch: mixed }), { since })).rejects.toMatchObject({
      name: 'MirrorError',
      statusCode: 503,
      message: expect.stringMatching(/changes\/11[.]json is missing, or of another build/),
    });
  }, 20_000);

  it('reads a list of blocks again if it is older than the manifest', async () => {
    const { chain, longer, one, two } = await twoBuilds();
    let left = 1;
    const lagging: typeof fetch = (input, init) => {
      const isOld = String(input).includes(INDEX) && left > 0;
      if (isOld) left -= 1;
      return fetchOf(isOld ? one : two)(input, init);
    };
    const seen: Change[] = [];
    for await (const change of new Mirror(BASE, { fetch: lagging }).changes({ since: chain.slice(0, 12), intervalMs: 1 })) {
      seen.push(change);
      if (seen.length === 4) break;
    }
    expect(shown(seen)).toEqual([...chain.slice(-1).map(minus), ...longer.slice(-3).map(plus)]);
  }, 20_000);

  it('refuses blocks that the mirror does not have, waits for blocks above it, and says if a mirror has no changes', async () => {
    const { chain, longer, one, two } = await twoBuilds();
    const newer = new Mirror(BASE, { fetch: fetchOf(two) });
    await expect(changesOf(newer, { since: chain[11] })).rejects.toMatchObject({
      statusCode: 404,
      message: `no block of since is among the newest 8 blocks of the mirror, 6 to 13. Read all that you follow again, and begin without since`,
    });
    await expect(changesOf(newer, { since: chain[5] })).rejects.toMatchObject({ statusCode: 404 });
    expect(await changesOf(new Mirror(BASE, { fetch: fetchOf(one) }), { since: longer[13] })).toEqual([]);
    const { changes: _, ...old } = JSON.parse(read(one, MANIFEST)) as Record<string, unknown>;
    const fetch = fetchOver((path) => (path === MANIFEST ? Buffer.from(JSON.stringify(old)) : undefined));
    await expect(changesOf(new Mirror(BASE, { fetch }))).rejects.toMatchObject({
      statusCode: 501,
      message: 'this mirror has no changes, because an older version of the program made it',
    });
  });

  it('with keys accepts only files that the signature proves', async () => {
    const { longer, two } = await twoBuilds();
    const files = signedFiles(readFiles(two), new Date().toISOString());
    const keyed = (lie: string) => {
      const fetch = fetchOver((path) => {
        const file = files.get(path);
        return path === lie && file !== undefined
          ? Buffer.from(String(file).replace(/"runes":\[.*?\]|"sha256":"./, (text) => `${text} `))
          : file;
      });
      return new Mirror(BASE, { fetch, keys: [KEY.publicText] });
    };
    const since = { height: 12, hash: longer[12]?.hash ?? '' };
    expect(shown(await changesOf(keyed(''), { since }))).toEqual(longer.slice(13).map(plus));
    const lies = [INDEX, 'runes/v1/changes/13.json'].map(async (lie) =>
      expect(changesOf(keyed(lie), { since })).rejects.toMatchObject({
        statusCode: 503,
        message: expect.stringContaining(`${lie} does not have the SHA-256 that the signature of the mirror proves`),
      }),
    );
    await Promise.all(lies);
    await expect(keyed('').get(`/${INDEX}`)).rejects.toThrow('is not covered by the signature');
  }, 20_000);
});

describe('verify', () => {
  it('finds wrong files of changes', async () => {
    const { two } = await twoBuilds();
    const files = readFiles(two);
    const lies: [path: string, change: (text: string) => string, finding: RegExp][] = [
      // If the removed line is that of an empty block, an older block must have a file. Verification then reports that this file is
      // missing.
      [INDEX, (text) => text.replace(/.*\n\]/, ']').replace(',\n]', '\n]'), /is not the file that a build makes|json is missing/],
      [INDEX, () => '{', /changes\/index.json cannot be read/],
      [MANIFEST, (text) => text.replace(/("changes": \{\s*"sha256": ")./, '$1x'), /manifest.json cannot be read/],
      [
        withEntries(two, 'made'),
        (text) => text.replace(/"made":\["[^"]*",?/, '"made":['),
        /changes\/[0-9]+\.json is not the file that a build makes/,
      ],
    ];
    for (const [path, change, finding] of lies) {
      const text = String(files.get(path));
      expect(change(text)).not.toBe(text);
      writeFileSync(join(two, path), change(text));
      const error = await check(two).then(
        () => undefined,
        (thrown: CliError) => thrown,
      );
      expect([path, error?.details.join('\n')]).toEqual([path, expect.stringMatching(finding)]);
      writeFileSync(join(two, path), text);
    }
    await check(two);
  });
});

it('verify finds a spent output that a file of changes leaves out, though the output is from an older block', async () => {
  // Few chains spend no such output in the blocks that have files of changes.
  for (let i = 0; i < 20; i += 1) if ((await leaveOutSpent(chainFor(`left out ${i}`, 60).chain)) > 0) return;
  expect.unreachable('no chain spends such an output');
});

/** Leaves out a spent output in two files of changes at most, one after another. Returns the number of files. */
async function leaveOutSpent(chain: ReturnType<typeof chainFor>['chain']): Promise<number> {
  const [input, out] = [join(temporaryFolder(), 'in'), join(temporaryFolder(), 'out')];
  writeChain(chain, input);
  await testBuild(out, { inputs: [input], lists: true, layout: 'archive', limits: limitsWith({ ...LIMITS, changesEntries: 1000 }) });
  await check(out);
  const paths = readdirSync(join(out, 'runes/v1/changes')).map((name) => `runes/v1/changes/${name}`);
  const [index, manifest] = [read(out, INDEX), read(out, MANIFEST)];
  const made = new Set(paths.flatMap((path) => (JSON.parse(read(out, path)) as { made?: string[] }).made ?? []));
  // Burned units without an address may also be minted, so an output without an address may be left out unnoticed.
  const received = memoryOf(chain).rows.filter(({ operation, address }) => operation === 'receive' && address !== null);
  const addressed = new Set(received.map((row) => `${row.tx_id}:${row.output}`));
  let found = 0;
  for (const path of paths.filter((one) => one !== INDEX)) {
    const text = read(out, path);
    const { spent } = JSON.parse(text) as { spent: string[] };
    const left = spent.find((outpoint) => !made.has(outpoint) && addressed.has(outpoint));
    if (left === undefined || found === 2) continue;
    const changed = text.replace(new RegExp(`,"${left}"|"${left}",?`), '');
    const listed = index.replace(sha256Of(text), sha256Of(changed));
    writeFileSync(join(out, path), changed);
    writeFileSync(join(out, INDEX), listed);
    writeFileSync(join(out, MANIFEST), manifest.replace(sha256Of(index), sha256Of(listed)));
    const error = await check(out).catch((thrown: CliError) => thrown);
    expect((error as CliError).details).toContainEqual(expect.stringMatching(/file of changes of block [0-9]+ has other spent outputs/));
    writeFileSync(join(out, path), text);
    found += 1;
  }
  return found;
}

const sha256Of = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Returns the path of a file of changes in which `list` is not empty. */
const withEntries = (out: string, list: string): string =>
  readdirSync(join(out, 'runes/v1/changes'))
    .map((name) => `runes/v1/changes/${name}`)
    .find((path) => read(out, path).includes(`"${list}":["`)) ?? '';

it('the worker of docs/client.md posts changes, and posts them again if the webhook refused them', async () => {
  const { longer, one, two } = await twoBuilds();
  const told = touchedBy(longer).slice(-3);
  const address = told.flatMap(({ addresses }) => addresses)[0] ?? '';
  const worker = (await import(pathToFileURL(exampleBelow('A webhook', one, [[/'bc1pry0[^']*'/, `'${address}'`]])).href)) as {
    default: { scheduled(event: unknown, env: object): Promise<void> };
  };

  const posted: { readonly height: number; readonly removed: boolean; readonly matches: readonly string[] }[] = [];
  let isDown = true;
  const receiver = createServer(async (request, response) => {
    const body = await new Response(Readable.toWeb(request) as ReadableStream).text();
    if (!isDown) posted.push(JSON.parse(body));
    response.writeHead(isDown ? 500 : 204).end();
  });
  const hook = await listening(receiver);
  const stored = new Map<string, string>();
  const STATE = {
    get: async (key: string) => JSON.parse(stored.get(key) ?? 'null'),
    put: async (key: string, value: string) => stored.set(key, value),
  };
  const run = async (out: string) => {
    const host = await startServer(out);
    try {
      await worker.default.scheduled({}, { STATE, MIRROR: host.url, WEBHOOK: hook.url });
    } finally {
      await host.close();
    }
  };
  try {
    stored.set('since', JSON.stringify([{ height: 10, hash: longer[10]?.hash }]));
    isDown = false;
    await run(one);
    posted.length = 0;
    isDown = true;
    await expect(run(two)).rejects.toThrow('the webhook answered with status 500');
    isDown = false;
    await run(two);
    await run(two);
    const matching = told.filter(
      (block) => block.addresses.includes(address) || fileOf(block, 'contract', LIMITS.changesEntries).includes('"more"'),
    );
    expect(posted.map(({ height, removed }) => [height, removed])).toEqual([[11, true], ...matching.map(({ height }) => [height, false])]);
  } finally {
    await hook.close();
  }
});
