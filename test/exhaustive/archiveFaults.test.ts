/** Tests layout `archive` while files are missing, damaged or replaced. Each answer is either right or a 503. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { PartCache } from '../../src/format/partCache.ts';
import { READER_LIMITS } from '../../src/limits.ts';
import { answerFromLists } from '../../src/lists/answers.ts';
import { type Files, MissingFileError, type OpenFile } from '../../src/pages/fileAccess.ts';
import { ARCHIVE_FOLDER } from '../../src/pages/filePaths.ts';
import { type BuiltSite, siteOf } from '../../src/pages/mirrorOptions.ts';
import { respond } from '../../src/pages/respond.ts';
import { FetchMirror } from '../../src/serve/fetchHost.ts';
import { VerificationError } from '../../src/verify/findings.ts';
import { archiveFiles, diskFiles, fileServer, MANIFEST, readArchive } from '../support/archives.ts';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { Chain, fill } from '../support/chain.ts';
import { check } from '../support/outputs.ts';
import { hex } from '../support/records.ts';
import { randomFor } from '../support/seed.ts';
import { type LocalHost, startServer } from '../support/server.ts';

const MB = 1024 * 1024;
// Makes readers request ranges even of small files, because the builds below have no large files.
Object.assign(READER_LIMITS, { smallFile: 0 });

const work = temporaryFolder();
const at = (name: string) => join(work, name);
const site = (name: string): BuiltSite => siteOf(JSON.parse(readFileSync(join(at(name), MANIFEST), 'utf8')));
/** Height of the block with the most transactions. */
let large = 0;

/**
 * Builds of one chain. In `small`, a block has several segments (files of pages) and a table has several files.
 * `ranges` has larger files, which are read in ranges.
 */
const BUILDS = {
  small: { layout: 'archive', objectSize: 4096 },
  ranges: { layout: 'archive', objectSize: 2 * MB },
} as const;
const PAGE_SIZES = [2, 7, 20];

beforeAll(async () => {
  const chain = new Chain(at('in'));
  fill(chain, randomFor('faults'), { blocks: 40 });
  large = chain.heights[20] ?? 0;
  chain.write();
  for (const [name, build] of Object.entries(BUILDS)) await testBuild(at(name), { inputs: [at('in')], pageSizes: PAGE_SIZES, ...build });
});

