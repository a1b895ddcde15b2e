/**
 * Separate bundle for the part of the client that trusts no host: checks the note of the manifest, and every read of the
 * archive. Loaded only with keys.
 */

import { checkFormat } from '../../format/formatVersion.ts';
import { type NotedManifest, readMirrorNote } from '../../format/mirrorNote.ts';
import { PartCache } from '../../format/partCache.ts';
import { hexOf, utf8Of } from '../../format/sha256.ts';
import { type CheckSignature, NoteError, type NoteKey, parseKey, parseNote, signersOf } from '../../format/signedNote.ts';
import { verifiedRead } from '../../format/verifiedRead.ts';
import { MissingFileError } from '../../pages/fileAccess.ts';
import { archiveNameOf, archivePath, MANIFEST_PATH } from '../../pages/filePaths.ts';
import type { MirrorMemory, MirrorOptions } from './client.d.ts';
import type { MirrorFiles } from './clientFiles.ts';

export class Proofs {
  readonly #keys: readonly NoteKey[];
  readonly #maxAge: number;
  readonly #memory: MirrorMemory;
  /** Tails of files that were checked. */
  readonly #tails = new PartCache();
  /** Notes are compared with the memory one after another. */
  #last: Promise<unknown> = Promise.resolve();

  /** Throws a NoteError if a key is malformed, or if there is none. */
  constructor({ keys = [], maxAge = Number.POSITIVE_INFINITY, remember = new Map() }: MirrorOptions) {
    if (keys.length === 0) throw new NoteError('the list of keys is empty, so no mirror can be trusted');
    this.#keys = keys.map(parseKey);
    this.#maxAge = maxAge;
    this.#memory = remember;
  }

  /** Returns files that reject whatever the note does not cover. */
  over(files: MirrorFiles): MirrorFiles {
    const read = verifiedRead((file, offset, length, size) => files.read(archivePath(file), offset, length, size), digest, this.#tails);
    return {
      open: async (path) => {
        const file = await files.open(covered(path));
        if (file !== undefined) await this.#check(file.content);
        return file;
      },
      file: async (path, sha256) => {
        const text = await files.file(sha256 === undefined ? covered(path) : path);
        if (text !== undefined && sha256 === undefined) await this.#check(text);
        // The host may be replacing the build.
        if (text !== undefined && sha256 !== undefined && hexOf(await digest(utf8Of(text))) !== sha256)
          throw new MissingFileError(path, 'does not have the SHA-256 that the signature of the mirror proves');
        return text;
      },
      read: (path, offset, length, size) => read(archiveNameOf(path) ?? '', offset, length, size),
      inflate: files.inflate,
    };
  }

  /** Checks the text of a manifest. Rejects with a NoteError if it is not proven, or with a FormatError. */
  async #check(text: string): Promise<void> {
    const manifest = JSON.parse(text) as NotedManifest & { readonly layout?: unknown };
    checkFormat(manifest.format);
    if (manifest.layout !== 'archive')
      throw new NoteError('the mirror has layout files, which cannot prove its answers. Only layout archive can be used with keys');
    if (typeof manifest.note !== 'string') throw new NoteError('the mirror is not signed: its manifest has no note');
    const note = parseNote(manifest.note);
    const signers = await signersOf(note, this.#keys, checkSignature);
    const { time } = readMirrorNote(note.text, manifest);
    if (!(Date.now() - Date.parse(time) <= this.#maxAge))
      throw new NoteError(`the mirror was signed at ${time}, which is longer ago than maxAge allows (${this.#maxAge} ms)`);
    const compared = this.#last.then(() => this.#compare(signers, time, manifest.archive?.root ?? ''));
    this.#last = compared.catch(() => undefined);
    await compared;
  }

  /** Rejects with a NoteError if a key has signed a newer root before, or another root at the same time. */
  async #compare(signers: readonly NoteKey[], time: string, root: string): Promise<void> {
    for (const { text } of signers) {
      const known = await this.#memory.get(text);
      if (known !== undefined && (known.time > time || (known.time === time && known.root !== root)))
        throw new NoteError(`the mirror shows a state that was signed at ${time}, but before it has shown another one of ${known.time}`);
    }
    for (const { text } of signers) await this.#memory.set(text, { time, root });
  }
}

/** Returns the path. Throws a NoteError for a file that the note does not cover. */
function covered(path: string): string {
  if (path === MANIFEST_PATH) return path;
  throw new NoteError(`${path} is not covered by the signature of the mirror, so a client with keys does not read it`);
}

type Subtle = typeof globalThis.crypto.subtle;

/** Returns the cryptography of the platform. Browsers have it only on https and localhost. */
function platform(): Subtle {
  const { subtle } = (globalThis as { crypto?: { subtle?: Subtle } }).crypto ?? {};
  if (subtle === undefined) throw new NoteError('checking signatures needs WebCrypto (crypto.subtle), which browsers have only on https');
  return subtle;
}

// The types of browsers exclude shared memory, which no host uses.
const own = (bytes: Uint8Array) => bytes as Uint8Array<ArrayBuffer>;

const digest = async (bytes: Uint8Array): Promise<Uint8Array> => new Uint8Array(await platform().digest('SHA-256', own(bytes)));

const checkSignature: CheckSignature = async (publicKey, signature, message) => {
  const subtle = platform();
  const key = await subtle.importKey('raw', own(publicKey), { name: 'Ed25519' }, false, ['verify']).catch((error: unknown) => {
    throw new NoteError(`this browser or runtime cannot check Ed25519 signatures (${error}): update it`);
  });
  return subtle.verify({ name: 'Ed25519' }, key, own(signature), own(message));
};
