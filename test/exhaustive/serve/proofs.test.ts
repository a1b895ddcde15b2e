/**
 * Tests the client with keys. If a host lies, the client throws an error, and never returns a wrong answer. The variable LIES sets the
 * number of random lies.
 */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { sealFile } from '../../../src/contract/archiveFile.ts';
import { ArchiveError } from '../../../src/format/archiveError.ts';
import { PartCache } from '../../../src/format/partCache.ts';
import { contentIn, sizeOf } from '../../../src/format/tails.ts';
import { verifiedRead } from '../../../src/format/verifiedRead.ts';
import { makeKey } from '../../../src/output/signingKeys.ts';
import type { MirrorOptions } from '../../../src/serve/client/client.d.ts';
import { MANIFEST } from '../../support/archives.ts';
import { temporaryFolder, testBuild } from '../../support/build.ts';
import { clientIn } from '../../support/builtClient.ts';
import { Mirror, MirrorError } from '../../support/bundledClient.ts';
import { SAMPLE_INPUT } from '../../support/cases.ts';
import { everyTarget, type Files, fetchOver, forged, KEY, STRANGER, signedBuilds, signedFiles, TIMES } from '../../support/lyingHost.ts';
import { integersFor, randomFor } from '../../support/seed.ts';

const LIES = Number(process.env['LIES'] ?? 500);
const BASE = 'https://mirror.example.org/';
const SIZES = { 'whole files': 8192, ranges: 2 * 1024 * 1024 } as const;
type Size = keyof typeof SIZES;
const NAMES = Object.keys(SIZES) as Size[];

const builds: Partial<Record<Size, { readonly older: Files; readonly newer: Files; readonly truth: ReadonlyMap<string, string> }>> = {};
const buildOf = (name: Size) => {
  const build = builds[name];
  if (build === undefined) throw new Error('not built');
  return build;
};

const keyed = (fetch: typeof globalThis.fetch, options: MirrorOptions = {}) =>
  new Mirror(BASE, { fetch, keys: [KEY.publicText], ...options });
const over = (files: Files) => fetchOver((path) => files.get(path));

/** Returns the status and body of an answer. If the client does not trust the mirror, returns `refused` with the message. */
async function answerOf(mirror: Mirror, target: string): Promise<string> {
  try {
    const { status, body } = await mirror.get(target);
    return status === 503 ? 'refused' : `${status} ${body}`;
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error;
    expect(error.statusCode).toBe(503);
    return `refused: ${error.message}`;
  }
}

beforeAll(async () => {
  for (const name of NAMES) {
    const [older, newer] = await signedBuilds(temporaryFolder(), SIZES[name]);
    const plain = new Mirror(BASE, { fetch: over(newer) });
    const truth = new Map<string, string>();
    for (const target of await everyTarget(plain)) truth.set(target, await answerOf(plain, target));
    builds[name] = { older, newer, truth };
  }
});

describe.each(NAMES)('a signed mirror, %s', (name) => {
  it('gives a client with keys the same answers as a client without keys', async () => {
    const { newer, truth } = buildOf(name);
    expect(truth.size).toBeGreaterThan(150);
    for (const hasRanges of [true, false]) {
      const mirror = keyed(fetchOver((path) => newer.get(path), hasRanges));
      for (const [target, expected] of truth) expect([target, await answerOf(mirror, target)]).toEqual([target, expected]);
    }
    const kinds = new Set([...truth.values()].map((answer) => answer.slice(0, 3)));
    expect([...kinds].sort()).toEqual(['200', '400', '404']);
  });
});

