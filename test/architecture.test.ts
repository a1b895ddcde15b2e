/** What imports what: the rules of docs/architecture.md, and its picture. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from './support/cli.ts';
import { folderGraph, folderOf, importsOfSource, reachable, withPicture } from './support/imports.ts';

const IMPORTS = importsOfSource();
const GRAPH = folderGraph(IMPORTS);

/** Folders that may import each other, as `a, b` in the order of the alphabet, and why. */
const CYCLES: Readonly<Record<string, string>> = {};

/** Packages that only one folder may import. */
const KEPT_IN: Readonly<Record<string, RegExp>> = {
  'src/store': /^@duckdb\//,
  'src/pull': /^pg(?:-copy-streams)?$/,
};

const asText = ({ from, to }: { readonly from: string; readonly to: string }) => `${from} imports ${to}`;

describe('imports', () => {
  it('are found', () => {
    expect(IMPORTS.map(asText)).toContain('src/write/writer.ts imports src/render/files.ts');
    expect([...(GRAPH.get('src/contract') ?? [])]).toEqual(['src/pages']);
    expect(GRAPH.get('scripts')?.has('src/build')).toBe(true);
  });

  it.each([
    ['src/pages', []],
    ['src/runes', ['@scure/base']],
  ])('of %s stay in it', (folder, packages) => {
    const imports = IMPORTS.filter(({ from }) => from.startsWith(`${folder}/`));
    expect(imports.length).toBeGreaterThan(10);
    expect(imports.filter(({ to }) => folderOf(to) !== folder && !packages.includes(to)).map(asText)).toEqual([]);
  });

  it('of folders go one way, unless it is listed why not', () => {
    const both = [...GRAPH.keys()].flatMap((a) =>
      [...reachable(GRAPH, a)].filter((b) => a <= b && reachable(GRAPH, b).has(a)).map((b) => `${a}, ${b}`),
    );
    expect(both.sort()).toEqual(Object.keys(CYCLES).sort());
  });

  it('of scripts are made by nobody', () => {
    expect(IMPORTS.filter(({ to }) => to.startsWith('scripts/')).map(asText)).toEqual([]);
  });

  it.each(Object.entries(KEPT_IN))('of its packages are kept in %s', (folder, packages) => {
    const importers = new Set(IMPORTS.filter(({ to }) => packages.test(to)).map(({ from }) => folderOf(from)));
    expect([...importers]).toEqual([folder]);
  });
});

describe('docs/architecture.md', () => {
  const page = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8');

  it('has the picture of the source as it is; npm run picture draws it anew', () => {
    expect(page).toBe(withPicture(page));
  });

  it('has every folder in its table', () => {
    expect([...GRAPH.keys()].filter((folder) => !page.includes(`| \`${folder}/\` |`))).toEqual([]);
  });
});
