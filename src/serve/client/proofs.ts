/** A separate bundle, proofs.js, for clients with keys: checks the signed note of the manifest, and every read of the archive. */
import { checkFormat } from '../../format/formatVersion.ts';
import { type NotedManifest, readMirrorNote } from '../../format/mirrorNote.ts';
import { PartCache } from '../../format/partCache.ts';
import { hexOf, utf8Of } from '../../format/sha256.ts';
import { type CheckSignature, NoteError, type NoteKey, parseKey, parseNote, signersOf } from '../../format/signedNote.ts';
import { verifiedRead } from '../../format/verifiedRead.ts';
import { MissingFileError } from '../../pages/fileAccess.ts';
import { archiveNameOf, archivePath, MANIFEST_PATH } from '../../pages/filePaths.ts';
import type { MirrorMemory, MirrorOptions, SignedState } from './client.d.ts';
import type { MirrorFiles } from './clientFiles.ts';

/** The state is older than one that the client knows, or has the same time but another root. */
class OldStateError extends NoteError {}

/** The last comparison with each `MirrorMemory`. Clients that share a memory compare one after another. */
const lastOf = new WeakMap<MirrorMemory, Promise<unknown>>();

export class Proofs {
  readonly #keys: readonly NoteKey[];
  readonly #maxAge: number;
  readonly #memory: MirrorMemory;
  /** Checked tails of files (format/tails.ts). */
  readonly #tails = new PartCache();
  /** Newest state that this client has seen. A program may put an older state into the memory, but not here. */
  #newest: SignedState | undefined;

  /** Throws a NoteError if a key is malformed, or if there is none. */
  constructor({ keys = [], maxAge = Number.POSITIVE_INFINITY, remember = new Map() }: MirrorOptions) {
    if (keys.length === 0) throw new NoteError('the list of keys is empty, so no mirror can be trusted');
    this.#keys = keys.map(parseKey);
    this.#maxAge = maxAge;
    this.#memory = remember;
  }

  /** Wraps `files`. A read rejects if the note does not prove what was read. */
  over(files: MirrorFiles): MirrorFiles {
    const read = verifiedRead((file, offset, length, size) => files.read(archivePath(file), offset, length, size), digest, this.#tails);
    const manifest = async (path: string): Promise<string | undefined> => {
      if (path !== MANIFEST_PATH)
        throw new NoteError(`${path} is not covered by the signature of the mirror, so a client with keys does not read it`);
      const load = async () => {
        const file = await files.open(path);
        return file && this.#check(await file.text());
      };
      // Another client with the same memory may have seen a newer state after this client read the manifest.
      return load().catch((error: unknown) => {
        if (error instanceof OldStateError) return load();
        throw error;
      });
    };
    return {
      open: async (path) => {
        const content = await manifest(path);
        return content === undefined ? undefined : { text: async () => content };
      },
      file: async (path, sha256) => {
        if (sha256 === undefined) return manifest(path);
        const text = await files.file(path);
        // The host may be replacing the build. After a MissingFileError, the caller retries.
        if (text !== undefined && hexOf(await digest(utf8Of(text))) !== sha256)
          throw new MissingFileError(path, 'does not have the SHA-256 that the signature of the mirror proves');
        return text;
      },
      read: (path, offset, length, size) => read(archiveNameOf(path) ?? '', offset, length, size),
      inflate: files.inflate,
    };
  }

  /**
   * Checks the text of a manifest. Returns the parsed manifest as JSON text again, because the note proves only the parsed values, which a
   * host may write in several ways. Rejects with a NoteError if the note does not prove the manifest, or with a FormatError.
   */
  async #check(text: string): Promise<string> {
    const manifest = JSON.parse(text) as NotedManifest & { readonly layout?: unknown };
    checkFormat(manifest.format);
    if (manifest.layout !== 'archive')
      throw new NoteError('the mirror has layout files, which cannot prove its answers. Only layout archive can be used with keys');
    if (typeof manifest.note !== 'string') throw new NoteError('the mirror is not signed: its manifest has no note');
    const note = parseNote(manifest.note);
    const signers = await signersOf(note, this.#keys, checkSignature);
    const { time } = readMirrorNote(note.text, manifest);
    const age = Date.now() - Date.parse(time);
    if (!(age <= this.#maxAge))
      throw new NoteError(`the mirror was signed at ${time}, which is longer ago than maxAge allows (${this.#maxAge} ms)`);
    // A note with a future time would stay younger than maxAge for too long, and once it is in `remember`, the client would refuse all
    // states with earlier times.
    if (-age > this.#maxAge)
      throw new NoteError(
        `the mirror was signed at ${time}, which is further in the future than maxAge allows (${this.#maxAge} ms): the clock of its operator or of this client is wrong`,
      );
    const state = { time, root: manifest.archive?.root ?? '' };
    const compared = (lastOf.get(this.#memory) ?? Promise.resolve()).then(() => this.#compare(signers, state));
    const ended = compared.catch(() => undefined);
    lastOf.set(this.#memory, ended);
    await compared;
    return `${JSON.stringify(manifest, null, 2)}\n`;
  }

  /**
   * Rejects with an OldStateError. Compares with the states that any of the keys signed, because otherwise a host could show an old note of
   * one key after the operator has changed to another key.
   */
  async #compare(signers: readonly NoteKey[], state: SignedState): Promise<void> {
    const stored = await Promise.all(this.#keys.map(({ text }) => this.#memory.get(text)));
    const newer = [this.#newest, ...stored].find(
      (known) => known !== undefined && (known.time > state.time || (known.time === state.time && known.root !== state.root)),
    );
    if (newer !== undefined)
      throw new OldStateError(
        `the mirror shows a state that was signed at ${state.time}, but it has already shown another state, signed at ${newer.time}`,
      );
    this.#newest = state;
    for (const { text } of signers) await this.#memory.set(text, state);
  }
}

type Subtle = typeof globalThis.crypto.subtle;

/** Returns the cryptography of the platform. Browsers have it only on https and localhost. */
function platform(): Subtle {
  const { subtle } = (globalThis as { crypto?: { subtle?: Subtle } }).crypto ?? {};
  if (subtle === undefined) throw new NoteError('checking signatures needs WebCrypto (crypto.subtle), which browsers have only on https');
  return subtle;
}

// The cast is safe: TypeScript's DOM types exclude SharedArrayBuffer, and no host uses one.
const own = (bytes: Uint8Array) => bytes as Uint8Array<ArrayBuffer>;

const digest = async (bytes: Uint8Array): Promise<Uint8Array> => new Uint8Array(await platform().digest('SHA-256', own(bytes)));

const checkSignature: CheckSignature = async (publicKey, signature, message) => {
  const subtle = platform();
  const key = await subtle.importKey('raw', own(publicKey), { name: 'Ed25519' }, false, ['verify']).catch((error: unknown) => {
    throw new NoteError(`this browser or runtime cannot check Ed25519 signatures (${error}): update it`);
  });
  return subtle.verify({ name: 'Ed25519' }, key, own(signature), own(message));
};