describe('a host that lies', () => {
  it(`gets an error or tells the truth, ${LIES} times`, async () => {
    const draw = integersFor('lies of a host');
    const pick = <T>(items: readonly T[]): T => items[draw(items.length)] as T;
    const counts = { refused: 0, true: 0 };
    for (let i = 0; i < LIES; i += 1) {
      const { older, newer, truth } = buildOf(pick(NAMES));
      const archive = [...newer.keys()].filter((path) => path.startsWith('archive/'));
      const old = [...older.keys()].filter((path) => path.startsWith('archive/'));
      const lies = new Map<string, Buffer | undefined>();
      const victims = Array.from({ length: 1 + draw(archive.length) }, () => pick(archive));
      const kind = draw(10);
      for (const path of victims) {
        const content = Buffer.from(newer.get(path) ?? '');
        const at = draw(content.length);
        if (kind === 0) content[at] = (content[at] ?? 0) ^ (1 + draw(255));
        const from = at - draw(Math.min(at, 40) + 1);
        if (kind === 1) content.copy(content, from, draw(content.length));
        const changed: readonly (() => Buffer | undefined)[] = [
          () => content,
          () => content,
          () => content.subarray(0, at),
          () => Buffer.concat([content, content.subarray(at)]),
          () => newer.get(pick(archive)),
          () => older.get(pick(old)),
          () => undefined,
          () => forged(newer.get(path) ?? content, draw),
          // This lie is a file with other content. Its tail has the digests of this content, so the file itself is valid.
          () => sealFile(content.subarray(0, Math.max(at, 1))).file,
          () => content,
        ];
        lies.set(path, changed[kind]?.());
      }
      if (kind === 9 || draw(10) === 0) lies.set(MANIFEST, wrongManifest(draw, older, newer));
      // Some hosts lie only in a part of the answers, and some ignore ranges.
      const share = draw(3);
      const hasRanges = draw(4) > 0;
      const fetch = fetchOver(
        (path) => (lies.has(path) && draw(3) >= share ? lies.get(path) : (newer.get(path) ?? older.get(path))),
        hasRanges,
      );
      // The client has seen the newer state before.
      const state = { time: TIMES[1], root: rootOf(newer) };
      const mirror = keyed(fetch, { remember: new Map([[KEY.publicText, state]]) });
      for (let asked = 0; asked < 3; asked += 1) {
        const target = pick([...truth.keys()]);
        const answer = await answerOf(mirror, target);
        if (answer.startsWith('refused')) counts.refused += 1;
        else {
          counts.true += 1;
          if (answer !== truth.get(target)) expect([i, kind, target, answer]).toEqual([i, kind, target, truth.get(target)]);
        }
      }
    }
    expect(counts.refused).toBeGreaterThan(LIES / 4);
    expect(counts.true).toBeGreaterThan(LIES / 4);
  });
});

const manifestIn = (files: Files) => JSON.parse(String(files.get(MANIFEST))) as Record<string, unknown>;
const rootOf = (files: Files) => (manifestIn(files)['archive'] as { root: string }).root;

/** Returns a manifest that a lying host may send instead of the newer one. */
function wrongManifest(draw: (below: number) => number, older: Files, newer: Files): Buffer {
  const [before, now] = [manifestIn(older), manifestIn(newer)];
  const bytes = (manifest: object) => Buffer.from(JSON.stringify(manifest));
  const note = String(now['note']);
  const at = draw(note.length);
  const key = Object.keys(now)[draw(Object.keys(now).length)] ?? '';
  const kinds: readonly (() => Buffer)[] = [
    () => older.get(MANIFEST) ?? Buffer.alloc(0),
    () => bytes({ ...now, note: before['note'] }),
    () => bytes({ ...before, note }),
    () => bytes({ ...now, archive: before['archive'] }),
    // This lie is the note of the older state with a later time, under the signatures of the newer note.
    () =>
      bytes({
        ...before,
        note: String(before['note'])
          .replace(TIMES[0], '2026-11-24T03:00:00Z')
          .replace(/\n\n.*/s, note.slice(note.indexOf('\n\n'))),
      }),
    () => bytes({ ...now, note: undefined }),
    () => bytes({ ...now, note: note.slice(0, at) + note.slice(at + 1) }),
    () => bytes({ ...now, [key]: before[key] === now[key] ? 'hiro' : before[key] }),
    () => bytes({ ...now, lists: {} }),
    () => bytes({ ...now, page_sizes: [20, 61] }),
    () => bytes({ ...now, further: 1 }),
    () => signedFiles(newer, TIMES[1], {}, STRANGER).get(MANIFEST) ?? Buffer.alloc(0),
  ];
  return kinds[draw(kinds.length)]?.() ?? Buffer.alloc(0);
}

