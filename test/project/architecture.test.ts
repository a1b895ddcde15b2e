/** Tests the imports between files and folders by the rules of docs/architecture.md, and the picture on this page. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import ts from 'typescript-api';
import { describe, expect, it } from 'vitest';
import { filesBelow } from '../support/build.ts';
import { ROOT } from '../support/cli.ts';
import { folderOf, importGraph, importsOfSource, reachable } from '../support/imports.ts';

const IMPORTS = importsOfSource();
const GRAPH = importGraph(IMPORTS);

/** Pairs of folders that may import each other, with the reason. The key is `a, b` in alphabetical order. */
const CYCLES: Readonly<Record<string, string>> = {};

const asText = ({ from, to }: { readonly from: string; readonly to: string }) => `${from} imports ${to}`;

describe('imports', () => {
  it('include known imports', () => {
    expect(IMPORTS.map(asText)).toContain('src/engine/writeChangedPages.ts imports src/engine/render/writerPool.ts');
    expect([...(GRAPH.get('src/contract') ?? [])].sort()).toEqual(['src/format', 'src/pages', 'src/runes']);
    expect(GRAPH.get('scripts')?.has('src/engine')).toBe(true);
  });

  it.each([
    ['src/format', ['src/format', 'src/limits.ts', 'src/joinBytes.ts']],
    ['src/pages', ['src/pages', 'src/format', 'src/limits.ts']],
    ['src/lists', ['src/lists', 'src/pages', 'src/format', 'src/runes', 'src/groupBy.ts']],
    ['src/limits.ts', ['src/format']],
    ['src/serve/http', ['src/serve/http', 'src/pages']],
    ['src/runes', ['src/runes', 'src/groupBy.ts', 'src/joinBytes.ts']],
  ])('of %s are limited to %o', (folder, allowed) => {
    const own = IMPORTS.filter(({ from }) => (folderOf(from) ?? from) === folder);
    if (folder !== 'src/limits.ts') expect(own.length).toBeGreaterThan(3);
    expect(own.filter(({ to }) => !allowed.includes(folderOf(to) ?? to)).map(asText)).toEqual([]);
  });

  it('between folders have no cycles, except listed ones', () => {
    const both = [...GRAPH.keys()].flatMap((a) =>
      [...reachable(GRAPH, a)].filter((b) => a <= b && reachable(GRAPH, b).has(a)).map((b) => `${a}, ${b}`),
    );
    expect(both.sort()).toEqual(Object.keys(CYCLES).sort());
  });

  it('between files have no cycle, types included, so that every file can be read after the files that it needs', () => {
    const files = importGraph(IMPORTS, (file) => file);
    expect([...files.keys()].filter((file) => reachable(files, file).has(file))).toEqual([]);
  });

  it('of scripts/ from other folders do not exist', () => {
    expect(IMPORTS.filter(({ to }) => to.startsWith('scripts/')).map(asText)).toEqual([]);
  });

  it('of DuckDB occur only in src/duckdb', () => {
    const importers = new Set(IMPORTS.filter(({ to }) => to.startsWith('@duckdb/')).map(({ from }) => folderOf(from)));
    expect([...importers]).toEqual(['src/duckdb']);
  });
});

/** Source files and their content. */
const SOURCES = filesBelow(join(ROOT, 'src'))
  .filter((path) => path.endsWith('.ts'))
  .map((path) => [`src/${path}`, readFileSync(join(ROOT, 'src', path), 'utf8')] as const);

describe('the source', () => {
  it('reads files in SQL only with src/duckdb/readFilesSql.ts', () => {
    const readers = /\b(?:read_(?:\$\{\w+\}|parquet|csv|json|text|blob|ndjson)\w*|parquet_(?:scan|schema|(?:\w+_)?metadata)|(?<!\.)glob)\(/;
    expect(SOURCES.filter(([, text]) => readers.test(text)).map(([path]) => path)).toEqual(['src/duckdb/readFilesSql.ts']);
  });

  it('has no exports that can be reassigned, because src/loadTypeScript.cjs copies exports once', () => {
    expect(SOURCES.filter(([, text]) => /^export (?:let|var) /m.test(text)).map(([path]) => path)).toEqual([]);
  });

  it('spreads no long list into arguments, because about 125,000 arguments overflow the stack', () => {
    const allowed = ['el', 'append', 'replaceChildren', 'withHeaders'];
    const found: string[] = [];
    for (const [path, text] of SOURCES) {
      const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest);
      const visit = (node: ts.Node): void => {
        if ((ts.isCallExpression(node) || ts.isNewExpression(node)) && node.arguments?.some(ts.isSpreadElement)) {
          const callee = node.expression.getText(file).split('.').at(-1) ?? '';
          if (!allowed.includes(callee))
            found.push(`${path}:${file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1}: ${callee}`);
        }
        ts.forEachChild(node, visit);
      };
      visit(file);
    }
    expect(found).toEqual([]);
  });
});

