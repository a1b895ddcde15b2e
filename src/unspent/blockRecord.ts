/** Encodes and decodes the changes of one block as an entry of the journal. */
import { copyOf, type LentBytes } from '../runes/bytes.ts';
import { OUTPOINT_BYTES } from '../runes/parseBlock.ts';
import type { RuneId } from '../runes/runeId.ts';
import type { Changes } from '../runes/unspentLedger.ts';
import { ByteReader, ByteWriter, writeOutput } from './outputBytes.ts';

export interface IndexedBlock {
  readonly height: number;
  /** Hash as Bitcoin displays it. */
  readonly hash: string;
}

/** Receives the changes in the order of a journal entry. Offsets and lent bytes are valid only during the call. */
export interface ChangeTarget {
  spend(key: Uint8Array, at: number): void;
  create(key: Uint8Array, at: number, value: LentBytes): void;
  mint(rune: RuneId, mints: number): void;
}

/** Encodes a block's changes as a journal entry. Has only the mints of new runes: the table of runes has the rest. */
export function blockRecord(block: IndexedBlock, { spent, created, runes, mints }: Changes): Buffer {
  const writer = new ByteWriter();
  writer.integer(block.height);
  writer.put(Buffer.from(block.hash, 'hex'));
  writer.integer(spent.length);
  for (const outpoint of spent) writer.put(outpoint);
  writer.integer(created.length);
  const value = new ByteWriter();
  for (const output of created) {
    value.clear();
    writeOutput(value, output);
    writer.put(output.outpoint);
    writer.integer(value.length);
    writer.put(value.view());
  }
  const minted = [...runes.filter((rune) => rune.mints > 0).map((rune) => [rune.id, rune.mints] as const), ...mints];
  writer.integer(minted.length);
  for (const [rune, count] of minted) {
    writer.integer(rune);
    writer.integer(count);
  }
  return writer.view();
}

/** Decodes a journal entry. Without a target, decodes only height and hash of the block. */
export function readRecord(bytes: Uint8Array, target?: ChangeTarget): IndexedBlock {
  const reader = new ByteReader(bytes);
  const block = { height: reader.integer(), hash: Buffer.from(copyOf(reader.take(32))).toString('hex') };
  if (!target) return block;
  for (let left = reader.integer(); left > 0; left--) {
    target.spend(bytes, reader.at);
    reader.at += OUTPOINT_BYTES;
  }
  for (let left = reader.integer(); left > 0; left--) {
    const at = reader.at;
    reader.at += OUTPOINT_BYTES;
    target.create(bytes, at, reader.take(reader.integer()));
  }
  for (let left = reader.integer(); left > 0; left--) target.mint(reader.integer(), reader.integer());
  return block;
}
