/** Finds files that are not part of a build. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { emitFiles } from '../engine/render/pageFiles.ts';
import { renderBatches } from '../engine/render/renderBatches.ts';
import type { Records } from '../input/canonicalRecordSql.ts';
import { LOCK } from '../output/outputFolder.ts';
import { isArchivePath, isRowsFile, LIST_FOLDERS } from '../pages/filePaths.ts';
import type { ComparingSink } from './comparingSink.ts';
import type { Verification } from './verification.ts';

/**
 * Adds a finding for each file that is not part of the build. Expected files are the pages that `sink` compared, and the files of `own`.
 * All of these were found. So paths are compared only if the folder has more files than expected.
 */
export async function reportStrangers(verification: Verification, records: Records, sink: ComparingSink): Promise<void> {
  const { root, own, findings } = verification;
  let count = 0;
  // walk() does not follow links. So if a link has replaced a folder, the count is lower, and the paths are compared.
  for (const { isFile } of walk(root)) if (isFile) count += 1;
  if (count === sink.files + own.files) return;
  const known = new Set([...(await pagesOf(verification, records)), ...own.paths]);
  for (const { path } of walk(root)) {
    if (known.has(path)) continue;
    const isSwept = isRowsFile(path) || isArchivePath(path) || LIST_FOLDERS.some((folder) => path.startsWith(`${folder}/`));
    findings.add(`${path} is not part of this build${isSwept ? '' : '; builds do not remove it, so remove it yourself'}`);
  }
}

/** Returns the paths of all pages. Slow, because it renders the blocks again. */
async function pagesOf({ site, blocks, limits, store }: Verification, records: Records): Promise<Set<string>> {
  const paths = new Set<string>();
  const add = (path: string) => void paths.add(path);
  if (site.layout === 'archive') return paths;
  for await (const batch of renderBatches(store, site, blocks, limits, records, []))
    for (const block of batch.blocks) emitFiles(batch, block, site, { page: add, file: add, link: add });
  return paths;
}

/** Yields everything in the folder and its subfolders, except folders and the lock. Does not follow links. */
function* walk(root: string, folder = ''): Generator<{ readonly path: string; readonly isFile: boolean }> {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (path === LOCK) continue;
    if (entry.isDirectory()) yield* walk(root, path);
    else yield { path, isFile: entry.isFile() };
  }
}
