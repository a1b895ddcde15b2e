/**
 * Finds which folders of the source import each other, including types, and draws the picture in docs/architecture.md.
 *
 * `typescript` checks the types; it has no functions for programs yet, so tests use those of `typescript-api`, an older version.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript-api';
import { filesBelow } from './build.ts';
import { ROOT } from './cli.ts';

/** An import as written in the source. A file of the project is named by its path from the root, a package by its name. */
export interface Import {
  readonly from: string;
  readonly to: string;
}

/** Maps folders or files to their imports. */
export type ImportGraph = ReadonlyMap<string, ReadonlySet<string>>;

/** Returns every import of `src/` and `scripts/`. */
export function importsOfSource(): Import[] {
  const files = ['src', 'scripts'].flatMap((folder) => filesBelow(join(ROOT, folder)).map((path) => `${folder}/${path}`));
  return files
    .filter((file) => /\.(?:[cm]?[jt]s|[jt]sx)$/.test(file))
    .flatMap((from) => ts.preProcessFile(readFileSync(join(ROOT, from), 'utf8')).importedFiles.map(({ fileName }) => ({ from, fileName })))
    .map(({ from, fileName }) => ({ from, to: fileName.startsWith('.') ? join(from, '..', fileName) : fileName }));
}

/** Folders of `src/` whose subfolders count as separate folders. */
const HOUSES = ['engine', 'serve'];

/**
 * Returns the node of the graph that a file belongs to: `scripts`, a folder of `src/`, or a subfolder of one of HOUSES. The SQL files of
 * `src/lists` are a separate node, because the other files of `src/lists` need no platform. Returns undefined for files directly in `src/`,
 * which all folders may import, and for everything else.
 */
export function folderOf(file: string): string | undefined {
  const [top = '', folder = '', ...rest] = file.split('/');
  if (top === 'scripts') return top;
  if (top !== 'src' || rest.length === 0) return undefined;
  if (file.endsWith('.sql.ts')) return `${top}/${folder}/*.sql.ts`;
  return HOUSES.includes(folder) && rest.length > 1 ? `${top}/${folder}/${rest[0]}` : `${top}/${folder}`;
}

/** Returns the graph of the folders, or of the nodes that `nameOf` returns for file paths. Omits imports within a node. */
export function importGraph(imports: readonly Import[], nameOf: (file: string) => string | undefined = folderOf): ImportGraph {
  const graph = new Map<string, Set<string>>();
  for (const { from, to } of imports) {
    const [importer, imported] = [nameOf(from), nameOf(to)];
    if (importer === undefined) continue;
    const all = graph.get(importer) ?? new Set();
    graph.set(importer, all);
    if (imported !== undefined && imported !== importer) all.add(imported);
  }
  return graph;
}

/** Returns everything that a folder or file imports, directly or indirectly. */
export function reachable(graph: ImportGraph, folder: string): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (one: string) => {
    for (const next of graph.get(one) ?? []) {
      if (found.has(next)) continue;
      found.add(next);
      visit(next);
    }
  };
  visit(folder);
  return found;
}

/**
 * Returns the lines of a Mermaid flowchart. Omits an arrow if other arrows form a path between the same folders, because a picture with all
 * arrows would be unreadable.
 */
function mermaidOf(graph: ImportGraph): string {
  const folders = [...graph.keys()].sort();
  const nameOf = (folder: string) => folder.replace(/^src\//, '');
  const arrows = folders.flatMap((from) => {
    const direct = [...(graph.get(from) ?? [])].sort();
    const follows = (to: string) => direct.some((other) => other !== to && reachable(graph, other).has(to));
    const shown = direct.filter((to) => !follows(to)).map(nameOf);
    return shown.length === 0 ? [] : [`  ${nameOf(from)} --> ${shown.join(' & ')}`];
  });
  return ['flowchart TD', ...arrows].join('\n');
}

const PICTURE = /(<!-- picture: npm run docs -->\n)[\s\S]*?(<!-- end of picture -->)/;

/** Inserts the picture between the two marks of a document. Throws if the marks are missing. */
export function withPicture(document: string): string {
  if (!PICTURE.test(document)) throw new Error('the document has no marks for the picture');
  const picture = mermaidOf(importGraph(importsOfSource()));
  return document.replace(PICTURE, (_, before: string, after: string) => `${before}\`\`\`mermaid\n${picture}\n\`\`\`\n${after}`);
}
