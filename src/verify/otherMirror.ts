/** Reads what `verify --against` compares of a mirror: its manifest, its blocks, and files of its archive and of its rows. */
import { closeSync, existsSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { Log } from '../cli/log.ts';
import { plainUrl } from '../contract/plainUrl.ts';
import { manifest as manifestSchema, misfitOf } from '../contract/schemas.ts';
import { openRegularFile, readRegularFile } from '../disk/regularFile.ts';
import { InputError, UsageError } from '../errors.ts';
import type { ArchiveFiles } from '../format/archiveReader.ts';
import { digestOfBlocks, digestsPaths, readDigests } from '../output/digests.ts';
import { archivePath, MANIFEST_PATH } from '../pages/filePaths.ts';
import { Client } from '../pull/httpClient.ts';
import { baseOf, filesOfArchive, findManifest, impossible, type Listing, readListing } from '../pull/mirror/mirrorSource.ts';

/** Another mirror: a folder, or the URL before `/runes/v1`. */
type Other = string | URL;

/** Parses --against. Throws a UsageError for a URL that cannot be the URL of a mirror. */
export function parseAgainst(text: string): Other {
  if (!/^[a-z]+:\/\//.test(text)) {
    if (/^[a-z0-9.-]+:[0-9]+(?:\/|$)/i.test(text) && !existsSync(text))
      throw new UsageError(`--against ${JSON.stringify(text)} must be a folder, or a URL such as http://${text}`);
    return text;
  }
  const url = plainUrl(text);
  if (url !== undefined) return url;
  throw new UsageError('--against must be a folder, or an http(s) URL without user, password, query and fragment');
}

/** A mirror to compare. */
export interface Compared extends Listing {
  /** Name in messages. */
  readonly name: string;
  /** Reads files of its archive. */
  readonly files: ArchiveFiles;
  /** Reads any other file completely. */
  readonly readFile: (path: string) => Promise<Uint8Array>;
}

/** Reads manifest and digests of another mirror. Throws an InputError if it is not a mirror. */
export async function readOther(other: Other, log: Log): Promise<Compared> {
  if (typeof other === 'string') return { name: other, ...filesIn(other), ...readFolder(other) };
  const client = Client.reporting(log);
  const name = baseOf(other);
  const { read, inflate } = filesOfArchive(name, client);
  const files: ArchiveFiles = { read: (file, offset, length, size) => read(archivePath(file), offset, length, size), inflate };
  const readFile = async (path: string) => {
    const { status, body } = await client.get(`${name}/${path}`, (bytes) => bytes);
    if (body === undefined) throw new Error(`the mirror answered with status ${status}`);
    return body;
  };
  if ((await findManifest(name, client)) === undefined)
    throw new InputError(`${name} is not a mirror of this program: it has no valid ${MANIFEST_PATH}`, [
      'Give the URL before /runes/v1 with --against.',
    ]);
  return { name, files, readFile, ...(await readListing(name, client)) };
}

export const filesIn = (root: string): Pick<Compared, 'files' | 'readFile'> => ({
  files: {
    read: async (file, offset, length) => {
      const handle = openRegularFile(join(root, archivePath(file)));
      try {
        const part = Buffer.allocUnsafeSlow(length);
        return readSync(handle, part, 0, length, offset) === length ? part : undefined;
      } finally {
        closeSync(handle);
      }
    },
    inflate: async (member, most) => gunzipSync(member, { maxOutputLength: most }).toString(),
  },
  readFile: async (path) => readRegularFile(join(root, path)),
});

function readFolder(root: string): Listing {
  try {
    const found = manifestSchema.parse(JSON.parse(readFileSync(join(root, MANIFEST_PATH), 'utf8')));
    const wrong = impossible(found);
    if (wrong !== undefined) throw new Error(`its manifest ${wrong}`);
    const blocks = digestsPaths(found).flatMap((path) => readDigests(readFileSync(join(root, path), 'utf8'), path));
    if (digestOfBlocks(blocks) !== found.digest) throw new Error('its block digests do not match the digest in its manifest');
    return { manifest: found, blocks };
  } catch (error) {
    throw new InputError(`${root} cannot be compared: ${misfitOf(error)}`, [
      'Give the output folder of a build with --against, and verify it first.',
    ]);
  }
}
