/**
 * Damages every kind of file of a build: changes a byte, cuts the file, removes it, or swaps it for another. Readers give the right answer
 * or a 503, verification names the file, and the next build repairs the damage or leaves it to verification. Also forges files whose names
 * and checksums are right. The variable SEED repeats a run.
 */
import { createHash } from 'node:crypto';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DocumentWriter } from '../../../src/engine/archive/documentWriter.ts';
import { documentsOf, StoredArchive, type StoredDocument } from '../../../src/engine/archive/storedArchive.ts';
import type { DocumentLevel } from '../../../src/format/levels.ts';
import type { PlacedLevel } from '../../../src/format/listTables.ts';
import { PartCache } from '../../../src/format/partCache.ts';
import { type Root, renderRoot } from '../../../src/format/root.ts';
import { verifiedRead } from '../../../src/format/verifiedRead.ts';
import { READER_LIMITS } from '../../../src/limits.ts';
import { answerFromLists } from '../../../src/lists/answers.ts';
import { MARKER } from '../../../src/output/outputFolder.ts';
import { type Files, MissingFileError, type OpenFile } from '../../../src/pages/fileAccess.ts';
import { archiveNameOf, archivePath } from '../../../src/pages/filePaths.ts';
import { type BuiltSite, siteOf } from '../../../src/pages/mirrorOptions.ts';
import { respond } from '../../../src/pages/respond.ts';
import { FetchMirror } from '../../../src/serve/fetchHost.ts';
import { VerificationError } from '../../../src/verify/findings.ts';
import { diskFiles, fileServer, MANIFEST, putFile } from '../../support/archives.ts';
import { filesBelow, RecordingLog, type TestBuild, temporaryFolder, testBuild, tree } from '../../support/build.ts';
import { lineOf } from '../../support/documents.ts';
import { limitsWith } from '../../support/limits.ts';
import { writeRows } from '../../support/nodeRows.ts';
import { check } from '../../support/outputs.ts';
import { readsOf } from '../../support/rounds.ts';
import { extended, memoryOf } from '../../support/runeChains.ts';
import { randomFor } from '../../support/seed.ts';
import { startServer } from '../../support/server.ts';

const work = temporaryFolder();
const at = (name: string) => join(work, name);
const next = randomFor('damage');
const random = (below: number) => Math.floor(next() * below);

/** The limits give every list several levels, and long lists pages. */
const LEVELS = { listLevels: { steps: [24, 8, 4], unsettled: 2 }, tableLevels: { steps: [24, 8], unsettled: 2 } };
const limits = limitsWith({ listPage: 2, documentMember: 200, segmentBlocks: 8, changesBlocks: 6, changesEntries: 3, ...LEVELS });
const BUILDS = {
  /** Tables and blocks have several files. */
  small: { layout: 'archive', objectSize: 4096 },
  /** Few files, which are read in ranges. */
  ranges: { layout: 'archive', objectSize: 2 * 1024 * 1024 },
  files: { layout: 'files', objectSize: 128 * 1024 },
} as const satisfies Record<string, Partial<TestBuild>>;
type Name = keyof typeof BUILDS;
const NAMES = Object.keys(BUILDS) as Name[];
const build = (name: Name, out: string, more: Partial<TestBuild> = {}) =>
  testBuild(at(out), { inputs: [at('in')], lists: true, pageSizes: [2, 7], limits, ...BUILDS[name], ...more });

const chain = extended([], 60, random, 10, 5);
const memory = memoryOf(chain);
const targets: string[] = [];
const later = memoryOf(extended(chain.slice(0, 59), 8, random, 10, 5));
const readerLimits = { ...READER_LIMITS };

