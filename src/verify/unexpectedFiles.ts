/** Finds files that are not part of a build. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { emitFiles, type FileSink } from '../engine/render/pageFiles.ts';
import { LOCK } from '../output/outputFolder.ts';
import { isArchivePath, isRowsFile, LIST_FOLDERS } from '../pages/filePaths.ts';
import { readBlock } from './checkBlock.ts';
import type { ComparingSink } from './comparingSink.ts';
import { Findings } from './findings.ts';
import type { Verification } from './verification.ts';

/**
 * Adds a finding for each file that is not part of the build. Expected files are the pages that `sink` compared, the
 * build's own files, and `others`. The caller has found all of these. So paths are compared only if the folder has more
 * files than expected.
 */
export function reportStrangers(verification: Verification, sink: ComparingSink, others: readonly string[]): void {
  const { root, own, findings } = verification;
  let count = 0;
  // walk() does not follow links. So if a link has replaced a folder, the count is lower, and the paths are compared.
  for (const { isFile } of walk(root)) if (isFile) count += 1;
  if (count === sink.files + own.files + others.length) return;
  const known = new Set([...pagesOf(verification), ...own.paths, ...others]);
  for (const { path } of walk(root)) {
    if (known.has(path)) continue;
    const isSwept = isRowsFile(path) || isArchivePath(path) || LIST_FOLDERS.some((folder) => path.startsWith(`${folder}/`));
    findings.add(`${path} is not part of this build${isSwept ? '' : '; builds do not remove it, so remove it yourself'}`);
  }
}

/** Returns the paths of all pages. Slow, because it reads the blocks again. */
function pagesOf(verification: Verification): Set<string> {
  const { site, blocks } = verification;
  const paths = new Set<string>();
  const add = (path: string) => void paths.add(path);
  const sink: FileSink = { page: add, file: add, link: add };
  for (const block of site.layout === 'archive' ? [] : blocks) {
    const read = readBlock({ ...verification, findings: new Findings() }, undefined, block);
    if (read !== undefined) emitFiles(read.batch, read.found, site, sink);
  }
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
