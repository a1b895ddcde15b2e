/**
 * Writes the etchings of layout `files`: pages, and files of names (pages/etchingFiles.ts). An incremental build writes
 * only what may have changed.
 */
import { fileOfName, nameFiles, renderEtchingPage, renderNames } from '../pages/etchingFiles.ts';
import { etchingsPath, namesPath } from '../pages/paths.ts';
import { maximumLimit, type Site } from '../pages/site.ts';
import type { Store } from '../store/duckdb.ts';
import { changedOrdinals, haveNamesChanged } from './changes.ts';
import type { EtchingFacts } from './facts.ts';
import { type NamedRune, readNames } from './names.ts';
import { type PageForm, renderPages } from './pages.ts';

/** Receives files by their paths. */
export interface Sink {
  file(path: string, content: Uint8Array): void;
}

/**
 * Writes the files that changed since the last build, whose etchings are `before`; undefined if it had none. Returns the
 * paths of files that are no longer needed.
 */
export async function writeEtchingFiles(
  site: Site,
  before: EtchingFacts | undefined,
  now: EtchingFacts | undefined,
  limits: PageForm['limits'],
  sink: Sink,
  store: Store,
): Promise<string[]> {
  const pageSize = maximumLimit(site);
  if (now !== undefined) {
    const form = { dialect: site.dialect, pageSize, hasCounts: now.hasCounts, limits };
    const pages = `SELECT ordinal // ${pageSize} FROM (${changedOrdinals(before, now)})`;
    for await (const { page, etchings } of renderPages(pages, now.tip, form, store)) {
      sink.file(etchingsPath(page), Buffer.from(renderEtchingPage(etchings)));
    }
    if (before === undefined || (await haveNamesChanged(store))) {
      for (const [path, content] of namesFiles(await readNames(0, now.tip, store), now.total)) sink.file(path, content);
    }
  }
  const needed = etchingPaths(site, now);
  return [...etchingPaths(site, before)].filter((path) => !needed.has(path));
}

/** Returns the paths of all files of etchings; none in layout `archive`. */
export function etchingPaths(site: Site, facts: Pick<EtchingFacts, 'total'> | undefined): Set<string> {
  if (facts === undefined || site.layout !== 'files') return new Set();
  const paths = (count: number, pathOf: (i: number) => string) => Array.from({ length: count }, (_, i) => pathOf(i));
  return new Set([...paths(Math.ceil(facts.total / maximumLimit(site)), etchingsPath), ...paths(nameFiles(facts.total), namesPath)]);
}

/** Yields the files of names. Of two runes with the same name, which only wrong data has, the older is found. */
export function* namesFiles(runes: Iterable<NamedRune>, total: number): Generator<[path: string, content: Buffer]> {
  const files = nameFiles(total);
  const ordinals = Array.from({ length: files }, (): Record<string, number> => ({}));
  for (const { ordinal, names } of runes) {
    for (const name of names) {
      const file = ordinals[fileOfName(name, files)];
      if (file !== undefined) file[name] ??= ordinal;
    }
  }
  for (const [i, file] of ordinals.entries()) yield [namesPath(i), Buffer.from(renderNames(files, file))];
}
