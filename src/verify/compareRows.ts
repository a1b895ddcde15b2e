/**
 * Compares the published rows of mirrors by the digests in their indexes, one range of heights after another. Equal
 * digests mean equal rows, also in what records lack: the outputs that are spent, and runes of scripts without address.
 */
import { createHash } from 'node:crypto';
import { rowsIndex } from '../contract/rowsSchemas.ts';
import { type Manifest, misfitOf } from '../contract/schemas.ts';
import { InputError } from '../errors.ts';

export interface MirrorWithRows {
  readonly name: string;
  readonly manifest: Manifest;
  /** Reads a complete file of the mirror. */
  readonly readFile: (path: string) => Promise<Uint8Array>;
}

/** `digests` has the digest of each mirror whose rows are divided at these heights, by index of the mirror. */
export interface ComparedRows {
  readonly first: number;
  readonly last: number;
  readonly digests: ReadonlyMap<number, string>;
}

/** Returns the ranges for which several mirrors have a file of rows, heights ascending. Rejects for a damaged index. */
export async function compareRows(mirrors: readonly MirrorWithRows[]): Promise<ComparedRows[]> {
  const ranges = new Map<string, { first: number; last: number; digests: Map<number, string> }>();
  for (const [i, mirror] of mirrors.entries()) {
    for (const { first, last, digest } of await filesOf(mirror)) {
      const range = ranges.get(`${first} ${last}`) ?? { first, last, digests: new Map() };
      range.digests.set(i, digest);
      ranges.set(`${first} ${last}`, range);
    }
  }
  return [...ranges.values()].filter(({ digests }) => digests.size > 1).sort((a, b) => a.first - b.first);
}

async function filesOf({ name, manifest: { rows }, readFile }: MirrorWithRows) {
  if (rows === undefined) return [];
  try {
    const bytes = await readFile(rows.index);
    if (createHash('sha256').update(bytes).digest('hex') !== rows.sha256) throw new Error('its SHA-256 differs from the manifest');
    return rowsIndex.parse(JSON.parse(Buffer.from(bytes).toString())).files;
  } catch (error) {
    throw new InputError(`${name} cannot be compared: ${rows.index} cannot be read: ${misfitOf(error)}`);
  }
}