beforeAll(async () => {
  // Makes readers request ranges even of small files, because the builds have no large files.
  Object.assign(READER_LIMITS, { smallFile: 0 });
  writeRows(memory, at('in'));
  writeRows(later, at('later'));
  for (const name of NAMES) await build(name, name);
  const some = <T>(items: readonly T[], count: number) => Array.from({ length: count }, () => items[random(items.length)] as T);
  const { rows, ledger } = memory;
  const runes = some([...ledger.byId.values()], 4).map(({ row }) => row);
  const addresses = [...new Set(rows.flatMap(({ address }) => address ?? []))];
  const received = rows.filter(({ operation }) => operation === 'receive').map((row) => `${row.tx_id}:${row.output}`);
  targets.push(
    ...some(rows, 5).flatMap(({ tx_id, block_hash, block_height: height }) => [
      `transactions/0x${tx_id}/activity`,
      `blocks/0x${block_hash}/activity?limit=7&offset=5`,
      `blocks/${height}/activity?operation_type=send`,
    ]),
    ...['?limit=7', '?limit=7&offset=33', '?limit=3&offset=2', '/0', '/NOSUCHRUNE', '/1:0'].map((rest) => `etchings${rest}`),
    ...runes.flatMap(({ id, name, number }) => [
      ...[id, number, name].flatMap((rune) => [`etchings/${rune}`, `etchings/${rune}/activity?limit=7`]),
      `etchings/${id}/activity/${addresses[0]}`,
      `etchings/${name}/holders?limit=7`,
      ...addresses.map((address) => `etchings/${number}/holders/${address}`),
    ]),
    ...addresses.flatMap((address) =>
      ['activity?limit=7&offset=3', 'balances?limit=7', 'outputs?limit=7', 'outputs?limit=7&offset=8'].map(
        (list) => `addresses/${address}/${list}`,
      ),
    ),
    // Some answer needs the last segment, also in layout `files`, in which only lists do.
    `etchings/${rows.at(-1)?.rune_id}/activity?limit=7`,
    ...[
      'addresses/nobody/activity',
      'addresses/nobody/balances',
      'etchings/NOSUCHRUNE/holders',
      `transactions/0x${'0'.repeat(64)}/activity`,
    ],
    ...[...some(received, 8), ...some([...ledger.outputs.keys()], 8)].map((outpoint) => `outputs/${outpoint}`),
  );
});
afterAll(() => {
  Object.assign(READER_LIMITS, readerLimits);
});

const siteAt = (name: string): BuiltSite => siteOf(JSON.parse(readFileSync(join(at(name), MANIFEST), 'utf8')));
const findingsOf = (name: string): Promise<readonly string[]> =>
  check(at(name)).then(
    () => [],
    (error: unknown) => {
      if (error instanceof VerificationError) return error.details;
      throw error;
    },
  );

/** Returns the paths of a build by kind. A kind of an archive's files is its place in the root. */
function kindsOf(name: string): Map<string, string[]> {
  const out = at(name);
  const { root, name: rootName } = StoredArchive.in(out);
  const kinds = new Map<string, string[]>([['root', [archivePath(rootName.root)]]]);
  const add = (kind: string, path: string) => kinds.set(kind, [...(kinds.get(kind) ?? []), path]);
  const search = (part: unknown, kind: string): void => {
    if (typeof part === 'string' && /^[0-9a-f]{64}$/.test(part) && !kind.includes('ash') && !kind.includes('igest'))
      add(kind, archivePath(part));
    if (typeof part !== 'object' || part === null) return;
    for (const [key, value] of Object.entries(part))
      search(value, Array.isArray(part) || /^(?:files?|levels)$/.test(key) ? kind : `${kind}.${key}`);
  };
  search(root, 'archive');
  for (const path of filesBelow(out).filter((path) => !path.startsWith('archive/')))
    add(/^runes\/v1|^[.]|^rows/.test(path) ? path.replace(/0x[0-9a-f]+|[0-9]+(?=[./])/g, 'N') : 'site', path);
  return kinds;
}

type Damage = (content: Buffer, other: Buffer) => Buffer | undefined;
/** Draws a damage for each mode, a missing file first. Applied again, it gives the same bytes. */
function damages(): Record<string, Damage> {
  const [place, bits] = [next(), 1 + random(255)];
  const where = (content: Buffer) => Math.floor(place * content.length);
  return {
    missing: () => undefined,
    flipped: (content) => {
      const copy = Buffer.from(content);
      copy[where(content)] = (copy[where(content)] ?? 0) ^ bits;
      return copy;
    },
    cut: (content) => content.subarray(0, where(content)),
    swapped: (_, other) => other,
  };
}

