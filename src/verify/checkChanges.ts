/**
 * Verifies the files of changes: makes them again from the records of the newest blocks. The records do not say which
 * outputs were spent. So the spent outputs in the files are compared with the outputs of the mirror. An output that is
 * spent in a file must have received runes, and must not be in the mirror's list of unspent outputs. An output that one
 * of these blocks made must be in this list, or be spent by one of these blocks. And what a block sends and burns must
 * be what the outputs that it spends held.
 */
import { join } from 'node:path';
import type { z } from 'zod';
import { changesSchemas } from '../contract/changesSchemas.ts';
import { misfitOf } from '../contract/schemas.ts';
import { LineFile } from '../disk/lineFile.ts';
import { readRegularFile } from '../disk/regularFile.ts';
import { readLines } from '../duckdb/readFilesSql.ts';
import { type ChangesBounds, changesFile, changesIndex, type ListedChanges, type Point } from '../lists/changes.ts';
import { digestOf } from '../lists/changesOfBlocks.sql.ts';
import { CHANGES_INDEX_PATH, changesPath, MANIFEST_PATH } from '../pages/filePaths.ts';
import type { Activity } from './checkBlock.ts';
import { verifyMoved, verifySpent } from './checkUnspentOutputs.ts';
import type { Received } from './recordTables.ts';
import type { Verification } from './verification.ts';

export class ChangesVerification {
  readonly #schemas: ReturnType<typeof changesSchemas>;
  /** Maximum numbers of blocks and of entries, from the list of files. The manifest has the list's SHA-256. */
  readonly #bounds: ChangesBounds;
  /** The blocks that must have files, sorted by height. */
  readonly #points: readonly Point[];
  /** The block below the lowest of `#points`, if its hash is known. */
  readonly #below: Point | undefined;
  readonly #listed: ListedChanges[] = [];
  /** Outpoints that the blocks make and spend. */
  readonly #lines: LineFile;
  #hasSpent = true;
  #isCut = false;

  constructor(private readonly verification: Verification) {
    this.#schemas = changesSchemas(verification.site.dialect);
    this.#lines = new LineFile(join(verification.scratch, 'changes.ndjson'));
    const { blocks, site } = verification;
    const index = this.#read(CHANGES_INDEX_PATH, this.#schemas.ChangesIndex);
    const count = index?.most_blocks ?? 1;
    const listed = index?.blocks ?? [];
    this.#bounds = { most_blocks: count, most_entries: index?.most_entries ?? 1 };
    const known = new Map(blocks.slice(-count - 1).map(({ height, hash }) => [height, hash]));
    const below = listed[0] && this.#read(changesPath(listed[0].height), this.#schemas.Changes)?.previous;
    // The hashes of blocks without records are taken from the files of changes themselves, because no other file has
    // these hashes.
    const empty = [...(below === undefined ? [] : [below]), ...listed].filter(
      ({ height }) => !known.has(height) && height <= site.tip && height >= site.tip - count,
    );
    const all = [...[...known].map(([height, hash]) => ({ height, hash })), ...empty].sort((a, b) => a.height - b.height).slice(-count - 1);
    this.#points = all.slice(-count).map(({ height, hash }) => ({ height, hash: hash.slice(-64) }));
    this.#below = all.length > count ? all[0] : undefined;
  }

