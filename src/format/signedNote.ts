/**
 * Signed notes (C2SP `signed-note`): a text that ends with a line feed, an empty line, and a line for each Ed25519 signature. This line has
 * an em dash, the name of the key, and the base64 of the key's id (4 bytes) followed by the signature (64 bytes). A signature covers the
 * text, including its last line feed.
 */
import { joinBytes } from '../joinBytes.ts';
import { hexOf, sha256, utf8Of } from './sha256.ts';

/** Number for the key type Ed25519 in ids and in encoded keys. */
export const ED25519 = 1;
export const KEY_BYTES = 32;
const ID_BYTES = 4;
const SIGNATURE_BYTES = 64;

/** Maximum length of a note. A longer note is rejected before it is parsed. */
export const MOST_NOTE_CHARACTERS = 16_384;

/** A public key that a reader trusts. */
export interface NoteKey {
  /** Text of the key, as `parseKey` takes it: name, id and base64, with plus signs between them. */
  readonly text: string;
  readonly name: string;
  /** First 4 bytes of the SHA-256 of name, line feed, type and key, as 8 hex digits. */
  readonly id: string;
  readonly publicKey: Uint8Array;
}

export interface SignedNote {
  /** The text, with its last line feed. */
  readonly text: string;
  readonly signatures: readonly { readonly name: string; readonly id: string; readonly signature: Uint8Array }[];
}

/** Checks an Ed25519 signature with the functions of the platform. */
export type CheckSignature = (publicKey: Uint8Array, signature: Uint8Array, message: Uint8Array) => Promise<boolean>;

/** Thrown if a note or key is malformed, no trusted key signed the note, or the note is about another manifest. */
export class NoteError extends Error {
  override readonly name = 'NoteError';
}

const KEY_NAME = /^[^\s+]{1,200}$/u;

/** True for a valid name of a key: no spaces, no plus sign, at most 200 characters. */
export const isKeyName = (name: string): boolean => KEY_NAME.test(name);

export function keyIdOf(name: string, publicKey: Uint8Array): string {
  const bytes = joinBytes([utf8Of(`${name}\n${String.fromCharCode(ED25519)}`), publicKey]);
  return hexOf(sha256(bytes).subarray(0, ID_BYTES));
}

/** Parses the text of a public key. Throws a NoteError if invalid. */
export function parseKey(text: string): NoteKey {
  const [, name = '', id = '', encoded = ''] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(text) ?? [];
  const bytes = fromBase64(encoded);
  const publicKey = new Uint8Array(bytes?.subarray(1) ?? []);
  if (!isKeyName(name) || bytes?.[0] !== ED25519 || publicKey.length !== KEY_BYTES || keyIdOf(name, publicKey) !== id)
    throw new NoteError(
      `${text.startsWith('PRIVATE') ? 'a private key' : JSON.stringify(text.slice(0, 100))} is not a public key, such as mirror.example.org+0a1b2c3d+AbCd…`,
    );
  return { text, name, id, publicKey };
}

const SIGNATURE = /^\u2014 (\S{1,200}) ([A-Za-z0-9+/=]{8,200})$/u;

/** Splits a note into text and signatures. Throws a NoteError for invalid text. */
export function parseNote(note: string): SignedNote {
  const end = note.lastIndexOf('\n\n') + 1;
  if (note.length <= MOST_NOTE_CHARACTERS && end > 0 && note.endsWith('\n')) {
    const lines = note.slice(end + 1, -1).split('\n');
    const signatures = lines.flatMap((line) => {
      const [, name = '', encoded = ''] = SIGNATURE.exec(line) ?? [];
      const bytes = fromBase64(encoded);
      if (bytes === undefined || !isKeyName(name)) return [];
      return [{ name, id: hexOf(bytes.subarray(0, ID_BYTES)), signature: new Uint8Array(bytes.subarray(ID_BYTES)) }];
    });
    if (signatures.length === lines.length) return { text: note.slice(0, end), signatures };
  }
  throw new NoteError('the note has an unrecognised format: it is not a text with signatures');
}

/** Returns the keys that signed a note, at least one. Rejects with a NoteError if none of `keys` did, or if a signature of one is wrong. */
export async function signersOf({ text, signatures }: SignedNote, keys: readonly NoteKey[], check: CheckSignature): Promise<NoteKey[]> {
  const signers: NoteKey[] = [];
  const message = utf8Of(text);
  for (const { name, id, signature } of signatures) {
    const key = keys.find((one) => one.name === name && one.id === id);
    if (key === undefined) continue;
    if (signature.length !== SIGNATURE_BYTES || !(await check(key.publicKey, signature, message)))
      throw new NoteError(`the note has a wrong signature of the key ${name}`);
    signers.push(key);
  }
  if (signers.length > 0) return signers;
  const names = signatures.map(({ name, id }) => `${name}+${id}`).join(', ');
  throw new NoteError(`the note is not signed by a key that you trust, but by ${names}`);
}

/** All platforms have these functions. A character of the decoded text stands for a byte. */
declare const atob: (text: string) => string;
declare const btoa: typeof atob;

/** Decodes base64 with padding. Returns undefined for invalid text, and if unused bits of the last digit are not 0. */
function fromBase64(text: string): Uint8Array | undefined {
  try {
    const bytes = atob(text);
    // Other texts may decode to the same bytes, because atob() ignores spaces and unused bits.
    return btoa(bytes) === text ? Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)) : undefined;
  } catch {
    return undefined;
  }
}