/** Replaces or removes a file. It gets a new inode, because blocks have hard links by height and by hash. */
function replaceFile(file: string, content: Buffer | undefined): void {
  rmSync(file, { force: true });
  if (content !== undefined) writeFileSync(file, content);
}

/**
 * Returns functions that ask for answers from damaged files: like a fetch host, like the local server, and like a client that verifies what
 * it reads.
 */
function readers(name: string, change: (path: string, content: Buffer) => Buffer | undefined) {
  const { fetchFile } = fileServer(at(name), change);
  const mirror = new FetchMirror(fetchFile, Number.POSITIVE_INFINITY);
  const [built, tails] = [siteAt(name), new PartCache()];
  const read: Files<OpenFile>['read'] = async (path, offset, length) => {
    const content = change(path, readFileSync(join(at(name), path)));
    return content === undefined || content.length < offset + length ? undefined : content.subarray(offset, offset + length);
  };
  const digest = async (part: Uint8Array) => createHash('sha256').update(part).digest();
  const verified = verifiedRead((file, ...part) => read(archivePath(file), ...part), digest, tails);
  const fromFiles = (files: Files<OpenFile>) => {
    const cache = new PartCache();
    return async (target: string) => {
      try {
        const answer = await respond(`/runes/v1/${target}`, built, files, answerFromLists, cache);
        if (answer.kind === 'page') return `200 ${await answer.page.text()}`;
        if (answer.kind !== 'window') return answer.kind;
        if (answer.gzip !== undefined) expect(gunzipSync(answer.gzip).toString()).toBe(answer.body);
        return `200 ${answer.body}`;
      } catch (error) {
        if (error instanceof MissingFileError) return '503';
        throw error;
      }
    };
  };
  return [
    async (target: string) => {
      const response = await mirror.answer(new Request(`http://127.0.0.1/runes/v1/${target}`));
      return response?.status === 503 ? '503' : `${response?.status} ${await response?.text()}`;
    },
    fromFiles({ ...diskFiles(at(name)), read }),
    fromFiles({ ...diskFiles(at(name)), read: (path, ...part) => verified(archiveNameOf(path) ?? '', ...part) }),
  ] as const;
}
const answersOf = async (ask: (target: string) => Promise<string>, from = targets) => {
  const answers: string[] = [];
  for (const target of from) answers.push(await ask(target));
  return answers;
};

