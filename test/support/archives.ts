/** Reads files of archives for the page map (src/pages), and has an independent reader that follows docs/files.md. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { sealFile } from '../../src/contract/archiveFile.ts';
import type { RootName } from '../../src/format/archiveReader.ts';
import type { DocumentLevel } from '../../src/format/levels.ts';
import type { ListTables } from '../../src/format/listTables.ts';
import type { Root } from '../../src/format/root.ts';
import type { Segment } from '../../src/format/segmentDirectory.ts';
import type { Files, OpenFile } from '../../src/pages/fileAccess.ts';
import { ARCHIVE_FOLDER } from '../../src/pages/filePaths.ts';
import type { FetchFile } from '../../src/serve/fetchHost.ts';
import { filesBelow } from './build.ts';

/** Rejects every read, for tests that must not read an archive. */
export const NO_ARCHIVE: Pick<Files<OpenFile>, 'read' | 'inflate'> = {
  read: (path) => Promise.reject(new Error(`${path} is read as a part of an archive`)),
  inflate: () => Promise.reject(new Error('a page of an archive is inflated')),
};

/** Stands for the function that reads a transaction, in tests of requests that must not read one. Always rejects. */
export const noTransactions = (): Promise<never> => Promise.reject(new Error('a transaction is read'));

export const MANIFEST = 'runes/v1/manifest.json';

/** Returns the paths of the archive's files in an output. */
export const archiveFiles = (out: string): string[] => filesBelow(out).filter((path) => path.startsWith(`${ARCHIVE_FOLDER}/`));

/** Writes a file with this content into the archive of an output. Returns its name. */
export function putFile(out: string, content: Uint8Array): string {
  const { name, file } = sealFile(content);
  writeFileSync(join(out, ARCHIVE_FOLDER, `${name}.bin`), file);
  return name;
}

/** Returns the content of an archive's file without the tail. The tail has a digest of 32 bytes for each 16 KB of content. */
export function contentOf(out: string, name: string): Buffer {
  const file = readFileSync(join(out, ARCHIVE_FOLDER, `${name}.bin`));
  return file.subarray(0, file.length - 32 * Math.ceil(file.length / (16 * 1024 + 32)));
}

const inflate = async (member: Uint8Array, most: number) => gunzipSync(member, { maxOutputLength: most }).toString();

/** Reads files of an output from the disk, as a host does. */
export function diskFiles(out: string): Files<OpenFile> {
  const contentOf = (path: string) => (existsSync(join(out, path)) ? readFileSync(join(out, path)) : undefined);
  return {
    open: async (path) => {
      const content = contentOf(path);
      return content && { text: async () => content.toString() };
    },
    read: async (path, offset, length) => {
      const content = contentOf(path);
      return content === undefined || content.length < offset + length ? undefined : content.subarray(offset, offset + length);
    },
    inflate,
  };
}

/** Serves the files of an output. `change` may replace the content of a file, or return undefined for a missing file. */
export function fileServer(
  out: string,
  change: (path: string, content: Buffer) => Buffer | undefined = (_, content) => content,
): { readonly fetchFile: FetchFile; readonly asked: { readonly path: string; readonly range: string | undefined }[] } {
  const asked: { path: string; range: string | undefined }[] = [];
  const fetchFile: FetchFile = async (path, range) => {
    asked.push({ path, range });
    const at = join(out, path);
    const content = existsSync(at) ? change(path, readFileSync(at)) : undefined;
    if (content === undefined) return new Response(null, { status: 404 });
    const [, first, last] = /^bytes=([0-9]+)-([0-9]+)$/.exec(range ?? '') ?? [];
    if (first === undefined || last === undefined) return new Response(new Uint8Array(content));
    if (Number(first) >= content.length) return new Response(null, { status: 416 });
    const part = content.subarray(Number(first), Number(last) + 1);
    const headers = { 'content-range': `Bytes ${first}-${Number(first) + part.length - 1}/${content.length}` };
    return new Response(new Uint8Array(part), { status: 206, headers });
  };
  return { fetchFile, asked };
}

/** A block as an archive stores it. */
interface StoredBlock {
  readonly segment: Segment;
  readonly height: number;
  readonly hash: string;
  readonly records: number;
  /** Number of the block's first page in this segment. */
  readonly page: number;
  readonly operations: Readonly<Record<string, readonly number[]>>;
  /** Response bodies. */
  readonly pages: readonly string[];
}

interface StoredEntry {
  /** Key of the entry, 12 hex digits. */
  readonly key: string;
  readonly height: number;
  readonly first: number;
  readonly count: number;
}

/** Reads a complete archive, without code of the program except types. */
export function readArchive(out: string): {
  readonly root: Root;
  readonly blocks: readonly StoredBlock[];
  readonly levels: readonly (readonly StoredEntry[])[];
  /** The lines of each level of etchings, and of names. */
  readonly etchings: readonly (readonly string[])[];
  readonly names: readonly (readonly string[])[];
} {
  const bytesOf = (name: string) => contentOf(out, name);
  const { archive, list_root } = JSON.parse(readFileSync(join(out, MANIFEST), 'utf8')) as Record<
    'archive' | 'list_root',
    RootName | undefined
  >;
  const text = JSON.parse(gunzipSync(bytesOf((archive ?? list_root)?.root ?? '')).toString()) as Root &
    Record<'page_size' | 'object_size' | 'segment_blocks', number>;
  const { page_size: pageSize, object_size: objectSize, segment_blocks: segmentBlocks, steps, unsettled, segments, ids } = text;
  const root: Root = { pageSize, objectSize, segmentBlocks, steps, unsettled, segments, ids };
  const blocks = root.segments.flatMap((segment) => {
    const content = bytesOf(segment.file);
    let offset = 0;
    const lines = gunzipSync(content.subarray(segment.bytes - segment.directory))
      .toString()
      .trimEnd()
      .split('\n');
    return lines.map((line): StoredBlock => {
      const { pages, page = 0, ...block } = JSON.parse(line) as Omit<StoredBlock, 'segment' | 'pages'> & { pages: number[] };
      const bodies = pages.map((length) => {
        offset += length;
        return gunzipSync(content.subarray(offset - length, offset)).toString();
      });
      return { ...block, page, segment, pages: bodies };
    });
  });
  const linesOf = ({ files }: DocumentLevel) =>
    files.flatMap(({ file, bytes, directory }) =>
      gunzipSync(bytesOf(file).subarray(0, bytes - directory))
        .toString()
        .trimEnd()
        .split('\n'),
    );
  const entriesOf = (level: DocumentLevel) =>
    linesOf(level).flatMap((line) => {
      const [head = '', ...values] = line.split('\t');
      return values.map((value): StoredEntry => {
        const [height = 0, first = 0, count = 0] = value.split('.').map(Number);
        return { key: head.slice(0, -1), height, first, count };
      });
    });
  const { lists } = text as { lists?: ListTables };
  const etchings = (lists?.etchings?.levels ?? []).map(linesOf);
  return { root, blocks, levels: root.ids.map(entriesOf), etchings, names: (lists?.names ?? []).map(linesOf) };
}