describe('bytes', () => {
  const config = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile).config as unknown;
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);

  /**
   * Returns each call of `slice` on bytes, as `file:line`. The compiler knows from its types whether a value is bytes, a string or an
   * array.
   */
  function slicesOfBytes(files: readonly string[], host: ts.CompilerHost): string[] {
    const built = ts.createProgram(files, options, host);
    const types = built.getTypeChecker();
    const found: string[] = [];
    for (const path of files) {
      const file = built.getSourceFile(path);
      if (file === undefined) throw new Error(`${path} was not read`);
      const visit = (node: ts.Node): void => {
        if (ts.isPropertyAccessExpression(node) && node.name.text === 'slice') {
          const type = types.getNonNullableType(types.getTypeAtLocation(node.expression));
          const parts = type.isUnion() ? type.types : [type];
          if (parts.some((part) => (part.flags & ts.TypeFlags.Any) !== 0 || part.getProperty('byteLength') !== undefined))
            found.push(`${relative(ROOT, path)}:${file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1}`);
        }
        ts.forEachChild(node, visit);
      };
      visit(file);
    }
    return found;
  }

  it('are never copied with slice, which returns a view of a Buffer: src/runes/bytes.ts has the copy', () => {
    // Shows in the same program, which takes seconds to make, that the check finds every type of bytes.
    const text = `declare const b: { readonly page: Buffer }; declare const u: Uint8Array | undefined; declare const s: string; declare const a: unknown[];
      class Own extends Uint8Array {}
      b.page.slice(1);
      u?.slice();
      new Own(3).slice();
      new Uint8Array(2).buffer.slice(0, 1);
      s.slice(1); a.slice(1);`;
    const path = join(ROOT, 'src/invented.ts');
    const host = ts.createCompilerHost(options);
    const { getSourceFile, fileExists } = host;
    host.fileExists = (name) => name === path || fileExists.call(host, name);
    host.getSourceFile = (name, ...rest) =>
      name === path ? ts.createSourceFile(path, text, ts.ScriptTarget.ES2022) : getSourceFile.call(host, name, ...rest);
    const files = SOURCES.map(([source]) => join(ROOT, source)).filter((source) => !/site[/](?:explorer|apiDocs)[/]/.test(source));
    expect(slicesOfBytes([...files, path], host)).toEqual([3, 4, 5, 6].map((line) => `src/invented.ts:${line}`));
  });
});

/** Returns all strings in a file. Each interpolated value is replaced by a NUL. */
function stringsOf(path: string, text: string): string[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const strings: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node)) strings.push(node.text);
    if (ts.isTemplateExpression(node)) strings.push(node.head.text + node.templateSpans.map((span) => `\0${span.literal.text}`).join(''));
    ts.forEachChild(node, visit);
  };
  visit(file);
  return strings;
}

describe('relations of the store', () => {
  /** Returns the names of relations that follow these SQL keywords. Skips names that contain an interpolated value. */
  const namesAfter = (strings: readonly string[], words: string) =>
    strings.flatMap((string) =>
      [...string.matchAll(new RegExp(`\\b(?:${words})\\s+([a-z_][\\w.]*\\w)\\b(?![(\\0])`, 'g'))].map(([, name = '']) => name),
    );
  const made = (strings: readonly string[]) => namesAfter(strings, 'CREATE (?:OR REPLACE )?(?:TEMP )?(?:TABLE|VIEW)(?: IF NOT EXISTS)?');
  /** Returns the names that WITH clauses define. */
  const inQuery = (strings: readonly string[]) =>
    strings.flatMap((string) => [...string.matchAll(/\b(\w+) AS (?:(?:NOT )?MATERIALIZED )?\(/g)].map(([, name = '']) => name));

  it('are named in SQL only by the file that creates them; others get them as values (src/duckdb/table.ts)', () => {
    const found: string[] = [];
    let named = 0;
    for (const [path, text] of SOURCES) {
      const strings = stringsOf(path, text);
      const own = new Set([...made(strings), ...inQuery(strings)]);
      for (const name of namesAfter(
        strings.filter((string) => /\b(?:SELECT|FROM|INSERT INTO|UPDATE|DELETE)\b/.test(string)),
        '(?<!DISTINCT )FROM|JOIN|INTO|UPDATE|TABLE',
      )) {
        named += 1;
        if (!own.has(name)) found.push(`${path}: ${name}`);
      }
    }
    expect(named).toBeGreaterThan(50);
    expect(found).toEqual([]);
  });

  it('get their names only from the store, which keeps them unique, and from the state', () => {
    expect(SOURCES.filter(([, text]) => text.includes('new Table(')).map(([path]) => path)).toEqual([
      'src/duckdb/store.ts',
      'src/engine/state/state.ts',
    ]);
  });
});

describe('comments', () => {
  it('name only files that exist', () => {
    const missing: string[] = [];
    let named = 0;
    for (const path of [
      ...filesBelow(join(ROOT, 'src')).map((p) => `src/${p}`),
      ...filesBelow(join(ROOT, 'test')).map((p) => `test/${p}`),
    ]) {
      if (!path.endsWith('.ts') || path.includes('node_modules')) continue;
      // Finds comments at the beginning of a line, or after code and a space.
      for (const line of readFileSync(join(ROOT, path), 'utf8').split('\n')) {
        const [, comment = ''] = /(?:^\s*(?:\/\*\*?|\*|\/\/)|\s\/\/ )(.*)$/.exec(line) ?? [];
        for (const [, name = ''] of comment.matchAll(/(?<![\w./:<*-])((?:[\w-]+\/)*[\w.-]*\w\.(?:ts|md|cjs|mjs))\b(?!\.)/g)) {
          named += 1;
          const folders = ['', 'src', 'docs', 'test', dirname(path)];
          if (!folders.some((folder) => existsSync(join(ROOT, folder, name)))) missing.push(`${path}: ${name}`);
        }
      }
    }
    expect(named).toBeGreaterThan(30);
    expect(missing).toEqual([]);
  });
});

describe('docs/architecture.md', () => {
  const page = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8');

  it('has every folder in its list', () => {
    expect([...GRAPH.keys()].filter((folder) => !page.includes(`\n- \`${folder}${folder.endsWith('.ts') ? '' : '/'}\`: `))).toEqual([]);
  });
});
