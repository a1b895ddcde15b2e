/**
 * Unpacks zstd in bounded memory, and checks the lengths and checksums that fzstd ignores. fzstd returns output only after it has unpacked
 * all of its input, and a few kB may unpack to gigabytes. So this module passes one block at a time to fzstd.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { Decompress } from 'fzstd';
import xxhash, { type XXHash } from 'xxhash-wasm';

/** Maximum size of a window in bytes. The zstd command has the same limit, unless `--long` raises it. */
const LARGEST_WINDOW = 128 * 1024 * 1024;
const LARGEST_BLOCK = 128 * 1024;
const FRAME = 0xfd2fb528;
const SKIPPABLE_FRAME = 0x184d2a50;

/** Yields the content of all frames of a file. Throws an Error for a damaged frame. */
export async function* unpackZstd(path: string): AsyncGenerator<Uint8Array> {
  const { create64 } = await xxhash();
  const file = openSync(path, 'r');
  try {
    const input = new ByteReader(file, fstatSync(file).size);
    while (!input.isAtEnd) {
      const magic = input.take(4);
      const kind = magic.readUInt32LE();
      if ((kind & ~15) === SKIPPABLE_FRAME) input.skip(input.take(4).readUInt32LE());
      else if (kind === FRAME) yield* unpackFrame(magic, input, create64());
      else throw new Error(`a frame has an unknown magic number (hex ${magic.toString('hex')})`);
    }
  } finally {
    closeSync(file);
  }
}

function* unpackFrame(magic: Buffer, input: ByteReader, hash: XXHash<bigint>): Generator<Uint8Array> {
  const { bytes, content, hasChecksum } = readHeader(input);
  let length = 0;
  let pending: Buffer[] = [magic, ...bytes];
  const unpacked: Uint8Array[] = [];
  const frame = new Decompress((data) => unpacked.push(data));
  for (let isLast = false; !isLast; ) {
    const block = readBlock(input);
    isLast = block.isLast;
    frame.push(Buffer.concat([...pending, ...block.bytes]), isLast);
    pending = [];
    for (const data of unpacked.splice(0)) {
      hash.update(data);
      length += data.length;
      yield data;
    }
  }
  if (content !== undefined && length !== content) throw new Error(`a frame unpacks to ${length} bytes, but its header says ${content}`);
  if (hasChecksum && input.take(4).readUInt32LE() !== Number(hash.digest() & 0xffffffffn))
    throw new Error('the content of a frame does not match its checksum');
}

/**
 * Reads a frame's header (RFC 8878, section 3.1.1.1). `content` is the size of the unpacked content in bytes, if the header has it. `bytes`
 * is the header for fzstd, without the checksum flag: fzstd does not get the checksum and would wait for it.
 */
function readHeader(input: ByteReader) {
  const descriptor = input.take(1);
  const flags = descriptor.readUInt8();
  const isSingle = (flags & 32) !== 0;
  const window = input.take(isSingle ? 0 : 1);
  const dictionary = input.take([0, 1, 2, 4][flags & 3] ?? 0);
  const size = input.take([isSingle ? 1 : 0, 2, 4, 8][flags >> 6] ?? 0);
  const content = size.length === 0 ? undefined : contentSize(size);
  const [log, eighths] = [10 + ((window[0] ?? 0) >> 3), (window[0] ?? 0) & 7];
  const windowBytes = isSingle ? (content ?? 0) : 2 ** log * (1 + eighths / 8);
  if (windowBytes > LARGEST_WINDOW)
    throw new Error(`its window of ${Math.round(windowBytes / 2 ** 20)} MiB is larger than 128 MiB (compress it without --long)`);
  if (dictionary.some((byte) => byte !== 0)) throw new Error('it needs a dictionary (compress it without one)');
  const bytes = [Buffer.of(flags & ~4), window, dictionary, size];
  return { bytes, content, hasChecksum: (flags & 4) !== 0 };
}

function contentSize(size: Buffer): number {
  if (size.length === 8) return Number(size.readBigUInt64LE());
  return size.readUIntLE(0, size.length) + (size.length === 2 ? 256 : 0);
}

function readBlock(input: ByteReader): { readonly bytes: readonly Buffer[]; readonly isLast: boolean } {
  const head = input.take(3);
  const [kind, size] = [((head[0] ?? 0) >> 1) & 3, head.readUIntLE(0, 3) >> 3];
  const isRepeatedByte = kind === 1;
  if (size > LARGEST_BLOCK) throw new Error(`a zstd block has ${size} bytes, more than 128 KiB`);
  return { bytes: [head, input.take(isRepeatedByte ? 1 : size)], isLast: ((head[0] ?? 0) & 1) !== 0 };
}

/** Reads exact numbers of bytes from a file. */
class ByteReader {
  #at = 0;

  constructor(
    private readonly file: number,
    private readonly size: number,
  ) {}

  get isAtEnd(): boolean {
    return this.#at === this.size;
  }

  take(count: number): Buffer {
    const bytes = Buffer.allocUnsafe(count);
    readSync(this.file, bytes, 0, count, this.#at);
    this.skip(count);
    return bytes;
  }

  skip(count: number): void {
    this.#at += count;
    if (this.#at > this.size) throw new Error('unexpected EOF');
  }
}
