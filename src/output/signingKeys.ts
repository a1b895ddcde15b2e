/** Private keys of operators, and the notes that these keys sign (format/mirrorNote.ts). No message shows a private key. */
import { createPrivateKey, createPublicKey, type KeyObject, randomBytes, sign, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { attempt } from '../attempt.ts';
import type { Manifest } from '../contract/schemas.ts';
import { readRegularFile } from '../disk/regularFile.ts';
import { codeOf, InputError, messageOf } from '../errors.ts';
import { type NoteFacts, readMirrorNote, renderMirrorNote, timeOfNote } from '../format/mirrorNote.ts';
import { type CheckSignature, ED25519, isKeyName, KEY_BYTES, keyIdOf, parseNote } from '../format/signedNote.ts';
import { MANIFEST_PATH } from '../pages/filePaths.ts';

/** A private key. Its bytes are in a KeyObject, whose content is never printed. */
export interface SigningKey {
  readonly name: string;
  /** Id of the key: 8 hex digits. */
  readonly id: string;
  readonly key: KeyObject;
  /** Text of the public key, with which readers check signatures. */
  readonly publicText: string;
}

/** Name of the environment variable that may contain the text of a private key. */
export const KEY_VARIABLE = 'RUNE_MIRROR_KEY';

/** Returns the variable, or undefined if the runtime may not read it, such as Deno without `--allow-env`. */
export const keyVariable = (): string | undefined => attempt(() => process.env[KEY_VARIABLE]);

/** Bytes that precede the seed in the DER encoding of an Ed25519 private key (PKCS #8, RFC 8410). */
const PRIVATE_DER = Buffer.from('302e020100300506032b657004220420', 'hex');
/** Bytes that precede the key in the DER encoding of an Ed25519 public key (SPKI). */
const PUBLIC_DER = Buffer.from('302a300506032b6570032100', 'hex');

function keyOf(name: string, seed: Uint8Array): SigningKey {
  const key = createPrivateKey({ key: Buffer.concat([PRIVATE_DER, seed]), format: 'der', type: 'pkcs8' });
  const publicKey = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(PUBLIC_DER.length);
  const id = keyIdOf(name, publicKey);
  return { name, id, key, publicText: `${name}+${id}+${encode(publicKey)}` };
}

const encode = (key: Uint8Array): string => Buffer.from([ED25519, ...key]).toString('base64');

/** Makes a key. Returns the texts of the private and the public key, in the format of golang.org/x/mod/sumdb/note. */
export function makeKey(
  name: string,
  seed: Uint8Array = randomBytes(KEY_BYTES),
): { readonly privateText: string; readonly publicText: string } {
  const { id, publicText } = keyOf(name, seed);
  return { privateText: `PRIVATE+KEY+${name}+${id}+${encode(seed)}`, publicText };
}

/** Parses the text of a private key. `where` names its source in messages. Throws an InputError for any other text. */
export function parseSigningKey(text: string, where: string): SigningKey {
  const [, name = '', id = '', encoded = ''] = /^PRIVATE\+KEY\+([^+]+)\+([0-9a-f]{8})\+(\S+)$/.exec(text.trim()) ?? [];
  const bytes = Buffer.from(encoded, 'base64');
  if (isKeyName(name) && bytes[0] === ED25519 && bytes.length === 1 + KEY_BYTES) {
    const key = keyOf(name, bytes.subarray(1));
    if (key.id === id) return key;
  }
  throw new InputError(`${where} has no private key`, ['Use the file that keygen wrote, unchanged.']);
}

/** Reads a private key from a file. Throws an InputError if the file is unreadable or has no private key. */
export function readSigningKey(path: string): SigningKey {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new InputError(`the key file ${path} cannot be read: ${codeOf(error) ?? 'unknown error'}`, ['Make a key with keygen.']);
  }
  return parseSigningKey(text, `the key file ${path}`);
}

/** Returns `now`, or a second after the last note if that is later: clients refuse an older note, and another one of the same second. */
export function noteTime(now: Date, last: string | undefined): string {
  const after = last === undefined ? Number.NEGATIVE_INFINITY : Date.parse(last) + 1000;
  return new Date(Math.max(now.getTime(), after)).toISOString().replace(/[.]\d+Z$/, 'Z');
}

/** Returns the time of the note in the output folder; undefined if there is no note. */
export const lastNoteTime = (out: string): string | undefined =>
  timeOfNote(attempt(() => JSON.parse(readRegularFile(join(out, MANIFEST_PATH)).toString()).note));

/** Adds a note with the signatures of all keys to a manifest. Throws an InputError if clients could not read the note. */
export function withNote(manifest: Manifest, facts: NoteFacts, keys: readonly SigningKey[]): Manifest {
  const text = renderMirrorNote(manifest, facts);
  const lines = keys.map(({ name, id, key }) => {
    const bytes = Buffer.concat([Buffer.from(id, 'hex'), sign(null, Buffer.from(text), key)]);
    return `\u2014 ${name} ${bytes.toString('base64')}\n`;
  });
  const note = `${text}\n${lines.join('')}`;
  try {
    readMirrorNote(parseNote(note).text, JSON.parse(JSON.stringify(manifest)));
  } catch (error) {
    throw new InputError(`clients would refuse the signed note of this build: ${messageOf(error)}`, [
      `It is about the network ${JSON.stringify(facts.network.slice(0, 50))} at ${facts.time}. Check index.json in the input, and the clock.`,
      'The manifest was not replaced.',
    ]);
  }
  return { ...manifest, note };
}

export const checkSignature: CheckSignature = async (publicKey, signature, message) =>
  verify(null, message, createPublicKey({ key: Buffer.concat([PUBLIC_DER, publicKey]), format: 'der', type: 'spki' }), signature);
