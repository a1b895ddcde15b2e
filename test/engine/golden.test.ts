/**
 * Compares the complete output of builds of small inputs with recorded files, byte for byte, in both dialects (test/fixtures/README.md).
 */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { siteAssets } from '../../src/site/assets.ts';
import { VERSION } from '../../src/version.ts';
import { archiveFiles, MANIFEST, readArchive } from '../support/archives.ts';
import { filesBelow, temporaryFolder, testBuild, writeFiles } from '../support/build.ts';

const GOLDEN = new URL('../fixtures/golden/', import.meta.url).pathname;

/**
 * Paths of scripts and styles, which are the same in every build, and of the API page, which shows `openapi.json`
 * (test/browser/docs.test.ts). They are not recorded.
 */
const assets = new Set([...siteAssets().map(([path]) => path), 'docs/index.html']);

/**
 * The API description is recorded once for each dialect, for the input `activity`. The descriptions for other inputs differ only in the
 * heights of the examples. Layouts make no difference.
 */
const OPENAPI = 'openapi.json';
const HEIGHTS: Readonly<Record<string, readonly (readonly [activity: string, other: string])[]>> = {
  ledger: [
    ['"block_height": 840002', '"block_height": 840101'],
    ['"example": 840002', '"example": 840101'],
    ['"example": "840002"', '"example": "840101"'],
    ['100\n    },\n    "example": 840000', '100\n    },\n    "example": 840100'],
  ],
};

/** Returns the expected files of a build. */
function expectedFiles(name: string, folder: string, dialect: string): Record<string, string> {
  const document = readFileSync(join(GOLDEN, 'activity', dialect, OPENAPI), 'utf8').replaceAll(VERSION, 'VERSION');
  const openapi = (HEIGHTS[name] ?? []).reduce((text, [activity, other]) => text.replaceAll(activity, other), document);
  return { ...read(join(GOLDEN, name, folder)), [OPENAPI]: openapi };
}

/** Replaces the version of the program in the files, so that a release does not change the recorded files. */
const read = (folder: string) =>
  Object.fromEntries(
    filesBelow(folder)
      .filter((path) => !assets.has(path))
      .map((path) => [path, readFileSync(join(folder, path), 'utf8').replaceAll(VERSION, 'VERSION')]),
  );

/** Name of the recorded file that has the contents of an archive as JSON. */
const ARCHIVE = 'archive.json';

/**
 * Returns the files of a build, and the contents of the archive without compression. Another version of zlib compresses pages to other
 * bytes, so files have other names and sizes.
 */
function readBuilt(out: string): Record<string, string> {
  const files = read(out);
  if (archiveFiles(out).length === 0) return files;
  for (const path of archiveFiles(out)) delete files[path];
  const { root, blocks, levels, etchings, names } = readArchive(out);
  const segments = root.segments.map(({ file: _, bytes: __, directory: ___, ...segment }) => segment);
  const ids = root.ids.map(({ files: parts, ...level }, i) => ({ ...level, files: parts.length, entries: levels[i] }));
  const all = blocks.map(({ segment, ...block }) => ({ segment: root.segments.indexOf(segment), ...block }));
  files[ARCHIVE] = `${JSON.stringify({ ...root, segments, ids, blocks: all, etchings, names }, null, 1)}\n`;
  const manifest = files[MANIFEST] ?? '';
  files[MANIFEST] = manifest.replace(/"root": "[0-9a-f]{64}"/, '"root": "ROOT"').replace(/"bytes": [0-9]+/g, '"bytes": "BYTES"');
  return files;
}

describe.each(['activity', 'ledger'])('the input %s', (name) => {
  it.each([
    ['contract', 'files', 'contract'],
    ['hiro', 'files', 'hiro'],
    ['contract', 'archive', 'archive'],
  ] as const)('in dialect %s, layout %s', async (dialect, layout, folder) => {
    const out = join(temporaryFolder(), 'dist');
    // With these small page sizes, even lists of a few records have every kind of page.
    await testBuild(out, { inputs: [join(GOLDEN, name, 'input')], dialect, layout, pageSizes: [2, 4] });
    const expected = join(GOLDEN, name, folder);
    if (process.env['UPDATE_GOLDEN'] === '1') {
      rmSync(expected, { recursive: true, force: true });
      for (const [path, content] of Object.entries(readBuilt(out))) {
        if (path === OPENAPI && expected !== join(GOLDEN, 'activity', dialect)) continue;
        writeFiles(expected, { [path]: content.replaceAll('VERSION', VERSION) });
      }
    }
    expect(existsSync(expected)).toBe(true);
    expect(readBuilt(out)).toEqual(expectedFiles(name, folder, dialect));
  });
});
