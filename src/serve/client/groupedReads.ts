/** Makes reads for many outputs faster: joins reads that are near to each other in a file, and limits concurrent reads. */
import { AtOnce } from '../../atOnce.ts';
import { exceeds, READER_LIMITS } from '../../limits.ts';
import type { MirrorFiles } from './clientFiles.ts';

interface WantedPart {
  readonly offset: number;
  readonly length: number;
  readonly size: number;
  readonly resolve: (bytes: Promise<Uint8Array | undefined>) => void;
}

/** Parts of a file that one request reads: the bytes `begin` to `end - 1`. */
interface Group {
  readonly begin: number;
  end: number;
  readonly parts: WantedPart[];
}

/** Wraps `files` for one request. Reads parts of a file together that are asked for at the same time. */
export function groupedReads(files: MirrorFiles): MirrorFiles {
  const wanted = new Map<string, WantedPart[]>();
  const turns = new AtOnce(READER_LIMITS.concurrentReads, 'concurrentReads');
  const readWanted = (path: string) => {
    const parts = wanted.get(path) ?? [];
    wanted.delete(path);
    for (const { begin, end, parts: near } of groupsOf(parts)) {
      const reading = turns.run(() => files.read(path, begin, end - begin, near[0]?.size ?? 0));
      // Copies each part, because a cached view would keep all bytes of the group in memory.
      const cut = async ({ offset, length }: WantedPart) => {
        const bytes = await reading;
        return bytes && new Uint8Array(bytes.subarray(offset - begin, offset - begin + length));
      };
      for (const part of near) part.resolve(cut(part));
    }
  };
  return {
    ...files,
    open: (path) => turns.run(() => files.open(path)),
    read: (path, offset, length, size) =>
      new Promise((resolve) => {
        const part = { offset, length, size, resolve };
        const parts = wanted.get(path);
        if (parts !== undefined) return void parts.push(part);
        wanted.set(path, [part]);
        // Look-ups that run at the same time ask for their parts one after another, but all before this timer fires.
        setTimeout(() => readWanted(path));
      }),
  };
}

function groupsOf(parts: readonly WantedPart[]): Group[] {
  const groups: Group[] = [];
  for (const part of [...parts].sort((a, b) => a.offset - b.offset)) {
    const last = groups.at(-1);
    const end = part.offset + part.length;
    if (
      last !== undefined &&
      part.offset - last.end <= READER_LIMITS.nearBytes &&
      !exceeds(READER_LIMITS, 'groupBytes', Math.max(end, last.end) - last.begin)
    ) {
      last.end = Math.max(end, last.end);
      last.parts.push(part);
    } else groups.push({ begin: part.offset, end, parts: [part] });
  }
  return groups;
}