describe.each(NAMES)('a build, %s', (name) => {
  it('answers from few rounds of reads: three after the manifest and the root, or four for activity by name', async () => {
    for (const target of targets) {
      const { rounds } = await readsOf(`/runes/v1/${target}`, siteAt(name), at(name));
      // A spent output takes the rounds of outputs, then those of a transaction.
      const usual = /^etchings\/[^:/]+\/activity/.test(target) ? 4 : target.startsWith('outputs/') ? 5 : 3;
      // The directories of small files may take up to two more rounds. In layout `files`, the root of the lists is not in memory yet, and
      // reading it takes one more round.
      const most = usual + { small: 2, ranges: 0, files: 1 }[name];
      expect([target, rounds, rounds <= most]).toEqual([target, rounds, true]);
    }
  });

  it('with a damaged file of the archive gives right answers or a 503', async () => {
    const expected = await Promise.all(readers(name, (_, content) => content).map((ask) => answersOf(ask)));
    for (const [kind, paths] of kindsOf(name)) {
      if (!paths[0]?.startsWith('archive/')) continue;
      const refused = new Set<string>();
      for (const path of [...new Set([paths[0], paths[random(paths.length)] ?? '', paths.at(-1) ?? ''])]) {
        const other = readFileSync(join(at(name), paths.find((one) => one !== path) ?? MANIFEST));
        // Answers that do not need the file are the same with any damage of it, so few of them are asked again.
        let asked = [...targets.keys()];
        for (const [mode, damage] of Object.entries(damages())) {
          const i = random(3);
          const ask = readers(name, (read, content) => (read === path ? damage(content, other) : content))[i];
          const needing: number[] = [];
          for (const n of asked) {
            const answer = await ask?.(targets[n] ?? '');
            if (answer === '503') needing.push(n);
            else expect(answer, `${targets[n]} with ${kind} ${mode}: ${path}`).toBe(expected[i]?.[n]);
          }
          if (needing.length > 0) refused.add(mode);
          if (mode === 'missing') asked = [...needing, ...Array.from({ length: 10 }, () => random(targets.length))];
        }
      }
      // A changed byte may be one that no answer needs. Only clients read the names of all runes, and only very long lists of outputs read
      // their starts.
      if (!/[.](?:runes|starts)$/.test(kind)) expect([kind, [...refused]]).toEqual([kind, expect.arrayContaining(['missing', 'swapped'])]);
    }
  });

  it.skipIf(name === 'small')('does not verify with damaged files, which the findings name', async () => {
    // Damages a file of half of the kinds, because many damages take a verification each.
    const half = random(2);
    const isOwn = (path: string) => path === MARKER || path === MANIFEST;
    const damaged = new Map<string, { readonly before: Buffer; readonly what: string }>();
    for (const [i, [kind, paths]] of [...kindsOf(name)].entries()) {
      if (i % 2 === half) continue;
      const modes = Object.entries(damages());
      // A swapped root is a wrong file of the same name, like a changed one.
      const [mode = '', damage = () => undefined] = modes[random(paths.length === 1 ? 3 : 4)] ?? [];
      const path = paths[random(paths.length)] ?? '';
      // A folder without both of these files is refused.
      if (isOwn(path) && [...damaged.keys()].some(isOwn)) continue;
      const before = readFileSync(join(at(name), path));
      const after = damage(before, readFileSync(join(at(name), paths.find((one) => one !== path) ?? path)));
      if (after?.equals(before)) continue;
      replaceFile(join(at(name), path), after);
      damaged.set(path, { before, what: `${kind} ${mode}` });
    }
    // Findings about files that others follow from hide findings about these others.
    while (damaged.size > 0) {
      const found = await findingsOf(name);
      const named = [...damaged].filter(([path]) => found.some((finding) => finding.includes(path)));
      expect(named, [...damaged.values()].map(({ what }) => what).join()).not.toEqual([]);
      for (const [path, { before }] of named) {
        replaceFile(join(at(name), path), before);
        damaged.delete(path);
      }
    }
    expect(await findingsOf(name)).toEqual([]);
  });
});

const copy = (from: string, to: string) => {
  for (const ending of ['', '.cache']) {
    rmSync(at(to) + ending, { recursive: true, force: true });
    cpSync(at(from) + ending, at(to) + ending, { recursive: true });
  }
};

describe('the next build', () => {
  let expected: Record<string, string>;
  beforeAll(async () => {
    await build('ranges', 'fresh', { inputs: [at('later')] });
    expected = tree(at('fresh'));
  });

  it('builds everything again if it needs a damaged file, and otherwise leaves the damage to verification and --full', async () => {
    const repaired: string[] = [];
    // Draws a third of the kinds, because each takes up to three builds.
    const third = random(3);
    for (const [i, [kind, paths]] of [...kindsOf('ranges')].filter(([, [path]]) => path?.startsWith('archive/')).entries()) {
      if (i % 3 !== third) continue;
      copy('ranges', 'next');
      const [mode = '', damage = () => undefined] = Object.entries(damages())[random(3)] ?? [];
      for (const path of paths) {
        const changed = damage(readFileSync(join(at('next'), path)), Buffer.alloc(0));
        rmSync(join(at('next'), path));
        if (changed !== undefined) writeFileSync(join(at('next'), path), changed);
      }
      const log = new RecordingLog();
      const { wasFull } = await build('ranges', 'next', { inputs: [at('later')], log });
      if (wasFull) {
        repaired.push(kind);
        const names = paths.map((path) => basename(path, '.bin')).join('|');
        expect(log.notices).toEqual([expect.stringMatching(new RegExp(`(?:${names}).*; everything is built again`))]);
      } else if (JSON.stringify(tree(at('next'))) !== JSON.stringify(expected)) {
        expect((await findingsOf('next')).filter((finding) => paths.some((path) => finding.includes(path)))).not.toEqual([]);
        await build('ranges', 'next', { inputs: [at('later')], full: true });
      }
      expect([kind, mode, tree(at('next'))]).toEqual([kind, mode, expected]);
    }
    console.log(repaired);
  });

  it('gives the files of a full build if the cache is damaged inside, at any place', async () => {
    let moved = 0;
    for (let i = 0; i < 2 || (moved === 0 && i < 8); i += 1) {
      copy('ranges', 'next');
      const file = join(`${at('next')}.cache`, 'state.duckdb');
      const damaged = readFileSync(file);
      const place = random(damaged.length);
      writeFileSync(file, damaged.fill(0xa5, place, Math.min(place + 600, damaged.length)));
      const log = new RecordingLog();
      await build('ranges', 'next', { inputs: [at('later')], log });
      expect(tree(at('next'))).toEqual(expected);
      if (log.notices.some((notice) => notice.startsWith('the cache is damaged'))) moved += 1;
    }
    expect(moved).toBeGreaterThan(0);
  });
});