describe('a manifest', () => {
  const refusal = async (files: Files, options: MirrorOptions = {}) => answerOf(keyed(over(files), options), '/runes/v1/etchings');
  const withManifest = (change: (manifest: Record<string, unknown>) => object): Files => {
    const { newer } = buildOf('ranges');
    return new Map([...newer, [MANIFEST, Buffer.from(JSON.stringify(change(manifestIn(newer))))]]);
  };

  it('with any field changed, added or left out is refused', async () => {
    const { newer } = buildOf('ranges');
    for (const key of Object.keys(manifestIn(newer)).filter((one) => !['generator', 'format', 'note', 'layout'].includes(one))) {
      expect(await refusal(withManifest(({ [key]: _, ...rest }) => rest)), key).toBe('refused: the note is not about this manifest');
      expect(await refusal(withManifest((manifest) => ({ ...manifest, [key]: 'x' }))), key).toBe(
        'refused: the note is not about this manifest',
      );
    }
    expect(await refusal(withManifest((manifest) => ({ ...manifest, more: 1 })))).toBe('refused: the note is not about this manifest');
    expect(await refusal(withManifest((manifest) => ({ ...manifest, format: 5 })))).toMatch(/have format 5/);
  });

  it('without a note, with the note of a stranger or with a wrong signature is refused', async () => {
    const { newer } = buildOf('ranges');
    expect(await refusal(withManifest(({ note: _, ...rest }) => rest))).toBe('refused: the mirror is not signed: its manifest has no note');
    expect(await refusal(signedFiles(newer, TIMES[1], {}, STRANGER))).toMatch(
      /^refused: the note is not signed by a key that you trust, but by mirror[.]example[.]org[+]/,
    );
    const forged = withManifest((manifest) => ({
      ...manifest,
      note: String(manifest['note']).replace('time 2026-11-24T01', 'time 2026-11-24T02'),
    }));
    expect(await refusal(forged)).toBe('refused: the note has a wrong signature of the key mirror.example.org');
  });

  it('that is older than maxAge is refused', async () => {
    const { newer } = buildOf('ranges');
    const recent = signedFiles(newer, new Date(Date.now() - 60_000).toISOString());
    expect(await refusal(recent, { maxAge: 120_000 })).toMatch(/^200 /);
    expect(await refusal(recent, { maxAge: 30_000 })).toMatch(
      /^refused: the mirror was signed at 2.*longer ago than maxAge allows \(30000 ms\)$/,
    );
    // If the operator's clock is wrong, a note has a signing time in the future. Such a note must not block a client forever, and must not
    // replace the states that the client remembers.
    const remember = new Map();
    const early = signedFiles(newer, new Date(Date.now() + 600_000).toISOString());
    expect(await refusal(early, { maxAge: 120_000, remember })).toMatch(/^refused: the mirror was signed at 2.*further in the future/);
    expect(await refusal(recent, { maxAge: 120_000, remember })).toMatch(/^200 /);
  });

  it('with an older time, or with another root at the same time, is refused by a client that has seen another one', async () => {
    const { older, newer } = buildOf('ranges');
    const before = 'refused: the mirror shows a state that was signed at';
    let files = newer;
    const memory = new Map<string, { time: string; root: string }>();
    const remember = {
      get: async (key: string) => memory.get(key),
      set: async (key: string, state: { time: string; root: string }) => void memory.set(key, state),
    };
    const mirror = keyed(
      fetchOver((path) => files.get(path)),
      { remember, freshMs: 0 },
    );
    const ask = () => answerOf(mirror, '/runes/v1/etchings');
    expect(await ask()).toMatch(/^200 /);
    expect([...memory]).toEqual([[KEY.publicText, { time: TIMES[1], root: rootOf(newer) }]]);
    files = older;
    expect(await ask()).toBe(`${before} ${TIMES[0]}, but it has already shown another state, signed at ${TIMES[1]}`);
    files = signedFiles(older, TIMES[1]);
    expect(await ask()).toMatch(before);
    expect(await answerOf(keyed(over(older), { remember }), '/runes/v1/etchings')).toMatch(before);
    // A client that remembers no state accepts the older state, because the operator has signed it.
    expect(await answerOf(keyed(over(older)), '/runes/v1/etchings')).toMatch(/^200 /);
    // A state with a later time may have a lower height, for example after a reorganisation.
    files = signedFiles(older, '2026-11-24T02:00:00Z');
    expect(await ask()).toMatch(/^200 /);
    files = newer;
    expect(await ask()).toMatch(before);
  });

  it('in layout files is refused', async () => {
    const out = join(temporaryFolder(), 'files');
    await testBuild(out, { inputs: [SAMPLE_INPUT] });
    const fetch = fetchOver((path) => readFileSync(join(out, path)));
    expect(await answerOf(keyed(fetch), '/runes/v1/blocks/2000007/activity')).toBe(
      'refused: the mirror has layout files, which cannot prove its answers. Only layout archive can be used with keys',
    );
  });

  it('is also checked by the client module of a build, which loads the code for it only with keys', async () => {
    const { newer, truth } = buildOf('ranges');
    const folder = temporaryFolder();
    for (const path of ['client.js', 'lists.js']) writeFileSync(join(folder, path), newer.get(path) ?? '');
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    const { Mirror: Bundled, MirrorError: BundledError } = await clientIn(folder);
    const target = [...truth.keys()].find((one) => one.includes('/holders')) ?? '';
    expect(`200 ${(await new Bundled(BASE, { fetch: over(newer) }).get(target)).body}`).toBe(truth.get(target));
    const mirror = new Bundled(BASE, { fetch: over(newer), keys: [STRANGER.publicText, KEY.publicText] });
    await expect(mirror.get(target)).rejects.toThrow(/proofs[.]js/);
    // Uses another folder for the complete module, because Node remembers that the module was missing.
    const complete = temporaryFolder();
    for (const path of ['client.js', 'lists.js', 'proofs.js']) writeFileSync(join(complete, path), newer.get(path) ?? '');
    writeFileSync(join(complete, 'package.json'), '{"type":"module"}');
    const proving = new (await clientIn(complete)).Mirror(BASE, { fetch: over(newer), keys: [STRANGER.publicText, KEY.publicText] });
    expect(`200 ${(await proving.get(target)).body}`).toBe(truth.get(target));
    expect(await proving.manifest()).toEqual(manifestIn(newer));
    const refused = new Bundled(BASE, { fetch: over(newer), keys: [] }).manifest();
    await expect(refused).rejects.toBeInstanceOf(BundledError);
  });
});

