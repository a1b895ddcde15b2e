/** Reads what another mirror of this program publishes about itself: its manifest and digests, and files of its archive. */
import { gunzipSync } from 'node:zlib';
import { AtOnce } from '../../atOnce.ts';
import { openFile } from '../../contract/archiveFile.ts';
import { type BlockDigest, type Manifest, manifest } from '../../contract/schemas.ts';
import { InputError } from '../../errors.ts';
import { formatFault } from '../../format/formatVersion.ts';
import { PartCache } from '../../format/partCache.ts';
import { MOST_FILE, MOST_OBJECT } from '../../format/root.ts';
import { digestOfBlocks, digestsPaths, readDigests } from '../../output/digests.ts';
import type { Files, OpenFile } from '../../pages/fileAccess.ts';
import { archiveNameOf, MANIFEST_PATH } from '../../pages/filePaths.ts';
import { type Client, PassingError } from '../httpClient.ts';
import { HIGHEST } from '../pullOptions.ts';

/** Maximum number of blocks that a source may list, each with 300 bytes. Mainnet has 137,000 with runes, and 53,000 more a year. */
export const MOST_BLOCKS = 1_000_000;

/** Inconsistent data of a mirror, which a build may just be replacing. The message continues the name of the data or mirror. */
export class BadDataError extends PassingError {}

/** Maximum size of a manifest: that of a testnet with a gap after each block has 9 MB. And of a file of digests: 190 KB. */
const [MANIFEST_BYTES, DIGESTS_BYTES] = [16 * 1024 * 1024, 1024 * 1024];

/** Maximum number of ranges that were read: to join two lists of ranges takes the product of their lengths. */
const MOST_RUNS = 10_000;

/** Archive files to keep in memory, in bytes, and to fetch at the same time: a reader may ask for a file of each level. */
const [KEPT_BYTES, FETCHES] = [MOST_OBJECT, 2];

/**
 * Fetches the mirror's manifest. Returns undefined if the host has none. Throws an InputError if the manifest has another format version,
 * or impossible values, such as a height that no chain of blocks reaches.
 */
export async function findManifest(base: string, client: Client): Promise<Manifest | undefined> {
  // Text that does not begin with `{` comes from another program. Invalid JSON after `{` may be cut off: the client then retries.
  const parse = (text: string): unknown => (text.startsWith('{') ? JSON.parse(text) : undefined);
  const { body } = await client.get(`${base}/${MANIFEST_PATH}`, (bytes) => parse(bytes.toString()), MANIFEST_BYTES);
  const { generator, format } = Object(body) as Readonly<Record<string, unknown>>;
  const fault = generator === 'rune-activity-mirror' ? formatFault(format) : undefined;
  if (fault !== undefined) throw new InputError(`${base} cannot be read: ${fault}`);
  const found = manifest.safeParse(body);
  if (!found.success) return undefined;
  const wrong = impossible(found.data);
  if (wrong === undefined) return found.data;
  throw new InputError(`the manifest of ${base} ${wrong}`, [
    'No mirror of this program has such a manifest. Check --from, or tell the operator of the mirror.',
  ]);
}

/** Describes the first impossible value in a manifest, before the values decide how much a pull reads. Undefined if none. */
export function impossible({ heights, blocks, tip, sources = [] }: Manifest): string | undefined {
  const read = sources.flatMap((source) => source.blocks);
  const [wrong] = [heights, ...sources.map((source) => source.blocks)].flatMap((runs) =>
    runs.filter(([first, last], i) => first > last || last > HIGHEST || first <= (runs[i - 1]?.[1] ?? -1)),
  );
  if (wrong !== undefined)
    return `has the range of heights ${wrong.join('..')}, which is not ascending, not above the range before it, or ends above ${HIGHEST}`;
  if ((tip?.height ?? 0) > HIGHEST) return `has the last block ${tip?.height}, above the highest possible height ${HIGHEST}`;
  if (blocks > MOST_BLOCKS) return `lists ${blocks} blocks, more than ${MOST_BLOCKS}`;
  return read.length > MOST_RUNS ? `has ${read.length} ranges of blocks that were read, more than ${MOST_RUNS}` : undefined;
}

/** Manifest of a mirror, and the blocks in its digest files, heights ascending. */
export interface Listing {
  readonly manifest: Manifest;
  readonly blocks: readonly BlockDigest[];
}

/** Reads the manifest and all digests. Retries if they do not match, because a build may just be replacing the files. */
export async function readListing(base: string, client: Client): Promise<Listing> {
  return client.persist(base, async () => {
    const found = await findManifest(base, client);
    if (found === undefined) throw new BadDataError('no longer has a manifest');
    const blocks: BlockDigest[] = [];
    for (const path of digestsPaths(found)) {
      const { status, body } = await client.get(`${base}/${path}`, (bytes) => readDigests(bytes.toString(), path), DIGESTS_BYTES);
      if (body === undefined) throw new BadDataError(`answers ${path} with status ${status}`);
      for (const block of body) blocks.push(block);
      // The check after the loop refuses too many blocks. Stops here, so that wrong files cannot fill the memory.
      if (blocks.length > found.blocks) break;
    }
    if (blocks.length !== found.blocks || digestOfBlocks(blocks) !== found.digest)
      throw new BadDataError('has block digests that do not match the digest in its manifest');
    return { manifest: found, blocks };
  });
}

/** Reads a mirror's archive: fetches complete files, checks the hash in their names, and keeps some. Undefined if the mirror lacks one. */
export function filesOfArchive(base: string, client: Client): Pick<Files<OpenFile>, 'read' | 'inflate'> {
  // Keeps promises, so that concurrent reads of a file fetch it once.
  const files = new PartCache(KEPT_BYTES);
  const fetches = new AtOnce(FETCHES);
  const fetchFile = (path: string, size: number) => {
    const file = fetches.run(async () => {
      const { status, body } = await client.get(`${base}/${path}`, (bytes) => bytes, Math.min(size, MOST_FILE));
      if (status === 404) return undefined;
      if (body === undefined) throw new BadDataError(`needs ${path}, but the mirror answered with status ${status}`);
      if (openFile(archiveNameOf(path) ?? '', body) === undefined) throw new BadDataError(`needs ${path}, which is damaged on the mirror`);
      return body;
    });
    files.keep(path, { value: file, bytes: size });
    file.catch(() => files.forget(path));
    return file;
  };
  return {
    read: async (path, offset, length, size) => {
      const file = await ((files.known(path) as ReturnType<typeof fetchFile> | undefined) ?? fetchFile(path, size));
      const part = file?.subarray(offset, offset + length);
      // Copies a small part, because a view would keep the complete file in memory.
      return part?.length !== length ? undefined : part.length < (file?.length ?? 0) / 2 ? new Uint8Array(part) : part;
    },
    inflate: async (member, most) => gunzipSync(member, { maxOutputLength: most }).toString(),
  };
}

/** URL of a mirror's files, without a trailing slash. `url` may end with `/runes/v1`. */
export const baseOf = (url: URL): string => url.href.replace(/\/+$/, '').replace(/\/runes(?:\/v1)?$/, '');
