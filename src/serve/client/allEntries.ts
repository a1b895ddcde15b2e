/** Reads a complete list, window by window. */
import type { ErrorStatus } from '../http/errorBodies.ts';
import type { MirrorManifest, Page, WindowQuery } from './client.d.ts';

/** Windows to read concurrently. Hosts would answer further requests only one after another. */
const WINDOWS_AT_ONCE = 8;

/**
 * Yields all entries of a list, in the list's order. `list` fetches a window, and `readManifest` the current manifest. If the windows are
 * not all of one build, throws an error that `failed` makes. Also throws the errors of `list`.
 */
export async function* allEntries<Entry>(
  list: (window: WindowQuery) => Promise<Page<Entry>>,
  readManifest: () => Promise<MirrorManifest>,
  failed: (status: ErrorStatus, message: string) => Error,
  signal?: AbortSignal,
): AsyncGenerator<Entry, void, undefined> {
  // Builds with the same text `build` have equal lists.
  const read = async () => {
    const { digest, archive, list_root, page_sizes } = await readManifest();
    return { build: JSON.stringify([digest, archive, list_root]), limit: page_sizes.at(-1) ?? 1 };
  };
  const { build, limit } = await read();
  let known: string | undefined;
  // Reads the first window alone, because only its `total` tells how many there are.
  for (let [offset, total, atOnce] = [0, 1, 1]; offset < total; atOnce = WINDOWS_AT_ONCE) {
    const count = Math.min(atOnce, Math.ceil((total - offset) / limit));
    const pages = await Promise.all(Array.from({ length: count }, (_, i) => list({ offset: offset + i * limit, limit, signal })));
    const isSame = (await read()).build === build;
    for (const { limit: _, offset: begin, results, ...facts } of pages) {
      const now = JSON.stringify(facts);
      known ??= now;
      total = facts.total;
      if (!isSame || now !== known || results.length !== Math.min(limit, total - begin))
        throw failed(503, 'the mirror changed while the list was read; read it again');
      yield* results;
    }
    offset += count * limit;
  }
}