describe('the memory of a client', () => {
  const NEXT = makeKey('mirror.example.org', Buffer.alloc(32, 3));
  const LATER = '2026-11-24T02:00:00Z';
  const target = '/runes/v1/etchings';
  type State = { readonly time: string; readonly root: string };
  /** Makes a store of states outside of the client. `pause` returns the number of event loop turns that a call waits. */
  const storeOf = (states: Map<string, State>, pause: () => number = () => 1) => {
    const wait = async () => {
      for (let turns = pause(); turns > 0; turns -= 1) await new Promise((resolve) => setImmediate(resolve));
    };
    return {
      get: async (key: string) => {
        const state = states.get(key);
        await wait();
        return state;
      },
      set: async (key: string, state: State) => {
        await wait();
        states.set(key, state);
      },
    };
  };

  it('protects against states that only an older key signed, also during and after a rotation of keys', async () => {
    const { older, newer } = buildOf('ranges');
    const states = new Map<string, State>();
    const ask = (files: Files) =>
      answerOf(keyed(over(files), { keys: [KEY.publicText, NEXT.publicText], remember: storeOf(states) }), target);
    const [byOld, byBoth, byNew] = [
      signedFiles(older, TIMES[0], {}, KEY),
      signedFiles(newer, TIMES[1], {}, KEY, NEXT),
      signedFiles(newer, LATER, {}, NEXT),
    ];
    expect(await ask(byOld)).toMatch(/^200 /);
    expect(await ask(byNew)).toMatch(/^200 /);
    // The store has the state of TIMES[0] for the old key. The client has never seen a note that both keys signed.
    const refused = (time: string) =>
      `refused: the mirror shows a state that was signed at ${time}, but it has already shown another state, signed at ${LATER}`;
    expect(await ask(signedFiles(older, TIMES[1], {}, KEY))).toBe(refused(TIMES[1]));
    expect(await ask(byOld)).toBe(refused(TIMES[0]));
    expect(await ask(byBoth)).toBe(refused(TIMES[1]));
    expect(await ask(signedFiles(older, LATER, {}, KEY))).toBe(refused(LATER));
    expect(await ask(byNew)).toMatch(/^200 /);
    // Clients of other mirrors, which have other keys and other times, may share the store.
    const other = { keys: [STRANGER.publicText], remember: storeOf(states) };
    expect(await answerOf(keyed(over(signedFiles(older, TIMES[0], {}, STRANGER)), other), target)).toMatch(/^200 /);
    expect(states.get(NEXT.publicText)).toEqual({ time: LATER, root: rootOf(newer) });
  });

  it('accepts an honest mirror that was replaced while another client with the same memory read it', async () => {
    const { older, newer } = buildOf('ranges');
    const remember = storeOf(new Map());
    let [reads, files] = [0, older];
    const slow = fetchOver((path) => files.get(path));
    const mirror = keyed(
      async (input, init) => {
        const answer = await slow(input, init);
        if (!String(input).endsWith('/manifest.json')) return answer;
        reads += 1;
        if (reads > 1) return answer;
        // The operator uploads a new build. Another client sees it first and stores its state.
        files = newer;
        expect(await answerOf(keyed(over(newer), { remember }), target)).toMatch(/^200 /);
        return answer;
      },
      { remember },
    );
    expect(await answerOf(mirror, target)).toBe(await answerOf(keyed(over(newer)), target));
    expect(reads).toBe(2);
    // Refuses a mirror that stays at the older state.
    files = older;
    reads = 1;
    const again = keyed(
      (input, init) => {
        if (String(input).endsWith('/manifest.json')) reads += 1;
        return slow(input, init);
      },
      { remember },
    );
    expect(await answerOf(again, target)).toMatch(/^refused: the mirror shows a state that was signed at/);
    expect(reads).toBe(3);
  });

  it('never becomes older if clients share it', async () => {
    const { older, newer } = buildOf('ranges');
    for (let first = 0; first < 6; first += 1) {
      for (let second = 0; second < 6; second += 1) {
        const states = new Map<string, State>();
        const pauses = [first, second, second, first];
        const remember = storeOf(states, () => pauses.shift() ?? 1);
        const both = [older, newer].map((files) => answerOf(keyed(over(files), { remember }), target));
        expect((await Promise.all(both))[1]).toMatch(/^200 /);
        expect(states.get(KEY.publicText)?.time, `${first} ${second}`).toBe(TIMES[1]);
      }
    }
  });

  it('never becomes older in a client whose store was overwritten', async () => {
    const { older, newer } = buildOf('ranges');
    const states = new Map<string, State>();
    let files = newer;
    const mirror = keyed(
      fetchOver((path) => files.get(path)),
      { remember: storeOf(states), freshMs: 0 },
    );
    expect(await answerOf(mirror, target)).toMatch(/^200 /);
    states.set(KEY.publicText, { time: TIMES[0], root: rootOf(older) });
    files = older;
    expect(await answerOf(mirror, target)).toMatch(/^refused: the mirror shows a state that was signed at/);
    files = newer;
    expect(await answerOf(mirror, target)).toMatch(/^200 /);
    expect(states.get(KEY.publicText)?.time).toBe(TIMES[1]);
  });
});

