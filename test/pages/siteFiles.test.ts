/** Compares the table of a build's files (src/pages/fileKinds.ts) with every other list or pattern of these files. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { manifest as manifestSchema } from '../../src/contract/schemas.ts';
import { ownFiles } from '../../src/output/manifest.ts';
import { FOLDERS } from '../../src/output/outputFolder.ts';
import { BUILD_FILES, type FileKind, isBuiltFile, isOfKind, pageOfFolder } from '../../src/pages/fileKinds.ts';
import {
  FEED_PATH,
  isArchivePath,
  isRowsFile,
  LANDING_PATH,
  LATEST_PATH,
  LIST_FOLDERS,
  MARKER_PATH,
  STATS_PATH,
  STATUS_PATH,
} from '../../src/pages/filePaths.ts';
import { cachingHeaders, FILE_HEADERS, fileHeaders, headersOfFile } from '../../src/serve/http/headers.ts';
import { siteAssets } from '../../src/site/assets.ts';
import { openapiText } from '../../src/site/openapi.ts';
import { filesBelow } from '../support/build.ts';
import { ROOT } from '../support/cli.ts';
import { recordedOutput } from '../support/recorded.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const GOLDEN = 'test/fixtures/golden/activity';
const MANIFEST = manifestSchema.parse(JSON.parse(read(`${GOLDEN}/contract/runes/v1/manifest.json`)));
const endingOf = (path: string) => path.slice(path.lastIndexOf('.') + 1);
const pathsOf = (kinds: readonly FileKind[]) => kinds.map(({ path }) => path);

/** Layout or option of the builds that write a file. Undefined if every build writes it. */
const whenOf = ({ path }: FileKind) =>
  [/^runes\/v1\/blocks\//, /^archive\//, /^rows\//].flatMap((folder, i) =>
    folder.test(path) ? ['files', 'archive', 'parquet'][i] : [],
  )[0];

const isSent = (kind: FileKind) => kind.isSent ?? true;

describe('every kind of file of a build', () => {
  it.each([
    ['contract', 'files'],
    ['hiro', 'files'],
    ['archive', 'archive'],
  ])('is in the table: the tree %s', async (folder, layout) => {
    const kinds = BUILD_FILES.filter((kind) => [undefined, layout].includes(whenOf(kind)));
    const built = layout === 'archive' ? await recordedOutput(layout, 'contract') : join(ROOT, GOLDEN, folder);
    const files = [...new Set([...filesBelow(built), 'openapi.json', 'docs/index.html', ...siteAssets().map(([path]) => path)])];
    expect(files.filter((file) => kinds.filter((kind) => isOfKind(kind, file)).length !== 1)).toEqual([]);
    expect(pathsOf(kinds.filter((kind) => !files.some((file) => isOfKind(kind, file))))).toEqual([]);
  });

  it('has an example that no other kind matches, and hosts send it if the table says so', () => {
    for (const kind of BUILD_FILES) {
      const same = BUILD_FILES.filter((other) => isOfKind(other, kind.path));
      expect([kind.path, pathsOf(same)]).toEqual([kind.path, [kind.path]]);
      expect([kind.path, isBuiltFile(kind.path)]).toEqual([kind.path, isSent(kind)]);
    }
  });

  it('is verified by its path or by its folder', () => {
    const verified = [
      ...[...siteAssets(), ...ownFiles(MANIFEST)].map(([path]) => path),
      LANDING_PATH,
      STATUS_PATH,
      STATS_PATH,
      LATEST_PATH,
      FEED_PATH,
      MARKER_PATH,
    ];
    expect(pathsOf(BUILD_FILES.filter((kind) => kind.pattern === undefined && whenOf(kind) === undefined)).sort()).toEqual(verified.sort());
    const isSwept = (path: string) =>
      isRowsFile(path) || isArchivePath(path) || LIST_FOLDERS.some((folder) => path.startsWith(`${folder}/`));
    const byData = BUILD_FILES.filter((kind) => kind.pattern !== undefined || whenOf(kind) !== undefined);
    expect(pathsOf(byData).filter((path) => !isSwept(path))).toEqual([]);
  });

  it('is in a folder that builds check for links', () => {
    const isChecked = (path: string) => FOLDERS.includes(dirname(path)) || LIST_FOLDERS.some((folder) => path.startsWith(`${folder}/`));
    expect(pathsOf(BUILD_FILES).filter((path) => path.includes('/') && !isChecked(path))).toEqual([]);
  });

  it('has a content type', () => {
    const isJson = (path: string) => fileHeaders(path)['content-type']?.startsWith('application/json') === true;
    expect(pathsOf(BUILD_FILES).filter((path) => path !== MARKER_PATH && isJson(path) !== path.endsWith('.json'))).toEqual([]);
  });

  it('is in docs/files.md, which lists no others', () => {
    const lines = [...read('docs/files.md').matchAll(/^ {4}dist\/([^\s,]+(?:, [^\s,]+)*)/gm)];
    const listed = lines.flatMap(([, paths = '']) => paths.split(', '));
    const isListed = (path: string) => listed.some((one) => one === path || (one.endsWith('/') && path.startsWith(one)));
    expect(pathsOf(BUILD_FILES).filter((path) => !isListed(path))).toEqual([]);
    const isKnown = (one: string) =>
      BUILD_FILES.some((kind) => isOfKind(kind, one.replaceAll('…', '')) || (one.endsWith('/') && kind.path.startsWith(one)));
    expect(listed.filter((one) => !isKnown(one))).toEqual([]);
  });

  it('is in the description of the API, if it is JSON of the API', () => {
    const { paths } = JSON.parse(
      openapiText({ ...MANIFEST, rows: { index: 'rows/index-97c1d2e3f4a5b6c7.json', sha256: `97c1d2e3f4a5b6c7${'0'.repeat(48)}` } }),
    ) as { readonly paths: Readonly<Record<string, unknown>> };
    const described = Object.keys(paths).map((path) => new RegExp(`^${path.replaceAll('.', '[.]').replace(/\{\w+\}/g, '[^/]+')}$`));
    const documents = pathsOf(BUILD_FILES.filter((kind) => [undefined, 'parquet'].includes(whenOf(kind)))).filter((path) =>
      /^(?:runes|rows)\/.*json$/.test(path),
    );
    const asked = documents.map((path) => (path === STATUS_PATH ? '/runes/v1/' : `/${path}`));
    expect(asked.filter((path) => !described.some((one) => one.test(path)))).toEqual([]);
  });
});

