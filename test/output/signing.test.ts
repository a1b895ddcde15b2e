/** Tests builds with keys, the command that makes keys, and the verification of notes. */
import { cpSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Manifest } from '../../src/contract/schemas.ts';
import type { NoteFacts } from '../../src/format/mirrorNote.ts';
import { KEY_VARIABLE, makeKey, parseSigningKey, withNote } from '../../src/output/signingKeys.ts';
import { Mirror } from '../../src/serve/client/mirrorClient.ts';
import { contentOf, MANIFEST, putFile } from '../support/archives.ts';
import { filesBelow, RecordingLog, temporaryFolder, testBuild, tree, writeFiles } from '../support/build.ts';
import { run } from '../support/cli.ts';
import { fetchOver } from '../support/lyingHost.ts';
import { ndjson, record } from '../support/records.ts';

const work = temporaryFolder();
const KEYS = ['first', 'second'].map((name, i) => makeKey(`${name}.example.org`, Buffer.alloc(32, i + 1)));
const [FIRST = '', SECOND = ''] = KEYS.map(({ publicText }) => publicText);
const secretOf = (text: string) => text.split('+').at(-1) ?? '';
const build = (...flags: readonly string[]) => run('build', ['--layout', 'archive', ...flags], work);
const manifestIn = (out: string) => JSON.parse(readFileSync(join(work, out, MANIFEST), 'utf8')) as Record<string, unknown>;
const verify = async (out: string, ...keys: readonly string[]) =>
  run('verify', ['--dir', out, ...keys.flatMap((key) => ['--key', key])], work);
const withoutNote = (files: Record<string, string>) => Object.fromEntries(Object.entries(files).filter(([path]) => path !== MANIFEST));

beforeAll(() => {
  writeFiles(work, { 'input/a.ndjson': ndjson([record(5, 1), record(6, 1)]) });
  for (const [i, { privateText }] of KEYS.entries()) writeFileSync(join(work, `${i}.key`), `${privateText}\n`);
});

afterEach(() => {
  delete process.env[KEY_VARIABLE];
});

describe('keygen', () => {
  it('writes a private key that only its owner can read, prints the public key, and replaces nothing', async () => {
    const made = await run('keygen', ['--name', 'mirror.example.org', '--out', 'new.key'], work);
    expect([made.code, made.stderr]).toEqual([0, '']);
    expect(made.stdout).toMatch(/^mirror[.]example[.]org\+[0-9a-f]{8}\+[A-Za-z0-9+/=]{44}\n$/);
    const path = join(work, 'new.key');
    const text = readFileSync(path, 'utf8');
    expect([statSync(path).mode & 0o777, text]).toEqual([0o600, expect.stringMatching(/^PRIVATE\+KEY\+mirror[.]example[.]org\+/)]);
    const again = await run('keygen', ['--name', 'mirror.example.org', '--out', 'new.key'], work);
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('Error: new.key exists, and keygen never replaces a file')]);
    expect(readFileSync(path, 'utf8')).toBe(text);
    expect((await build('--out', 'keygen', '--cache', 'keygen.cache', '--key-file', 'new.key')).code).toBe(0);
    expect((await verify('keygen', made.stdout.trim())).code).toBe(0);
  });

  it.each([
    [[], '--name must be given'],
    [['--name', 'a'], '--out must be given'],
    [['--name', 'a b', '--out', 'x'], '--name "a b" must have no spaces, no plus sign'],
    [['--name', 'a+b', '--out', 'x'], '--name "a+b" must have no spaces, no plus sign'],
  ])('refuses %j', async (flags, message) => {
    const { code, stderr } = await run('keygen', flags, work);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`Error: ${message}`)]);
  });
});

