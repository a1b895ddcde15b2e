/** Tests signed notes and their keys, with examples of other programs and every kind of malformed text. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Manifest } from '../../src/contract/schemas.ts';
import { readMirrorNote, renderMirrorNote } from '../../src/format/mirrorNote.ts';
import { keyIdOf, NoteError, parseKey, parseNote, signersOf } from '../../src/format/signedNote.ts';
import { checkSignature, makeKey, noteTime, parseSigningKey, withNote } from '../../src/output/signingKeys.ts';
import { randomFor } from '../support/seed.ts';

/** Example of the specification (C2SP signed-note). */
const SPECIFICATION = {
  key: 'example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k',
  note: 'This is an example message.\n\n— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n',
};
/** Example of golang.org/x/mod/sumdb/note. */
const GO = {
  privateKey: 'PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz',
  key: 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW',
  note: "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n\n— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n",
};

const open = async (note: string, ...keys: readonly string[]) => {
  const parsed = parseNote(note);
  const signers = await signersOf(parsed, keys.map(parseKey), checkSignature);
  return { text: parsed.text, signers: signers.map(({ text }) => text) };
};

describe('the examples of other programs', () => {
  it.each([SPECIFICATION, GO])('are read: $key', async ({ key, note }) => {
    expect(await open(note, key)).toEqual({ text: note.slice(0, note.lastIndexOf('\n—')), signers: [key] });
  });

  it('have the same keys here', () => {
    const key = parseSigningKey(`${GO.privateKey}\n`, 'the test');
    expect([key.publicText, key.name, key.id]).toEqual([GO.key, 'PeterNeumann', 'c74f20a3']);
    const seed = Buffer.from(GO.privateKey.split('+').slice(4).join('+'), 'base64').subarray(1);
    expect(makeKey('PeterNeumann', seed)).toEqual({ privateText: GO.privateKey, publicText: GO.key });
    expect(keyIdOf('PeterNeumann', parseKey(GO.key).publicKey)).toBe('c74f20a3');
  });
});

const SEED = Buffer.alloc(32, 7);
const OWN = makeKey('mirror.example.org', SEED);
const OTHER = makeKey('mirror.example.org', Buffer.alloc(32, 8));
const MANIFEST = {
  generator: 'rune-activity-mirror',
  format: 3,
  dialect: 'hiro',
  archive: { root: 'ab'.repeat(32), bytes: 77 },
  tip: { height: 840_000, hash: 'cd'.repeat(32) },
} as unknown as Manifest;
const NOW = new Date('2026-11-24T00:41:07.999Z');
const signed = (...keys: readonly { privateText: string }[]) =>
  withNote(
    MANIFEST,
    { network: 'mainnet', time: noteTime(NOW, undefined) },
    keys.map(({ privateText }) => parseSigningKey(privateText, 'the test')),
  );
const TEXT = `rune-activity-mirror/1
network mainnet
time 2026-11-24T00:41:07Z
format 3
dialect hiro
height 840000
hash ${'cd'.repeat(32)}
root ${'ab'.repeat(32)}
manifest 1f8a48ab2e9abc0fcf3b9a7a6c4ebd45f1e9bb1f4c3ba2d9f8e3a3c8e8b9d1a1
`;

describe('the note of a mirror', () => {
  it('has the same bytes as in earlier versions', async () => {
    const { note = '' } = signed(OWN);
    expect(note).toMatchInlineSnapshot(`
      "rune-activity-mirror/1
      network mainnet
      time 2026-11-24T00:41:07Z
      format 3
      dialect hiro
      height 840000
      hash cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd
      root abababababababababababababababababababababababababababababababab
      manifest bcffaab1ef600ae1276c79d45f632615a8d8bfe894f5920f36c550e9fc7d1959

      — mirror.example.org LCyx4PjcJIoyESDj1UuW2k2QqI9oQninv+sH5TI2x36WuFWeIpRBsNJKqitnQlQddjqco9tdPxL14rbBV10iclwlQws=
      "
    `);
    expect(await open(note, OWN.publicText)).toMatchObject({ signers: [OWN.publicText] });
  });

  it('does not depend on the note that the manifest already has, and differs for any other manifest', () => {
    const facts = { network: 'mainnet', time: '2026-11-24T00:41:07Z' };
    const text = renderMirrorNote(MANIFEST, facts);
    expect(readMirrorNote(text, signed(OWN, OTHER))).toEqual(facts);
    for (const change of [
      { format: 4 },
      { dialect: 'contract' },
      { blocks: 1 },
      { tip: undefined },
      { tip: { height: 840_000, hash: 'ce'.repeat(32) } },
      { archive: { root: 'ab'.repeat(32), bytes: 78 } },
    ])
      expect(() => readMirrorNote(text, { ...MANIFEST, ...change }), JSON.stringify(change)).toThrow('the note is not about this manifest');
  });

  it.each([
    ['another origin', TEXT.replace('/1', '/2')],
    ['no time', TEXT.replace(/time .*\n/, '')],
    ['a time with fractions', TEXT.replace('07Z', '07.5Z')],
    ['a network of two words', TEXT.replace('mainnet', 'main net')],
    ['a further line', `${TEXT}more 1\n`],
    ['a line twice', TEXT.replace('format 3\n', 'format 3\nformat 3\n')],
    ['nothing', ''],
  ])('is refused with %s', (_, text) => {
    const right = renderMirrorNote(MANIFEST, { network: 'mainnet', time: '2026-11-24T00:41:07Z' });
    const changed = text.replace(/manifest .*/, /manifest .*/.exec(right)?.[0] ?? '');
    expect(changed).not.toBe(right);
    expect(() => readMirrorNote(changed, MANIFEST)).toThrow(NoteError);
  });
});

