/**
 * Unpacks zstd in bounded memory, and checks the lengths and checksums that fzstd ignores. fzstd returns output only
 * after it has unpacked all of its input, and a few kB may unpack to gigabytes. So this module passes one block at a
 * time to fzstd.
 */
import { Decompress } from 'fzstd';
import xxhash from 'xxhash-wasm';

/** Maximum size of a window in bytes. The zstd command has the same limit, unless `--long` raises it. */
const LARGEST_WINDOW = 128 * 1024 * 1024;
const LARGEST_BLOCK = 128 * 1024;
const FRAME = 0xfd2fb528;
const SKIPPABLE_FRAME = 0x184d2a50;

/** Yields the content of all frames. Throws an Error for a damaged frame. */
export async function* unpackZstd(source: AsyncIterable<Buffer>): AsyncGenerator<Uint8Array> {
  const input = new ByteReader(source);
  const { create64 } = await xxhash();
  while (!(await input.isAtEnd())) {
    const magic = await input.take(4);
    const kind = magic.readUInt32LE();
    if ((kind & ~15) === SKIPPABLE_FRAME) {
      await input.skip((await input.take(4)).readUInt32LE());
      continue;
    }
    if (kind !== FRAME) throw new Error(`a frame has an unknown magic number (hex ${magic.toString('hex')})`);
    const { bytes, content, hasChecksum } = await readHeader(input);
    const hash = create64();
    let length = 0;
    let pending: Buffer[] = [magic, ...bytes];
    const unpacked: Uint8Array[] = [];
    const frame = new Decompress((data) => unpacked.push(data));
    for (let isLast = false; !isLast; ) {
      const block = await readBlock(input);
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
    if (hasChecksum && (await input.take(4)).readUInt32LE() !== Number(hash.digest() & 0xffffffffn))
      throw new Error('the content of a frame does not match its checksum');
  }
}

/**
 * Reads a frame's header (RFC 8878, section 3.1.1.1). `content` is the size of the unpacked content in bytes; undefined
 * if the header does not have the size. `bytes` is the header for fzstd. Its checksum flag is cleared, because fzstd
 * does not get the checksum and would wait for it.
 */
async function readHeader(input: ByteReader) {
  const descriptor = await input.take(1);
  const flags = descriptor.readUInt8();
  const isSingle = (flags & 32) !== 0;
  const window = await input.take(isSingle ? 0 : 1);
  const dictionary = await input.take([0, 1, 2, 4][flags & 3] ?? 0);
  const size = await input.take([isSingle ? 1 : 0, 2, 4, 8][flags >> 6] ?? 0);
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

async function readBlock(input: ByteReader): Promise<{ readonly bytes: readonly Buffer[]; readonly isLast: boolean }> {
  const head = await input.take(3);
  const [kind, size] = [((head[0] ?? 0) >> 1) & 3, head.readUIntLE(0, 3) >> 3];
  const isRepeatedByte = kind === 1;
  if (size > LARGEST_BLOCK) throw new Error(`a zstd block has ${size} bytes, more than 128 KiB`);
  return { bytes: [head, await input.take(isRepeatedByte ? 1 : size)], isLast: ((head[0] ?? 0) & 1) !== 0 };
}

/** Reads exact numbers of bytes from a stream of chunks. */
class ByteReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#chunks = source[Symbol.asyncIterator]();
  }

  async isAtEnd(): Promise<boolean> {
    return !(await this.#fill(1));
  }

  async take(count: number): Promise<Buffer> {
    if (!(await this.#fill(count))) throw new Error('unexpected EOF');
    const taken = this.#rest.subarray(0, count);
    this.#rest = this.#rest.subarray(count);
    return taken;
  }

  async skip(count: number): Promise<void> {
    for (let left = count; left > 0; ) {
      const some = Math.min(left, LARGEST_BLOCK);
      await this.take(some);
      left -= some;
    }
  }

  async #fill(count: number): Promise<boolean> {
    while (this.#rest.length < count) {
      const { value, done } = await this.#chunks.next();
      if (done === true) return false;
      this.#rest = this.#rest.length === 0 ? value : Buffer.concat([this.#rest, value]);
    }
    return true;
  }
}