describe('a client with keys', () => {
  const ask = (options: MirrorOptions, target = '/runes/v1/etchings') => answerOf(keyed(over(buildOf('ranges').newer), options), target);

  it('refuses files that the note does not cover', async () => {
    for (const path of ['runes/v1/stats.json', 'runes/v1/search/aa.json', 'runes/v1/digests/0.json'])
      expect(await ask({}, `/${path}`)).toBe(
        `refused: ${path} is not covered by the signature of the mirror, so a client with keys does not read it`,
      );
    expect(await ask({}, '/runes/v1/')).toMatch(/^refused: runes\/v1\/index.json is not covered/);
    expect(await ask({}, '/runes/v1/manifest.json')).toBe(`200 ${buildOf('ranges').newer.get(MANIFEST)}`);
  });

  it('returns the text of a manifest that the note proves, whatever other text the host sends', async () => {
    const { newer } = buildOf('ranges');
    const text = String(newer.get(MANIFEST));
    // A JSON text may have the same key twice. Some programs use the first value, others the last one.
    const twice = new Map([...newer, [MANIFEST, Buffer.from(text.replace('"tip":', '"tip":{"height":1},"tip":'))]]);
    for (const files of [twice, new Map([...newer, [MANIFEST, Buffer.from(JSON.stringify(JSON.parse(text)))]])])
      expect(await answerOf(keyed(over(files)), '/runes/v1/manifest.json')).toBe(`200 ${text}`);
  });

  it('refuses malformed keys, and an empty list of keys', async () => {
    await expect(ask({ keys: [KEY.privateText] })).rejects.toThrow(/^keys: a private key is not a public key/);
    await expect(ask({ keys: [] })).rejects.toThrow('keys: the list of keys is empty, so no mirror can be trusted');
  });

  it('refuses everything if the platform cannot check signatures', async () => {
    try {
      vi.stubGlobal('crypto', {});
      expect(await ask({})).toBe('refused: checking signatures needs WebCrypto (crypto.subtle), which browsers have only on https');
      const unsupported = () => Promise.reject(new DOMException('Unrecognized name.', 'NotSupportedError'));
      vi.stubGlobal('crypto', { subtle: { importKey: unsupported } });
      expect(await ask({})).toBe(
        'refused: this browser or runtime cannot check Ed25519 signatures (NotSupportedError: Unrecognized name.): update it',
      );
    } finally {
      vi.unstubAllGlobals();
    }
  });
});