/** Copies a build with another root. The names and checksums of all files are right. */
async function forge(name: Name, change: (root: Root) => Root | Promise<Root>): Promise<string> {
  const forged = `forged ${name}`;
  copy(name, forged);
  const content = gzipSync(renderRoot(await change(StoredArchive.in(at(name)).root)));
  const manifest = JSON.parse(readFileSync(join(at(forged), MANIFEST), 'utf8')) as object;
  const changed = {
    ...manifest,
    [name === 'files' ? 'list_root' : 'archive']: { root: putFile(at(forged), content), bytes: content.length },
  };
  writeFileSync(join(at(forged), MANIFEST), `${JSON.stringify(changed, null, 2)}\n`);
  return forged;
}

/** Writes the documents of a level again, changed, for `forge`. */
async function changedDocuments<T extends DocumentLevel>(level: T, change: (documents: StoredDocument[]) => StoredDocument[]): Promise<T> {
  const archive = StoredArchive.in(at('ranges'));
  const writer = new DocumentWriter(
    archive.root.objectSize,
    limits,
    (parts) => putFile(at('forged ranges'), Buffer.concat(parts)),
    level.files[0]?.members !== undefined,
  );
  const changed = change([...documentsOf(archive, level)]).sort((a, b) => (a.key < b.key ? -1 : 1));
  for (const document of changed) writer.addLines(lineOf(document));
  return { ...level, ...(await writer.finish(level)) };
}

