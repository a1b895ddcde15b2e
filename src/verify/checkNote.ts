/** Verifies the signed note of a mirror. */
import type { Manifest } from '../contract/schemas.ts';
import { readMirrorNote } from '../format/mirrorNote.ts';
import { NoteError, type NoteKey, parseNote, signersOf } from '../format/signedNote.ts';
import { checkSignature } from '../output/signingKeys.ts';
import { MANIFEST_PATH } from '../pages/filePaths.ts';
import type { Findings } from './findings.ts';

const SIGN_AGAIN = 'Build again with --key-file, which signs layout archive anew.';

/** Checks that the note is about this manifest, and that one of `keys` has signed the note. If `keys` is empty, checks no signature. */
export async function checkNote(manifest: Manifest, keys: readonly NoteKey[], findings: Findings): Promise<void> {
  if (manifest.note === undefined) {
    if (keys.length > 0) findings.add(`${MANIFEST_PATH} has no note, so no key has signed it`, SIGN_AGAIN);
    return;
  }
  try {
    const note = parseNote(manifest.note);
    readMirrorNote(note.text, manifest);
    if (keys.length > 0) await signersOf(note, keys, checkSignature);
  } catch (error) {
    if (!(error instanceof NoteError)) throw error;
    findings.add(`${MANIFEST_PATH}: ${error.message}`, SIGN_AGAIN);
  }
}
