/** Tests files that have another format version. Every reader reports the version of the files and its own version, and gives advice. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import { beforeAll, expect, it } from 'vitest';
import { Progress } from '../../src/cli/progress.ts';
import { InputError } from '../../src/errors.ts';
import { ARCHIVE_FOLDER } from '../../src/pages/filePaths.ts';
import type * as source from '../../src/serve/client/mirrorClient.ts';
import { FetchMirror } from '../../src/serve/fetchHost.ts';
import { VerificationError } from '../../src/verify/findings.ts';
import { verify } from '../../src/verify/verify.ts';
import { contentOf, fileServer, MANIFEST, putFile } from '../support/archives.ts';
import { RecordingLog, temporaryFolder, testBuild, tree } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { copyOf } from '../support/outputs.ts';
import { startPlainFiles } from '../support/plainFiles.ts';
import { failedPull } from '../support/pull.ts';
import { startServer } from '../support/server.ts';

const work = temporaryFolder();
const whole = join(work, 'whole');
const TARGET = '/runes/v1/blocks/840000/activity';

beforeAll(() => testBuild(whole, { inputs: [SAMPLE_INPUT], layout: 'archive' }));

/** Replaces the format version in a JSON text. Without a version, removes the field. */
const withFormat = (text: string, format: number | undefined) =>
  JSON.stringify({ ...(JSON.parse(text) as object), ...(format === undefined ? { format: undefined } : { format }) });

/** Replaces the format version in the manifest of an output. */
function changeManifest(out: string, format: number | undefined): void {
  const path = join(out, MANIFEST);
  writeFileSync(`${path}.new`, withFormat(readFileSync(path, 'utf8'), format));
  renameSync(`${path}.new`, path);
}

/** Replaces the format version in the root of an output, and updates the manifest. */
function changeRoot(out: string, format: number | undefined): void {
  const path = join(out, MANIFEST);
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as { archive: { root: string; bytes: number } };
  const old = gunzipSync(contentOf(out, manifest.archive.root)).toString();
  const root = gzipSync(withFormat(old, format));
  manifest.archive = { root: putFile(out, root), bytes: root.length };
  writeFileSync(`${path}.new`, JSON.stringify(manifest));
  renameSync(`${path}.new`, path);
}

const copy = () => copyOf(whole);

const NEWER = 'have format 5, and this version of rune-activity-mirror reads format 4: update this program or client module';
const OLDER = 'have no format version, and this version of rune-activity-mirror reads format 4: the mirror has to be built again';

it.each([
  ['the manifest', changeManifest],
  ['the root', changeRoot],
] as const)('%s of another version gets a message from hosts, the client and verify', async (name, change) => {
  for (const [format, message] of [
    [5, NEWER],
    [undefined, OLDER],
  ] as const) {
    const out = copy();
    const [server, files] = [await startServer(out), await startPlainFiles(out)];
    try {
      expect((await server.send('GET', TARGET)).status).toBe(200);
      change(out, format);
      const answer = await server.send('GET', `${TARGET}?limit=1`);
      expect([answer.status, answer.headers['retry-after']]).toEqual([503, '5']);
      expect((JSON.parse(answer.body) as { message: string }).message).toContain(message);

      const response = await new FetchMirror(fileServer(out).fetchFile, 0).answer(new Request(`http://127.0.0.1${TARGET}`));
      expect(response?.status).toBe(503);
      expect(JSON.stringify(await response?.json())).toContain(message);

      const client = (await import(pathToFileURL(join(out, 'client.js')).href)) as typeof source;
      const failure: unknown = await new client.Mirror(files.base).activity({ block: 840000 }).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(client.MirrorError);
      expect(String(failure)).toContain(message);

      const found: unknown = await verify(out, new Progress(new RecordingLog(), false)).catch((error: unknown) => error);
      expect(found instanceof VerificationError && found.details.join('\n')).toContain(message);

      // A server that starts with such an output reports both versions too.
      if (name === 'the manifest') await expect(startServer(out)).rejects.toThrow(InputError);
      if (name === 'the manifest') await expect(startServer(out)).rejects.toThrow(message);
    } finally {
      await server.close();
      await files.close();
    }
  }
});

it('a pull from a mirror of another version ends with advice', async () => {
  const out = copy();
  changeManifest(out, 5);
  const files = await startPlainFiles(out);
  try {
    const error = await failedPull(files.base, join(work, 'pulled'));
    expect([error.message, error.exitCode]).toEqual([`${files.base} cannot be read: the files of this mirror ${NEWER}`, 2]);
  } finally {
    await files.close();
  }
});

it('a build replaces an output of another version in full', async () => {
  const out = join(work, 'built');
  await testBuild(out, { inputs: [SAMPLE_INPUT], layout: 'archive' });
  changeManifest(out, undefined);
  // Before format 3, names of archive files were shorter. The build must remove such files too.
  writeFileSync(join(out, ARCHIVE_FOLDER, `${'ab'.repeat(16)}.bin`), 'old');
  await testBuild(out, { inputs: [SAMPLE_INPUT], layout: 'archive' });
  expect(tree(out)).toEqual(tree(whole));
});