describe('signatures', () => {
  it('of several keys count for each key, and unknown keys are ignored', async () => {
    const { note = '' } = signed(OWN, OTHER);
    for (const keys of [[OWN], [OTHER], [OTHER, OWN]]) {
      const { signers } = await open(note, ...keys.map(({ publicText }) => publicText));
      expect(signers.sort()).toEqual(keys.map(({ publicText }) => publicText).sort());
    }
    await expect(open(note, GO.key)).rejects.toThrow(
      `the note is not signed by a key that you trust, but by mirror.example.org+${parseKey(OWN.publicText).id}, mirror.example.org+`,
    );
  });

  it('of a known key that are wrong make the note invalid, even next to a right signature', async () => {
    const { note = '' } = signed(OWN, OTHER);
    const lines = note.split('\n');
    const at = lines.length - 2;
    const bytes = Buffer.from(lines[at]?.split(' ')[2] ?? '', 'base64');
    bytes[20] = (bytes[20] ?? 0) ^ 1;
    lines[at] = `— mirror.example.org ${bytes.toString('base64')}`;
    const forged = lines.join('\n');
    expect((await open(forged, OWN.publicText)).signers).toEqual([OWN.publicText]);
    for (const keys of [[OTHER], [OWN, OTHER]])
      await expect(open(forged, ...keys.map(({ publicText }) => publicText))).rejects.toThrow(
        'wrong signature of the key mirror.example.org',
      );
  });

  it('do not cover a note with any other byte', async () => {
    const random = randomFor('bytes of notes');
    const { note = '' } = signed(OWN);
    const bytes = Buffer.from(note);
    for (let i = 0; i < 500; i += 1) {
      const changed = Buffer.from(bytes);
      const at = Math.floor(random() * bytes.length);
      changed[at] = (changed[at] ?? 0) ^ (1 << Math.floor(random() * 8));
      await expect(open(changed.toString(), OWN.publicText), `byte ${at}`).rejects.toThrow(NoteError);
    }
  });
});

describe('malformed text', () => {
  const { note: right = '' } = signed(OWN);
  it.each([
    ['nothing', ''],
    ['no signature', TEXT],
    ['an empty line for a signature', `${TEXT}\n\n`],
    ['no line feed at the end', right.slice(0, -1)],
    ['a hyphen in place of the dash', right.replace('\u2014', '-')],
    ['a key name with a plus sign', right.replace('mirror.', 'mir+ror.')],
    ['base64 without padding', right.replace(/=\n$/, '\n')],
    ['base64 with unused bits', right.replace(/.=\n$/, '/=\n')],
    ['too many characters', `${'a'.repeat(16_384)}\n${right}`],
  ])('is not accepted as a note: %s', (_, text) => {
    expect(text).not.toBe(right);
    expect(() => parseNote(text)).toThrow(NoteError);
  });

  it.each([
    ['nothing', ''],
    ['the private key', OWN.privateText],
    ['another id', OWN.publicText.replace(/\+[0-9a-f]{8}/, '+00000000')],
    ['an id in upper case', GO.key.replace('c74f20a3', 'C74F20A3')],
    ['a key that is too short', `${GO.key.slice(0, -4)}`],
    ['another type', GO.key.replace('+ARpc', '+Ahpc')],
    ['a line feed', `${GO.key}\n`],
    ['a space in the name', GO.key.replace('Peter', 'Peter ')],
  ])('is not accepted as a public key: %s', (_, text) => {
    expect(() => parseKey(text)).toThrow('is not a public key, such as mirror.example.org+0a1b2c3d+AbCd…');
  });

  it('is never accepted as a key, and never causes another error', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        expect(() => parseKey(text)).toThrow(NoteError);
        expect(() => parseNote(text)).toThrow(NoteError);
      }),
    );
  });

  it('in place of a private key is refused, and the message does not repeat it', () => {
    const secret = OWN.privateText.split('+').at(-1) ?? '';
    for (const text of [
      '',
      OWN.publicText,
      OWN.privateText.replace('mirror', 'other'),
      OWN.privateText.slice(0, -4),
      `${OWN.privateText} x`,
    ]) {
      const error = (() => {
        try {
          return parseSigningKey(text, 'the key file x');
        } catch (thrown) {
          return thrown as Error;
        }
      })();
      expect(error).toMatchObject({ message: 'the key file x has no private key', exitCode: 2 });
      expect(JSON.stringify(error)).not.toContain(secret.slice(0, 10));
    }
  });
});
