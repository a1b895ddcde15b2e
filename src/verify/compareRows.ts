/**
 * Compares the published rows of mirrors by the digests in their indexes, one range of heights after another. Equal
 * digests mean equal rows, also in what records lack: the outputs that are spent, and runes of scripts without address.
 */
import { createHash } from 'node:crypto';
import { rowsIndex } from '../contract/rowsSchemas.ts';
import { type Manifest, misfitOf } from '../contract/schemas.ts';
import { InputError } from '../errors.ts';
import { groupBy } from '../groupBy.ts';

export interface MirrorWithRows {
  readonly name: string;
  readonly manifest: Manifest;
  /** Reads a complete file of the mirror. */
  readonly readFile: (path: string) => Promise<Uint8Array>;
}

/**
 * Returns the ranges of heights for which several mirrors have a file of rows, ascending, and the digest of each of these
 * mirrors by its index. Rejects for a damaged index.
 */
export async function compareRows(
  mirrors: readonly MirrorWithRows[],
): Promise<(readonly [range: string, digests: ReadonlyMap<number, string>])[]> {
  const files = (await Promise.all(mirrors.map(filesOf))).flatMap((own, mirror) => own.map((file) => ({ ...file, mirror })));
  files.sort((a, b) => a.first - b.first);
  const ranges = [...groupBy(files, ({ first, last }) => `${first}..${last}`)];
  return ranges
    .map(([range, same]) => [range, new Map(same.map(({ mirror, digest }) => [mirror, digest]))] as const)
    .filter(([, digests]) => digests.size > 1);
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