describe('a verified read', () => {
  const digest = async (bytes: Uint8Array) => createHash('sha256').update(bytes).digest();

  it('returns the bytes of the file, or an error for any wrong byte in the part that it reads', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 200_000 }),
        fc.nat(),
        fc.nat(),
        fc.nat(),
        fc.boolean(),
        async (bytes, a, b, at, isKnown) => {
          const content = Buffer.alloc(bytes, randomFor(`content ${bytes}`)().toString());
          const { name, file } = sealFile(content);
          expect([sizeOf(bytes), contentIn(file.length)]).toEqual([file.length, bytes]);
          const offset = a % bytes;
          const length = b % 3 === 0 ? bytes - offset : 1 + (b % (bytes - offset));
          const reads: [number, number][] = [];
          let served = file;
          const tails = new PartCache();
          const read = verifiedRead(
            async (_, from, count) => {
              reads.push([from, from + count]);
              return from + count > served.length ? undefined : served.subarray(from, from + count);
            },
            digest,
            tails,
          );
          if (isKnown) await read(name, 0, 1, file.length);
          reads.length = 0;
          expect(Buffer.from((await read(name, offset, length, file.length)) ?? '').equals(content.subarray(offset, offset + length))).toBe(
            true,
          );
          expect(reads.length).toBeLessThanOrEqual(isKnown ? 1 : 2);
          const whole = await read(name, 0, file.length, file.length);
          expect(Buffer.from(whole ?? '').equals(file)).toBe(true);

          const wrong = Buffer.from(file);
          const place = at % file.length;
          wrong[place] = (wrong[place] ?? 0) ^ (1 + (at % 255));
          served = wrong;
          const fresh = verifiedRead(async (_, from, count) => served.subarray(from, from + count), digest, new PartCache());
          const answer = await fresh(name, offset, length, file.length).catch((error: unknown) => error);
          const first = offset - (offset % 16_384);
          const last = Math.ceil((offset + length) / 16_384) * 16_384;
          if (place >= bytes || (place >= first && place < last)) expect(answer).toBeInstanceOf(ArchiveError);
          else expect(Buffer.from(answer as Uint8Array).equals(content.subarray(offset, offset + length))).toBe(true);
          served = file.subarray(0, place);
          expect(await read(name, 0, file.length, file.length).catch(() => undefined)).toBeUndefined();
        },
      ),
      { numRuns: 300 },
    );
  });
});