describe('verification finds', () => {
  type Lists = NonNullable<Root['lists']>;
  const inLists = (change: (lists: Lists) => Partial<Lists>) => (root: Root) => ({
    ...root,
    lists: root.lists && { ...root.lists, ...change(root.lists) },
  });
  const inActivity = (change: (level: PlacedLevel) => PlacedLevel | Promise<PlacedLevel>) => async (root: Root) => {
    const [lowest, ...others] = root.lists?.activity ?? [];
    if (lowest === undefined) return root;
    const changed = await change(lowest);
    return inLists(() => ({ activity: [changed, ...others] }))(root);
  };
  /** Changes the first document of the lowest level of activity that `is` accepts. */
  const inDocument = (is: (document: StoredDocument) => boolean, change: (document: StoredDocument) => StoredDocument[]) =>
    inActivity((level) =>
      changedDocuments(level, (documents) => {
        const found = documents.find(is);
        expect(found).toBeDefined();
        return documents.flatMap((one) => (one === found ? change(one) : one));
      }),
    );
  const isLong = ({ key, values }: StoredDocument) =>
    key.endsWith('!') && values.length > 1 && values.every((value) => value.includes('.'));
  const isHead = ({ values: [only = ''] }: StoredDocument) => /^[0-9]+$/.test(only);
  const inIds = (change: (documents: StoredDocument[]) => StoredDocument[]) => async (root: Root) => {
    const [lowest, ...others] = root.ids;
    return lowest === undefined ? root : { ...root, ids: [await changedDocuments(lowest, change), ...others] };
  };
  const differing = (what: string) =>
    new RegExp(`^archive/[0-9a-f]+\\.bin has wrong ${what} with the key [0-9a-f]+ in the blocks [0-9]+ to [0-9]+$`);
  const [IDS, ACTIVITY] = [differing('ids'), differing('lists of activity')];
  const forgeries: [ids: string, (root: Root) => Promise<Root>, activity: string, (root: Root) => Promise<Root>][] = [
    [
      'swapped ids',
      inIds(([a, b, ...all]) => (a && b ? [{ ...a, values: b.values }, { ...b, values: a.values }, ...all] : [])),
      'swapped pointers',
      inDocument(isLong, ({ key, values }) => [{ key, values: [...values].reverse() }]),
    ],
    [
      'a missing id',
      inIds((all) => all.slice(1)),
      'a pointer to another record',
      inDocument(isLong, ({ key, values }) => [
        { key, values: values.map((one) => one.replace(/.$/, (last) => (last === '0' ? '1' : '0'))) },
      ]),
    ],
    [
      'an id with another key',
      inIds(([a, ...all]) => (a ? [{ ...a, key: a.key.replace(/.!$/, 'g!') }, ...all] : [])),
      'a list that is too short',
      inDocument(isLong, ({ key, values }) => [{ key, values: values.slice(1) }]),
    ],
    [
      'an id of another block',
      inIds((all) => all.map(({ key, values }) => ({ key, values: values.map((one) => `1${one}`) }))),
      'a list with another key',
      inDocument(isLong, ({ key, values }) => [{ key: key.replace(/.!$/, 'g!'), values }]),
    ],
    [
      'an id that is no entry',
      inIds((all) => all.map(({ key }) => ({ key, values: ['x'] }))),
      'a list without its first page',
      inDocument(
        ({ key }) => key.endsWith(' 00000000'),
        () => [],
      ),
    ],
  ];
  it.each(forgeries.map(([ids, ofIds, activity, ofActivity]) => [ids, activity, ofIds, ofActivity] as const))(
    '%s, and %s',
    async (_, __, ids, activity) => {
      const found = await findingsOf(await forge('ranges', async (root) => activity(await ids(root))));
      for (const finding of [IDS, ACTIVITY]) expect(found).toContainEqual(expect.stringMatching(finding));
    },
  );

  it.each<[string, (root: Root) => Root | Promise<Root>, RegExp[], Name?]>([
    [
      'a long list without its head, and a missing level of holders',
      async (root) =>
        inLists(({ balances }) => ({ balances: balances && { ...balances, holders: balances.holders.slice(1) } }))(
          await inDocument(isHead, () => [])(root),
        ),
      [ACTIVITY, /has wrong holders of the rune/],
    ],
    [
      'a long list with another length',
      inDocument(isHead, ({ key, values }) => [{ key, values: [`${Number(values[0]) + 1}`] }]),
      [ACTIVITY],
    ],
    [
      'another begin of a level, and an unbalanced rune',
      async (root) =>
        inLists(({ balances }) => ({ balances: balances && { ...balances, unbalanced: { runes: ['1:0'], more: 0 } } }))(
          await inActivity((level) => ({ ...level, begin: level.begin + 1 }))(root),
        ),
      [/has other activity than a build makes/, /has other balances than a build makes/],
    ],
    ['another highest block', inLists(({ tip }) => ({ tip: tip + 1 })), [/is missing or damaged/]],
    [
      'another lowest block',
      inLists(({ lowest = 0 }) => ({ lowest: lowest - 1 })),
      [/is missing or damaged|has other lowest than/],
      'files',
    ],
    ['no lowest block', inLists(() => ({ lowest: undefined })), [/is missing or damaged/], 'files'],
    ['missing balances', inLists(() => ({ balances: undefined })), [/differ in whether there are balances/]],
  ])('%s', async (_, change, findings, name = 'ranges') => {
    const found = await findingsOf(await forge(name, change));
    for (const finding of findings) expect(found).toContainEqual(expect.stringMatching(finding));
  });

  it('a document with another value, a missing document, and documents of another order in each list', async () => {
    const archive = StoredArchive.in(at('ranges'));
    const { etchings, balances, outputs } = archive.root.lists ?? {};
    if (etchings === undefined || balances === undefined || outputs === undefined) throw new Error('the build lacks lists');
    type Whole = { readonly [list in 'etchings' | 'balances' | 'outputs']: NonNullable<Lists[list]> };
    const lists: [string, readonly DocumentLevel[], (all: Whole, levels: readonly DocumentLevel[]) => Partial<Whole>, RegExp][] = [
      ['etchings', etchings.levels, (all, levels) => ({ etchings: { ...all.etchings, levels } }), /etching/],
      ['names of all runes', etchings.runes, (all, runes) => ({ etchings: { ...all.etchings, runes } }), /names of the rune/],
      ['balances', balances.addresses, (all, addresses) => ({ balances: { ...all.balances, addresses } }), /balances of the address/],
      ['holders', balances.holders, (all, holders) => ({ balances: { ...all.balances, holders } }), /holders of the rune/],
      ['outputs', outputs.outputs, (all, levels) => ({ outputs: { ...all.outputs, outputs: levels } }), /the output|add up|units/],
      [
        'outputs of addresses',
        outputs.addresses,
        (all, addresses) => ({ outputs: { ...all.outputs, addresses } }),
        /outputs of the address/,
      ],
      ['starts', outputs.starts, (all, starts) => ({ outputs: { ...all.outputs, starts } }), /starts of pages/],
    ];
    // Records do not have all data of an etching, but the numbers of its supply follow from records.
    const otherDigit = (value: string) =>
      value.replace(/(?:"burned":"|[0-9](?=[^0-9]*$))/, (found) =>
        found.startsWith('"') ? `${found}1` : String((Number(found) + 1) % 10),
      );
    const changes: [string, (document: StoredDocument) => StoredDocument | undefined][] = [
      ['missing', () => undefined],
      ['other', ({ key, values }) => ({ key, values: [...values.slice(0, -1), otherDigit(values.at(-1) ?? '')] })],
      ['reversed', ({ key, values }) => ({ key, values: [...values].reverse() })],
    ];
    // Draws one change of each list.
    const forgeries = new Map<string, { what: unknown; finding: RegExp; forged: (all: Whole) => Promise<Partial<Whole>> }>();
    for (const [list, levels, put, finding] of lists) {
      const first = random(changes.length);
      for (const [name, change] of [...changes.slice(first), ...changes.slice(0, first)]) {
        // A level without documents would not exist.
        const long = levels.filter((one) => [...documentsOf(archive, one)].length > 1);
        const level = long[random(long.length)];
        const documents = level === undefined ? [] : [...documentsOf(archive, level)];
        const fitting = documents.filter((one) => JSON.stringify(change(one)) !== JSON.stringify(one));
        if (level === undefined || fitting.length === 0) continue;
        const chosen = fitting[random(fitting.length)];
        const forged = async (all: Whole) => {
          const written = await changedDocuments(level, () => documents.flatMap((one) => (one === chosen ? (change(one) ?? []) : one)));
          return put(
            all,
            levels.map((one) => (one === level ? written : one)),
          );
        };
        forgeries.set(list, { what: [list, name, chosen], finding, forged });
        break;
      }
    }
    // Findings about etchings and outputs hide findings about lists that follow from them.
    while (forgeries.size > 0) {
      const copied = await forge('ranges', async (root) => {
        let all: Whole = { etchings, balances, outputs };
        for (const { forged } of forgeries.values()) all = { ...all, ...(await forged(all)) };
        return inLists(() => all)(root);
      });
      const found = await findingsOf(copied);
      const named = [...forgeries].filter(([, { finding }]) => found.some((one) => finding.test(one)));
      expect(named, JSON.stringify([[...forgeries.values()].map(({ what }) => what), found])).not.toEqual([]);
      for (const [list] of named) forgeries.delete(list);
    }
  });
});

describe('a reader', () => {
  it('refuses files with right checksums and wrong content: a segment of other blocks, a pointer to another list', async () => {
    const { segments } = StoredArchive.in(at('ranges')).root;
    const [a, b] = [segments[1]?.file, segments[2]?.file];
    const content = (file: string | undefined) => readFileSync(join(at('ranges'), archivePath(file ?? '')));
    const [fetched] = readers('ranges', (path, whole) =>
      path === archivePath(a ?? '') ? content(b) : path === archivePath(b ?? '') ? content(a) : whole,
    );
    expect(await fetched(`blocks/${segments[1]?.first}/activity`)).toBe('503');
    const otherRecords = ({ key, values }: StoredDocument) => ({ key, values: values.map((one) => one.replace(/[.][0-9]+$/, '.1')) });
    const wrong = await forge('ranges', async (root) => {
      const activity = await Promise.all(
        (root.lists?.activity ?? []).map((level) => changedDocuments(level, (all) => all.map(otherRecords))),
      );
      return { ...root, lists: root.lists && { ...root.lists, activity } };
    });
    const [ask] = readers(wrong, (_, whole) => whole);
    const answers = await answersOf(
      ask,
      targets.filter((target) => target.includes('/activity')),
    );
    expect(answers).toContain('503');
  });

  it('asks for a missing file again each time, and answers other requests from memory', async () => {
    const { segments } = StoredArchive.in(at('small')).root;
    const [lost = '', other = ''] = [segments[0], segments.at(-1)].map((segment) => archivePath(segment?.file ?? ''));
    const { fetchFile, asked } = fileServer(at('small'), (path, content) => (path === lost ? undefined : content));
    const mirror = new FetchMirror(fetchFile, 3_600_000);
    const statusOf = async (height = 0) => (await mirror.answer(new Request(`http://host/runes/v1/blocks/${height}/activity`)))?.status;
    for (let i = 0; i < 5; i += 1) expect([await statusOf(segments[0]?.first), await statusOf(segments.at(-1)?.last)]).toEqual([503, 200]);
    // Before each 503, the reader fetches the manifest and the file once more, because a new build may have replaced them.
    expect([MANIFEST, lost, other].map((path) => asked.filter((read) => read.path === path).length)).toEqual([6, 10, 1]);
  });

  it('refuses a root that fills memory when it is inflated', async () => {
    const bomb = gzipSync(Buffer.alloc(65 * 1024 * 1024));
    const manifest = readFileSync(join(at('small'), MANIFEST), 'utf8').replace(/"bytes": [0-9]+/, `"bytes": ${bomb.length}`);
    const root = archivePath(siteAt('small').archive?.root ?? '');
    const [ask] = readers('small', (path, content) => (path === MANIFEST ? Buffer.from(manifest) : path === root ? bomb : content));
    expect(await ask('blocks/5/activity')).toBe('503');
  });

  it('answers from a repaired file, also if it is a server that has the file open', async () => {
    copy('ranges', 'repaired');
    const counts = new Map<number, number>();
    for (const { block_height: height } of memory.rows) counts.set(height, (counts.get(height) ?? 0) + 1);
    const [block = 0, records] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? [];
    expect(records).toBeGreaterThan(7);
    const segment = StoredArchive.in(at('repaired')).root.segments.find(({ first, last }) => first <= block && block <= last);
    const path = join(at('repaired'), archivePath(segment?.file ?? ''));
    const host = await startServer(at('repaired'));
    const answer = async (offset: number) => {
      const { status, body } = await host.send('GET', `/runes/v1/blocks/${block}/activity?limit=7&offset=${offset}`);
      return status === 503 ? '503' : body;
    };
    // The first answer stays in memory, so the requests below use another window.
    await answer(0);
    const bytes = readFileSync(path);
    const { bytes: size = 0, directory = 0 } = segment ?? {};
    writeFileSync(path, Buffer.concat([Buffer.alloc(size - directory), bytes.subarray(size - directory)]));
    expect(await answer(1)).toBe('503');
    await build('ranges', 'repaired', { full: true });
    const [right] = readers('ranges', (_, content) => content);
    expect(`200 ${await answer(1)}`).toBe(await right(`blocks/${block}/activity?limit=7&offset=1`));
    await host.close();
  });
});
