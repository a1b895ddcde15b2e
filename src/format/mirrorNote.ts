/**
 * The note of a mirror: the text that an operator signs (signedNote.ts). It has the digest of the manifest and the name of the archive's
 * root. So a signature covers every field of the manifest and every byte of the archive.
 */
import { hexOf, sha256, utf8Of } from './sha256.ts';
import { NoteError } from './signedNote.ts';

const ORIGIN = 'rune-activity-mirror/1';

/** Fields of a manifest that the note repeats. The digest of the manifest covers all other fields. */
export interface NotedManifest {
  readonly format?: unknown;
  readonly dialect?: unknown;
  readonly tip?: { readonly height: number; readonly hash: string } | undefined;
  readonly archive?: { readonly root: string } | undefined;
  readonly note?: unknown;
}

/** Values of a note that are not in the manifest. */
export interface NoteFacts {
  /** Network of the chain, as Bitcoin Core names it, such as `main`; `-` if the input does not name it. */
  readonly network: string;
  /** Time of signing, such as `2026-11-24T00:41:07Z`. Sorted as texts, such times are in chronological order. */
  readonly time: string;
}

/** Renders the note for a manifest, without the manifest's own field `note`. */
export function renderMirrorNote({ note: _, ...manifest }: NotedManifest, { network, time }: NoteFacts): string {
  const { format, dialect, tip, archive } = manifest;
  const lines = [
    ORIGIN,
    `network ${network}`,
    `time ${time}`,
    `format ${format}`,
    `dialect ${dialect}`,
    `height ${tip?.height ?? '-'}`,
    `hash ${tip?.hash ?? '-'}`,
    `root ${archive?.root}`,
    `manifest ${hexOf(sha256(utf8Of(JSON.stringify(manifest))))}`,
  ];
  return `${lines.join('\n')}\n`;
}

const FACTS = new RegExp(`^${ORIGIN}\nnetwork (\\S{1,20})\ntime (\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ)\n`);

/** Returns the time in a note; undefined if it has none. Checks nothing else. */
export function timeOfNote(note: unknown): string | undefined {
  const time = FACTS.exec(String(note))?.[2];
  return time === undefined || Number.isNaN(Date.parse(time)) ? undefined : time;
}

/** Returns the facts in the text of a note. Throws a NoteError unless the text is exactly the note of this manifest. */
export function readMirrorNote(text: string, manifest: NotedManifest): NoteFacts {
  const [, network = '', time = ''] = FACTS.exec(text) ?? [];
  if (text !== renderMirrorNote(manifest, { network, time })) throw new NoteError('the note is not about this manifest');
  return { network, time };
}