it('files of an archive are cached for ever, and proxies may not compress them', () => {
  const cachingOf = (path: string) => headersOfFile(path)[headersOfFile(path).indexOf('cache-control') + 1];
  const never = 'public, max-age=31536000, immutable, no-transform';
  expect([`archive/${'0a'.repeat(32)}.bin`, 'archive.json'].map(cachingOf)).toEqual([never, 'public, no-cache, must-revalidate']);
});

describe('netlify.toml', () => {
  const rules = [...read('netlify.toml').matchAll(/\{ for = "([^"]*)", values = \{(.*)\} \}/g)].map(([, path = '', values = '']) => ({
    path: new RegExp(`^${path.replaceAll('.', '[.]').replace('*', '.*')}$`),
    headers: [...values.matchAll(/([A-Z][\w-]+) = "([^"]*)"/g)].map(([, name = '', value = '']) => [name.toLowerCase(), value] as const),
  }));

  it.each(pathsOf(BUILD_FILES.filter(({ path }) => path !== MARKER_PATH)))('gives %s its headers', (path) => {
    const set = Object.fromEntries(rules.filter((rule) => rule.path.test(`/${path}`)).flatMap(({ headers }) => headers));
    const wanted = fileHeaders(path);
    // Netlify itself sets the content types of all other files, and the configuration has a separate rule for Parquet files.
    const typed = /(?:^(?!rows\/).*\.json|\.ts)$/.test(path) ? ['content-type'] : [];
    const names = [...Object.keys(FILE_HEADERS), ...typed, ...('content-security-policy' in wanted ? ['content-security-policy'] : [])];
    const expected: Readonly<Record<string, string>> = {
      ...wanted,
      ...FILE_HEADERS,
      ...cachingHeaders(false),
      ...(path.startsWith('404.') ? { 'cache-control': 'no-store' } : {}),
    };
    for (const name of [...names, 'cache-control']) expect([name, set[name]]).toEqual([name, expected[name]]);
  });
});

describe.each(['nginx/nginx.conf', 'caddy/Caddyfile'])('hosting/%s', (recipe) => {
  const text = read(`hosting/${recipe}`);
  const [, map = ''] = /map (?:\$request_uri \$|\{mirror_target\} \{)mirror_own_file\b.* \{\n([\s\S]*?)\n\s*\}\n/.exec(text) ?? [];
  const files = [...map.matchAll(/"~(\S+)"\s+"?([\w$/.{}]+)/g)].map(([, rule = '', file = '']) => [new RegExp(rule), file] as const);
  /** Returns the file of a path; undefined if the recipe has none. `$1` stands for the path itself. */
  const fileOf = (path: string) => {
    const found = files.find(([rule]) => rule.test(path))?.[1];
    return found?.startsWith('$') === true ? path : found === '/none' ? undefined : found;
  };

  it('sends the files that the table marks for hosts, and folders with a page', () => {
    expect(files.length).toBeGreaterThan(3);
    const found = BUILD_FILES.map((kind) => [kind.path, fileOf(`/${kind.path}`) === `/${kind.path}`]);
    expect(found).toEqual(BUILD_FILES.map((kind) => [kind.path, isSent(kind)]));
    expect(['/', '/docs/'].map((path) => [fileOf(path), `/${pageOfFolder(path)}`])).toEqual([
      ['/index.html', '/index.html'],
      ['/docs/index.html', '/docs/index.html'],
    ]);
  });

  it.each([...new Set(pathsOf(BUILD_FILES.filter(isSent)).map(endingOf))])('gives files that end with .%s their type', (ending) => {
    const type = fileHeaders(`x.${ending}`)['content-type']?.split(';')[0] ?? '';
    const inNginx = [...text.matchAll(/([a-z]+\/[\w.-]+)((?: [a-z]+)+);/g)].find(([, , endings = '']) =>
      endings.split(' ').includes(ending),
    )?.[1];
    const inCaddy = [...text.matchAll(/"~(\\\.\S*\$)" "?([a-z]+\/[\w.-]+)/g)].find(([, rule = '']) =>
      new RegExp(rule).test(`.${ending}`),
    )?.[2];
    expect((recipe.startsWith('nginx') ? inNginx : inCaddy) ?? 'application/json').toBe(type);
  });
});