  /** Reads a file. Adds a finding and returns undefined if it is damaged. */
  #read<Content>(path: string, schema: z.ZodType<Content>): Content | undefined {
    try {
      return schema.parse(JSON.parse(readRegularFile(join(this.verification.root, path)).toString('utf8')));
    } catch (error) {
      this.verification.findings.add(`${path} cannot be read: ${misfitOf(error)}`);
      return undefined;
    }
  }

  /** Compares the file of a block with the block's records. Heights must ascend. Skips blocks that need no file. */
  add(height: number, records: readonly Activity[]): void {
    if (height < (this.#points[0]?.height ?? Number.POSITIVE_INFINITY)) return;
    this.#addEmpty(height);
    this.#compare(records);
  }

  /** Compares the files of the remaining blocks below `height`. These blocks have no records. */
  #addEmpty(height: number): void {
    while ((this.#points[this.#listed.length]?.height ?? height) < height) this.#compare([]);
  }

  #compare(records: readonly Activity[]): void {
    const { own, site } = this.verification;
    const most = this.#bounds.most_entries;
    const at = this.#listed.length;
    const point = this.#points[at];
    if (point === undefined) return;
    const path = changesPath(point.height);
    const file = this.#read(path, this.#schemas.Changes);
    const hasSpent = file?.spent !== undefined;
    if (at > 0 && hasSpent !== this.#hasSpent)
      this.verification.findings.add(`${path} differs from other files in whether it has spent outputs`);
    this.#hasSpent = hasSpent;
    const spent = file?.spent ?? [];
    let isCut = false;
    const list = (all: Iterable<string | undefined>) => {
      const entries = [...new Set(all)]
        .filter((entry) => entry !== undefined)
        .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      isCut ||= entries.length > most;
      return entries.slice(0, most);
    };
    const made = list(
      records.map(({ operation, location: { tx_id, vout } }) =>
        operation === 'receive' && vout !== undefined ? `${tx_id.slice(-64)}:${vout}` : undefined,
      ),
    );
    const lists = {
      runes: JSON.stringify(list(records.map(({ rune }) => rune.id))),
      addresses: JSON.stringify(list(records.flatMap(({ address, receiver_address }) => [address, receiver_address]))),
      made: JSON.stringify(made),
      spent: hasSpent ? JSON.stringify(list(spent)) : undefined,
    };
    // Only the file can tell whether its list of spent outputs was cut: the complete list is unknown here.
    isCut ||= file?.more === true && spent.length === most;
    this.#isCut ||= isCut;
    const previous = at === 0 ? this.#below : this.#points[at - 1];
    const [, content] = changesFile(
      { ...point, previous: previous && { ...previous, hash: previous.hash.slice(-64) }, lists, isCut },
      site.dialect,
    );
    own.file(path, Buffer.from(content));
    this.#listed.push({ ...point, sha256: digestOf(content) });
    for (const output of made) this.#lines.add(JSON.stringify({ kind: 'made', output }));
    // The outputs of a cut list cannot be compared with the records of the block.
    const height = isCut ? undefined : point.height;
    for (const output of spent) this.#lines.add(JSON.stringify({ kind: 'spent', output, height }));
    for (const { operation, rune, address, amount } of isCut ? [] : records)
      if (operation === 'send' || operation === 'burn')
        this.#lines.add(JSON.stringify({ kind: 'moved', height, operation, rune: rune.id, address, amount }));
  }

  /** Compares the list of files. Call it after `add` of every block. */
  finish(): void {
    const { own, manifest, findings, site } = this.verification;
    this.#addEmpty(Number.POSITIVE_INFINITY);
    this.#lines.end();
    const index = changesIndex(this.#listed, this.#bounds, site.dialect);
    own.file(CHANGES_INDEX_PATH, Buffer.from(index));
    if (manifest.changes?.sha256 !== digestOf(index)) findings.add(`${MANIFEST_PATH} has another SHA-256 than ${CHANGES_INDEX_PATH}`);
  }

  /**
   * Compares made and spent outputs with the outputs of the archive, which `verifyOutputs` must have read into the
   * store.
   */
  async checkSpent(received: Received): Promise<void> {
    const { findings } = this.verification;
    if (!this.#hasSpent && this.#listed.length > 0) findings.add('the files of changes lack spent outputs, which the data has');
    if (this.#lines.count === 0) return;
    const places = `height: 'BIGINT', operation: 'VARCHAR', rune: 'VARCHAR', address: 'VARCHAR', amount: 'VARCHAR'`;
    const lines = readLines(this.#lines, `kind: 'VARCHAR', "output": 'VARCHAR', ${places}`);
    await verifySpent(lines, this.#isCut, received, this.verification);
    await verifyMoved(lines, received, this.verification);
  }
}