describe('a build with keys', () => {
  it('adds a note to the manifest of a build without keys, and renews only this note', async () => {
    await build('--out', 'plain', '--cache', 'plain.cache');
    await build('--out', 'signed', '--cache', 'signed.cache', '--key-file', '0.key', '--key-file', '1.key');
    const { note, ...rest } = manifestIn('signed');
    expect(rest).toEqual(manifestIn('plain'));
    expect(Object.keys(manifestIn('signed')).at(-1)).toBe('note');
    expect(withoutNote(tree(join(work, 'signed')))).toEqual(withoutNote(tree(join(work, 'plain'))));
    for (const keys of [[], [FIRST], [SECOND], [SECOND, FIRST]]) expect((await verify('signed', ...keys)).code).toBe(0);

    const before = tree(join(work, 'signed'));
    const renewed = await build('--out', 'signed', '--cache', 'signed.cache', '--key-file', '1.key');
    expect(renewed.stdout).toContain('0 blocks written');
    expect(withoutNote(tree(join(work, 'signed')))).toEqual(withoutNote(before));
    expect(manifestIn('signed')['note']).not.toBe(note);
    expect((await verify('signed', SECOND)).code).toBe(0);
    expect((await verify('signed', FIRST)).stderr).toContain('the note is not signed by a key that you trust, but by second.example.org+');

    // Without a key, the output of a build depends only on the input and the flags.
    await build('--out', 'signed', '--cache', 'signed.cache');
    expect(tree(join(work, 'signed'))).toEqual(tree(join(work, 'plain')));
    expect((await build('--out', 'signed', '--cache', 'signed.cache')).stdout).toContain('is up to date');
    expect((await verify('signed', FIRST)).stderr).toContain('has no note, so no key has signed it');
  });

  it('signs later than the last time, whatever the clock says, so that clients with keys accept each new state', async () => {
    const out = join(work, 'clock');
    const files = fetchOver((path) => readFileSync(join(out, path)));
    const mirror = new Mirror('https://mirror.example/', { fetch: files, keys: [FIRST], freshMs: 0 });
    const keys = [parseSigningKey(KEYS[0]?.privateText ?? '', 'the test')];
    const start = Date.parse('2026-11-24T00:00:07.900Z');
    const times: unknown[] = [];
    for (const [i, ms] of [0, 50, -3000, -3.2e9, 60_000].entries()) {
      writeFileSync(join(work, 'clock.ndjson'), ndjson(Array.from({ length: i + 1 }, (_, n) => record(5 + n, 1))));
      const log = new RecordingLog();
      const inputs = [join(work, 'clock.ndjson')];
      await testBuild(out, { inputs, layout: 'archive', keys, clock: () => new Date(start + ms), log });
      expect((await mirror.activity({ block: 5 + i })).total).toBe(1);
      times.push([/time (\S+)/.exec(String(manifestIn('clock')['note']))?.[1], log.notices.length]);
      for (const notice of log.notices) expect(notice).toContain('the clock is behind the last signature (2026-11-24T00:00:');
    }
    expect(times).toEqual(
      ['07Z', '08Z', '09Z', '10Z'].map((end, i) => [`2026-11-24T00:00:${end}`, i > 1 ? 1 : 0]).concat([['2026-11-24T00:01:07Z', 0]]),
    );
  });

  it.each<[string, Partial<NoteFacts>, Partial<Manifest>?]>([
    ['of no known network', { network: 'a b' }],
    ['of a network with lines of its own', { network: 'main\ntime 2026-11-24T00:00:00Z' }],
    ['without a network', { network: '' }],
    ['of a year that times cannot have', { time: '+010000-01-01T00:00:00Z' }],
    ['that is too long', { network: 'x'.repeat(17_000) }],
  ])('never publishes a note %s', (_, facts, change = {}) => {
    const manifest = { ...(manifestIn('signed') as Manifest), ...change };
    const sign = () =>
      withNote(manifest, { network: '-', time: '2026-11-24T00:00:00Z', ...facts }, [parseSigningKey(KEYS[0]?.privateText ?? '', '')]);
    expect(sign).toThrow(/^clients would refuse the signed note of this build: the note /);
  });

  it('takes a key from the environment, and writes private keys nowhere', async () => {
    process.env[KEY_VARIABLE] = KEYS[0]?.privateText ?? '';
    const texts = [await build('--out', 'env', '--cache', 'env.cache', '--key-file', '1.key', '--log', 'json'), await verify('env', FIRST)];
    for (const { code, stderr } of texts) expect([code, stderr]).toEqual([0, '']);
    for (const folder of ['env', 'env.cache'])
      for (const path of filesBelow(join(work, folder)))
        for (const { privateText } of KEYS)
          expect([path, readFileSync(join(work, folder, path)).includes(secretOf(privateText))]).toEqual([path, false]);
    for (const { privateText } of KEYS) expect(JSON.stringify(texts)).not.toContain(secretOf(privateText));
    expect((await verify('env', SECOND)).code).toBe(0);
  });

  it.each([
    [
      'layout files',
      ['--layout', 'files', '--key-file', '0.key'],
      1,
      '--key-file and RUNE_MIRROR_KEY can only be used with --layout archive',
    ],
    ['a key in the output', ['--out', 'x', '--key-file', 'x/0.key'], 1, '--key-file x/0.key is in the output folder x'],
    ['a missing file', ['--key-file', 'none.key'], 2, 'the key file none.key cannot be read: ENOENT'],
    ['a file without a key', ['--key-file', 'input/a.ndjson'], 2, 'the key file input/a.ndjson has no private key'],
  ])('refuses %s', async (_, flags, code, message) => {
    const layout = flags.includes('--layout') ? [] : ['--layout', 'archive'];
    const { stderr, ...refused } = await run('build', [...layout, '--dry-run', ...flags], work);
    expect([refused.code, stderr]).toEqual([code, expect.stringContaining(`Error: ${message}`)]);
  });

  it('refuses a malformed key in the environment without repeating it', async () => {
    process.env[KEY_VARIABLE] = (KEYS[0]?.privateText ?? '').slice(0, -1);
    const { code, stderr } = await build('--dry-run');
    expect([code, stderr]).toEqual([2, expect.stringContaining('the environment variable RUNE_MIRROR_KEY has no private key')]);
    expect(stderr).not.toContain(secretOf(KEYS[0]?.privateText ?? '').slice(0, 10));
  });
});