/** Returns the paths of the lists of blocks and transactions in an archive. */
function pathsOf(out: string): string[] {
  const pages = readArchive(out).blocks.flatMap((block) => block.pages);
  const ids = new Set(pages.flatMap((page) => [...page.matchAll(/"(?:tx_id|block_hash)":"([^"]*)"/g)].map(([found]) => found)));
  return [...ids].map((found) =>
    found
      .replace(/^"tx_id":"(.*)"$/, '/runes/v1/transactions/$1/activity')
      .replace(/^"block_hash":"(.*)"$/, '/runes/v1/blocks/$1/activity'),
  );
}

/** Returns the answer of a mirror: `503`, or status and body. */
async function ask(mirror: FetchMirror, target: string): Promise<string> {
  const response = await mirror.answer(new Request(`http://127.0.0.1${target}`));
  return response?.status === 503 ? '503' : `${response?.status} ${await response?.text()}`;
}

/** Returns a copy in which some bits of one byte are flipped. */
function flipped(content: Buffer, at: number, bits: number): Buffer {
  const copy = Buffer.from(content);
  copy[at] = (copy[at] ?? 0) ^ bits;
  return copy;
}

/**
 * Returns a function that requests targets from a damaged archive, with the reader of the local server. The compressed
 * body must match the uncompressed one.
 */
async function damagedFiles(
  out: string,
  damaged: string,
  damage: (content: Buffer) => Buffer,
): Promise<(target: string) => Promise<string>> {
  const [whole, built, cache] = [diskFiles(out), siteOf(JSON.parse(readFileSync(join(out, MANIFEST), 'utf8'))), new PartCache()];
  const content = damage(readFileSync(join(out, damaged)));
  const files: Files<OpenFile> = {
    ...whole,
    read: async (path, offset, length, size) => {
      if (path !== damaged) return whole.read(path, offset, length, size);
      return content.length < offset + length ? undefined : content.subarray(offset, offset + length);
    },
  };
  return async (target) => {
    try {
      const answer = await respond(target, built, files, answerFromLists, cache);
      if (answer.kind !== 'window') return answer.kind;
      if (answer.gzip !== undefined) expect(gunzipSync(answer.gzip).toString()).toBe(answer.body);
      return `200 ${answer.body}`;
    } catch (error) {
      if (error instanceof MissingFileError) return '503';
      throw error;
    }
  };
}

describe('damage', () => {
  const findingsOf = (out: string): Promise<readonly string[]> =>
    check(out).then(
      () => [],
      (error: unknown) => {
        if (error instanceof VerificationError) return error.details;
        throw error;
      },
    );

  it.each(['small', 'ranges'] as const)(
    'of any byte, or a missing end, gives a 503 or has no effect, and verification finds it: %s',
    async (name) => {
      const random = randomFor(`damage of ${name}`);
      const paths = archiveFiles(at(name));
      const targets = pathsOf(at(name)).flatMap((path, i) => (i % 40 === 0 ? [path, `${path}?limit=20&offset=7&operation_type=send`] : []));
      targets.push(`/runes/v1/blocks/${large}/activity?limit=20&offset=40`);
      const mirrorOf = (change?: Parameters<typeof fileServer>[1]) =>
        new FetchMirror(fileServer(at(name), change).fetchFile, Number.POSITIVE_INFINITY);
      const right = mirrorOf();
      const expected: string[] = [];
      for (const target of targets) expected.push(await ask(right, target));
      const seen = { right: 0, later: 0 };
      for (let i = 0; i < 40; i += 1) {
        const damaged = paths[i % paths.length] ?? '';
        const [place, bits, isCut] = [random(), 1 + Math.floor(random() * 255), random() < 0.2];
        const damage = (content: Buffer): Buffer => {
          const where = Math.floor(place * content.length);
          return isCut ? content.subarray(0, where) : flipped(content, where, bits);
        };
        const mirror = mirrorOf((path, content) => (path === damaged ? damage(content) : content));
        const local = await damagedFiles(at(name), damaged, damage);
        for (const [n, target] of targets.entries()) {
          // Alternates between the reader of fetch hosts and the reader of the local server.
          const answer = await (i % 2 === 0 ? ask(mirror, target) : local(target));
          if (answer !== '503' && answer !== expected[n]) expect(`${damaged} at ${place}: ${answer}`, target).toBe(expected[n]);
          seen[answer === '503' ? 'later' : 'right'] += 1;
        }
        if (i >= 6) continue;
        const file = join(at(name), damaged);
        const before = readFileSync(file);
        writeFileSync(file, damage(before));
        expect(await findingsOf(at(name))).toContainEqual(expect.stringContaining(damaged));
        writeFileSync(file, before);
      }
      expect([seen.right > 0, seen.later > 0]).toEqual([true, true]);
      expect(await findingsOf(at(name))).toEqual([]);
    },
  );

  it('a segment with other content is a 503, though its checksums are right', async () => {
    // Swaps two intact files of segments.
    const { root } = readArchive(at('small'));
    const [a, b] = root.segments.filter(({ part }) => part !== undefined).map(({ file }) => `${ARCHIVE_FOLDER}/${file}.bin`);
    const swap = (path: string) => (path === a ? (b ?? '') : path === b ? (a ?? '') : path);
    const { fetchFile } = fileServer(at('small'));
    const mirror = new FetchMirror((path, range) => fetchFile(swap(path), range), 0);
    const target = `/runes/v1/blocks/${root.segments.find(({ part }) => part !== undefined)?.first}/activity?limit=20`;
    expect(await ask(mirror, target)).toBe('503');
  });

  it.each(['small', 'ranges'] as const)(
    'a file that stays missing is a 503 each time, and the other answers still come from memory: %s',
    async (name) => {
      const { blocks } = readArchive(at(name));
      const [one, other] = [blocks[0], blocks.at(-1)];
      const lost = `${ARCHIVE_FOLDER}/${one?.segment.file}.bin`;
      const { fetchFile, asked } = fileServer(at(name), (path, content) => (path === lost ? undefined : content));
      const mirror = new FetchMirror(fetchFile, 3_600_000);
      const target = (block: typeof one) => `/runes/v1/blocks/${block?.height}/activity`;
      for (let i = 0; i < 5; i += 1)
        expect([await ask(mirror, target(one)), (await ask(mirror, target(other))).slice(0, 3)]).toEqual(['503', '200']);
      const reads = (path: string) => asked.filter((read) => read.path === path).length;
      // Before each 503, the reader fetches the manifest and the file once more, because a new build may have replaced
      // them.
      expect([reads(MANIFEST), reads(lost)]).toEqual([6, 10]);
      expect(reads(`${ARCHIVE_FOLDER}/${site(name).archive?.root}.bin`)).toBe(1);
      // The page is in a file of more than 1 MB in `ranges`, so it is read each time. Its directory is read only once.
      expect(reads(`${ARCHIVE_FOLDER}/${other?.segment.file}.bin`)).toBe(name === 'small' ? 1 : 6);
    },
  );

  it('a file that fills memory when it is inflated is a 503', async () => {
    const bomb = gzipSync(Buffer.alloc(65 * MB));
    const { fetchFile } = fileServer(at('small'));
    const manifest = readFileSync(join(at('small'), MANIFEST), 'utf8').replace(/"bytes": [0-9]+/, `"bytes": ${bomb.length}`);
    const mirror = new FetchMirror((path, range) => {
      if (path === MANIFEST) return Promise.resolve(new Response(manifest));
      return path.includes(site('small').archive?.root ?? '')
        ? Promise.resolve(new Response(new Uint8Array(bomb)))
        : fetchFile(path, range);
    }, 0);
    expect(await ask(mirror, `/runes/v1/blocks/${large}/activity`)).toBe('503');
  });

  it('of a file has no effect after the repair of the file, also for a server that has the file open', async () => {
    const out = at('repaired');
    const options = { inputs: [at('in')], ...BUILDS.ranges, pageSizes: PAGE_SIZES };
    await testBuild(out, options);
    const answer = async (from: LocalHost, offset: number) => {
      const { status, body } = await from.send('GET', `/runes/v1/blocks/${large}/activity?limit=20&offset=${offset}`);
      return status === 503 ? '503' : body;
    };
    const other = await startServer(out);
    const right = await answer(other, 41);
    await other.close();
    // Makes the server open the file. This answer stays in memory, so the requests below use another window.
    const host = await startServer(out);
    await answer(host, 40);
    const { root } = readArchive(out);
    const { file = '', bytes = 0, directory = 0 } = root.segments.find(({ first, last }) => first <= large && last >= large) ?? {};
    const path = join(out, ARCHIVE_FOLDER, `${file}.bin`);
    writeFileSync(path, Buffer.concat([Buffer.alloc(bytes - directory), readFileSync(path).subarray(bytes - directory)]));
    expect(await answer(host, 41)).toBe('503');
    await testBuild(out, { ...options, full: true });
    expect(await answer(host, 41)).toBe(right);
    await host.close();
  });
});

describe('an archive that is replaced', () => {
  const TARGETS = [
    '/runes/v1/blocks/5/activity',
    '/runes/v1/blocks/5/activity?limit=20&offset=13',
    `/runes/v1/transactions/${hex('tx 5 0 0')}/activity`,
  ];
  const build = async (name: string, fork: number, amount: number) => {
    const chain = new Chain(at(`in-${name}`));
    chain.set(5, [30, 40], { fork, amount });
    chain.write();
    await testBuild(at(name), { inputs: [at(`in-${name}`)], layout: 'archive', objectSize: 4096 });
  };

  it.each([
    ['by one with a block corrected', 0, 2],
    ['by one with another block', 1, 1],
  ])('%s: an answer is the old one, the new one, or a 503, for any set of files, but never mixes both', async (_, fork, amount) => {
    await build('old', 0, 1);
    await build('new', fork, amount);
    const answers = async (folder: string) =>
      Promise.all(TARGETS.map((target) => ask(new FetchMirror(fileServer(at(folder)).fetchFile, 0), target)));
    const [old, fresh] = [await answers('old'), await answers('new')];
    expect(old[0]).not.toEqual(fresh[0]);
    const paths = [...new Set([...archiveFiles(at('old')), ...archiveFiles(at('new'))]), MANIFEST];
    const random = randomFor(`replaced by ${fork}`);
    const seen = new Set<string>();
    for (let i = 0; i < 100; i += 1) {
      const isNew = new Set(paths.filter(() => random() < (i % 10) / 10 + 0.05));
      const [a, b] = [fileServer(at('old')), fileServer(at('new'))];
      // In even runs, the new build's files replace the old files. In odd runs, old files still exist beside the new
      // files.
      const fetchFile = async (path: string, range?: string) => {
        const first = await (isNew.has(path) ? b : a).fetchFile(path, range);
        return first.status !== 404 || i % 2 === 0 ? first : a.fetchFile(path, range);
      };
      const mirror = new FetchMirror(fetchFile, 0);
      for (const [n, target] of TARGETS.entries()) {
        const answer = await ask(mirror, target);
        expect([old[n], fresh[n], '503']).toContain(answer);
        seen.add(answer === '503' ? 'later' : answer === old[n] ? 'old' : 'new');
      }
    }
    expect([...seen].sort()).toEqual(['later', 'new', 'old']);
  });

  it('under a mirror that remembers the old manifest gives old answers while the old files exist, and then new ones', async () => {
    await build('old', 0, 1);
    await build('new', 0, 2);
    let folder = 'old';
    const mirror = new FetchMirror((path, range) => fileServer(at(folder)).fetchFile(path, range), 3_600_000);
    const old = await ask(mirror, TARGETS[1] ?? '');
    const fresh = await ask(new FetchMirror(fileServer(at('new')).fetchFile, 0), TARGETS[0] ?? '');
    folder = 'new';
    // An answer from memory needs no file.
    expect(await ask(mirror, TARGETS[1] ?? '')).toBe(old);
    const other = new FetchMirror((path, range) => fileServer(at(folder)).fetchFile(path, range), 3_600_000);
    folder = 'old';
    await ask(other, '/runes/v1/blocks/1/activity');
    folder = 'new';
    expect(await ask(other, TARGETS[0] ?? '')).toBe(fresh);
  });
});