describe('verification of a signed mirror', () => {
  /** Changes a copy of a signed mirror, and verifies it with these keys. Returns the exit code and the findings. */
  async function found(change: (out: string, manifest: Record<string, unknown>) => object | undefined, ...keys: readonly string[]) {
    const [from, out] = [join(work, 'sound'), join(work, 'changed')];
    rmSync(out, { recursive: true, force: true });
    cpSync(from, out, { recursive: true });
    const changed = change(out, manifestIn('changed'));
    if (changed !== undefined) writeFileSync(join(out, MANIFEST), `${JSON.stringify(changed, null, 2)}\n`);
    const { code, stderr } = await verify('changed', ...keys);
    return [code, stderr] as const;
  }

  beforeAll(async () => {
    await build('--out', 'sound', '--cache', 'sound.cache', '--key-file', '0.key');
  });

  it('accepts an unchanged mirror', async () => {
    expect(await found(() => undefined, FIRST)).toEqual([0, '']);
  });

  it('finds a note for another manifest, also without a key', async () => {
    for (const change of [{ dialect: 'hiro' }, { site_url: 'https://other.example/' }, { records: 9 }]) {
      const [code, text] = await found((_, { note, ...manifest }) => ({ ...manifest, ...change, note }));
      expect([code, text]).toEqual([4, expect.stringContaining(`${MANIFEST}: the note is not about this manifest`)]);
    }
  });

  it('finds a damaged note, a wrong signature, and a missing note', async () => {
    const changed = (change: (note: string) => string, ...keys: readonly string[]) =>
      found((_, { note, ...manifest }) => ({ ...manifest, note: change(String(note)) }), ...keys);
    expect(await changed((note) => note.slice(0, -1))).toEqual([4, expect.stringContaining('the note has an unrecognised format')]);
    const forge = (note: string) => note.replace('network -', 'network x');
    expect(await changed(forge, FIRST)).toEqual([
      4,
      expect.stringContaining('the note has a wrong signature of the key first.example.org'),
    ]);
    // The digests do not cover the network in the manifest. So without keys, verification does not find the change.
    expect((await changed(forge))[0]).toBe(0);
    expect(await found((_, { note: __, ...manifest }) => manifest, FIRST)).toEqual([4, expect.stringContaining('has no note')]);
  });

  it('finds every wrong byte of a tail', async () => {
    const { archive } = manifestIn('sound') as { archive: { root: string } };
    for (const path of filesBelow(join(work, 'sound/archive'))) {
      const size = statSync(join(work, 'sound/archive', path)).size;
      const [code, text] = await found((out) => {
        const file = readFileSync(join(out, 'archive', path));
        file[size - 1] = (file[size - 1] ?? 0) ^ 1;
        writeFileSync(join(out, 'archive', path), file);
        return undefined;
      });
      expect([path, code, text]).toEqual([path, 4, expect.stringContaining(path)]);
    }
    // Adds a valid archive file that the root does not name. Verification must report it.
    const [code, text] = await found((out) => void putFile(out, contentOf(out, archive.root).subarray(1)));
    expect([code, text]).toEqual([4, expect.stringContaining('is not part of this build')]);
  });

  it('refuses a malformed key, and a key without a folder, with exit code 1', async () => {
    const { code, stderr } = await verify('sound', 'nothing');
    expect([code, stderr]).toEqual([1, expect.stringContaining('Error: --key "nothing" is not a public key')]);
    const unused = await run('verify', ['--against', 'a', '--against', 'b', '--key', FIRST], work);
    expect([unused.code, unused.stderr]).toEqual([1, expect.stringContaining('Error: --key needs --dir')]);
  });
});
