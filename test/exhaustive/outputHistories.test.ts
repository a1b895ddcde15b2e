/**
 * Makes random chains of blocks. After every change, the build has the same unspent outputs as a ledger by ord's rules,
 * and equals a full build. The variable SEED repeats a run.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DocumentWriter, documentsOf, lineOf, type StoredDocument } from '../../src/engine/archive/documentWriter.ts';
import { StoredArchive } from '../../src/engine/archive/storedArchive.ts';
import { gzipMember } from '../../src/engine/render/compress.ts';
import type { DocumentLevel } from '../../src/format/levels.ts';
import { renderRoot } from '../../src/format/root.ts';
import { crossings, LIMITS } from '../../src/limits.ts';
import { VerificationError } from '../../src/verify/findings.ts';
import { MANIFEST, putFile } from '../support/archives.ts';
import { RecordingLog, temporaryFolder, testBuild, tree } from '../support/build.ts';
import { limitsWith } from '../support/limits.ts';
import type { MemoryChain } from '../support/memoryLedger.ts';
import { changeSpent, csv, writeRows } from '../support/nodeRows.ts';
import { checkOutputs, kindsIn } from '../support/outputHistory.ts';
import { check } from '../support/outputs.ts';
import { extended, memoryOf } from '../support/runeChains.ts';
import { randomFor } from '../support/seed.ts';

const CHAINS = Number(process.env['CHAINS'] ?? 1);

/** Limits whose levels and pages a short chain fills. */
const TINY = [
  { listPage: 2, documentMember: 200, listLevels: { steps: [24, 8, 4], unsettled: 2 } },
  { listPage: 3, documentMember: 20, listLevels: { steps: [12, 4, 2], unsettled: 1 } },
  { listPage: 5, documentMember: 1000, listLevels: { steps: [40, 4], unsettled: 3 } },
];

it.each([
  ['usual limits', undefined, 150],
  ['tiny limits', TINY, 30],
] as const)(
  'with %s, unspent outputs equal the ledger after any reorganisation, and an incremental build equals a full build',
  async (name, tiny, begin) => {
    for (let number = 0; number < CHAINS; number += 1) {
      const next = randomFor(`outputs ${name} ${number}`);
      const random = (below: number) => Math.floor(next() * below);
      const work = temporaryFolder();
      const [out, input] = [join(work, 'out'), join(work, 'in')];
      const limits = tiny === undefined ? LIMITS : limitsWith(tiny[number % tiny.length] ?? {});
      const layout = random(2) === 0 ? 'files' : 'archive';
      const common = { inputs: [input], dialect: 'hiro', layout, pageSizes: [3, 6], lists: true } as const;
      const options = { ...common, objectSize: random(2) === 0 ? 4096 : 1024 * 1024, limits };
      const busy = tiny === undefined ? 4 : 12;
      let chain = extended([], begin + random(20), random, 40, busy);
      const steps = tiny === undefined ? [0, 0, 1, 3, 20, 0] : [0, 0, 1, 0, 3, 0, 6, 0, 2, 0];
      crossings.clear();
      const kinds = new Set<string>();
      const missing = () => [
        ...(tiny === undefined ? ['list'] : ['list', 'page', 'removal']).filter((kind) => !kinds.has(kind)),
        ...(tiny === undefined ? [] : (['listPage', 'documentMember', 'listLevels'] as const)).filter((limit) => !crossings.has(limit)),
      ];
      // Repeats until the chain has crossed every limit, and the archive has every kind of document.
      for (let step = 0; step < steps.length || (missing().length > 0 && step < 40); step += 1) {
        const depth = steps[step] ?? 0;
        // In some steps, blocks spend so many outputs that entire pages of lists are removed.
        const thrift = random(3) === 0 ? 2 : 40;
        if (step > 0) chain = extended(chain.slice(0, chain.length - depth), depth + 1 + random(step === 5 ? 30 : 3), random, thrift, busy);
        const memory = memoryOf(chain);
        writeRows(memory, input);
        await testBuild(out, options);
        const full = join(work, `full-${step}`);
        const { manifest } = await testBuild(full, options);
        expect(tree(out), `step ${step}`).toEqual(tree(full));
        await check(out);
        expect(manifest.lists?.outputs).toEqual({});

        await checkOutputs(out, memory, random);
        for (const kind of kindsIn(out)) kinds.add(kind);
      }
      expect(missing()).toEqual([]);
    }
  },
  600_000 * CHAINS,
);

it('spent outputs that change without a record give the same files as a full build', async () => {
  for (let number = 0; number < CHAINS; number += 1) {
    const next = randomFor(`spent ${number}`);
    const random = (below: number) => Math.floor(next() * below);
    const work = temporaryFolder();
    const [out, input] = [join(work, 'out'), join(work, 'in')];
    const options = { inputs: [input], layout: 'archive', pageSizes: [3, 6], lists: true, objectSize: 4096 } as const;
    const { rows, ledger } = memoryOf(extended([], 205 + random(20), random, 10));
    const highest = rows.at(-1)?.block_height ?? 0;
    for (const [step, depth] of [0, 3, 30, 250].entries()) {
      const changed = rows.map((row) => (row.block_height <= highest - depth ? row : changeSpent(row, random)));
      writeRows({ rows: changed, ledger }, input);
      await testBuild(out, options);
      await testBuild(join(work, `full-${step}`), options);
      expect(tree(out), `step ${step}`).toEqual(tree(join(work, `full-${step}`)));
    }
  }
}, 600_000);

describe('an archive of rows from a node', () => {
  const random = randomFor('outputs of one chain');
  const isSpent = ({ spent }: MemoryChain['rows'][number]) => spent !== null && /:bcrt1/.test(spent);
  const drawn = () => memoryOf(extended([], 40, (below) => Math.floor(random() * below), 40));
  let memory = drawn();
  while (!memory.rows.some(isSpent)) memory = drawn();
  const build = async (work: string, rows: MemoryChain['rows']) => {
    writeRows({ rows, ledger: memory.ledger }, join(work, 'in'));
    return testBuild(join(work, 'out'), { inputs: [join(work, 'in')], layout: 'archive', lists: true });
  };
  const without = <Row extends object>({ spent, ...row }: Row & { readonly spent?: unknown }) => row;

  it('without an output that is spent according to the rows does not verify', async () => {
    const work = temporaryFolder();
    const at = memory.rows.findIndex(isSpent);
    await build(
      work,
      memory.rows.map((row, i) => (i === at ? { ...row, spent: null } : row)),
    );
    await expect(check(join(work, 'out'))).rejects.toMatchObject({
      details: [expect.stringMatching(/do not add up to its balance/), expect.any(String)],
    });
  });

  it('reads the outputs that unchanged blocks spent from the input again, however deep a reorganisation is', async () => {
    const work = temporaryFolder();
    const next = randomFor('outputs of a reorganised chain');
    const draw = (below: number) => Math.floor(next() * below);
    let old = extended([], 46, draw, 40, 12);
    const isFit = ({ rows }: MemoryChain) => rows.some(({ block_height, spent }) => block_height === 24 && spent !== null);
    while (!isFit(memoryOf(old))) old = extended([], 46, draw, 40, 12);
    const limits = limitsWith({ listPage: 3, listLevels: { steps: [24, 8, 4], unsettled: 2 } });
    const log = new RecordingLog();
    const common = { inputs: [join(work, 'in')], layout: 'archive', lists: true, limits, log } as const;
    writeRows(memoryOf(old), join(work, 'in'));
    await testBuild(join(work, 'out'), common);
    // Replaces blocks of the level from block 24 on, and then of the lowest level.
    for (const height of [39, 12]) {
      writeRows(memoryOf(extended(old.slice(0, height), 46 - height, draw, 40, 12)), join(work, 'in'));
      expect((await testBuild(join(work, 'out'), common)).wasFull).toBe(false);
      expect(log.notices).toEqual([]);
      await testBuild(join(work, `full-${height}`), common);
      expect(tree(join(work, 'out'))).toEqual(tree(join(work, `full-${height}`)));
      await check(join(work, 'out'));
    }
  });

  it('with wrong documents of an address does not verify', async () => {
    const work = temporaryFolder();
    const next = randomFor('wrong lists of outputs');
    const draw = (below: number) => Math.floor(next() * below);
    const out = join(work, 'out');
    const limits = limitsWith({ listPage: 2, listLevels: { steps: [24, 8, 4], unsettled: 2 } });
    writeRows(memoryOf(extended(extended([], 60, draw, 40, 12), 5, draw, 2, 12)), join(work, 'in'));
    await testBuild(out, { inputs: [join(work, 'in')], layout: 'archive', lists: true, limits });
    await check(out);
    const archive = StoredArchive.in(out);
    const { lists } = archive.root;
    if (lists?.outputs === undefined) throw new Error('the build has outputs');
    const { outputs } = lists;
    const manifest = readFileSync(join(out, MANIFEST), 'utf8');
    const put = (content: Uint8Array) => putFile(out, content);

    /**
     * Applies `change` to documents until it changes one, and verifies the archive. `change` returns undefined to
     * remove a document.
     */
    const findingsAfter = async (kind: 'addresses' | 'starts', change: (document: StoredDocument) => StoredDocument | undefined) => {
      let isDone = false;
      const changed: DocumentLevel[] = [];
      for (const level of outputs[kind]) {
        const writer = new DocumentWriter(archive.root.objectSize, LIMITS, put);
        for (const document of documentsOf(archive, level)) {
          const other: StoredDocument | undefined = isDone ? document : change(document);
          isDone ||= other !== document;
          if (other !== undefined) writer.addLine(lineOf(other));
        }
        changed.push((await writer.finish(level))!);
      }
      expect(isDone).toBe(true);
      const root = { ...archive.root, lists: { ...lists, outputs: { ...outputs, [kind]: changed } } };
      const content = gzipMember(Buffer.from(renderRoot(root)));
      const text = manifest.replace(archive.name.root, put(content));
      writeFileSync(join(out, MANIFEST), text.replace(/("archive": \{[^}]*"bytes": )[0-9]+/, `$1${content.length}`));
      const error = await check(out).catch((caught: unknown) => caught);
      return error instanceof VerificationError ? error.details.join('\n') : 'right';
    };
    const isPage = ({ key }: StoredDocument) => / \d/.test(key);
    const hasHead = ({ key, values }: StoredDocument) => !key.includes(' ') && /^\[\d/.test(values[0] ?? '');
    const cases: [string, (document: StoredDocument) => StoredDocument | undefined][] = [
      ['a missing page', (one) => (isPage(one) ? undefined : one)],
      ['a page in another order', (one) => (isPage(one) && one.values.length > 1 ? { ...one, values: [...one.values].reverse() } : one)],
      ['a removed output less', (one) => (one.key.includes(' ~') ? undefined : one)],
      ['a wrong count', (one) => (hasHead(one) ? { ...one, values: one.values.map((value) => value.replace(/^\[\d+/, '[99')) } : one)],
    ];
    for (const [name, change] of cases)
      expect(await findingsAfter('addresses', change), name).toContain('has wrong outputs of the address bcrt1');
    const wrongStarts = await findingsAfter('starts', (one) => ({ ...one, values: [...one.values, 'x'] }));
    expect(wrongStarts).toContain('has wrong starts of pages of the address bcrt1');
  });

  it('has outputs only if all of its rows name spent outputs', async () => {
    const work = temporaryFolder();
    expect((await build(work, memory.rows)).manifest.lists?.outputs).toEqual({});
    const name = `ledger-${memory.rows.at(-1)?.block_height}.csv`;
    const [path, old] = [
      join(work, 'in', name),
      memory.rows.filter(({ block_height }) => block_height === memory.rows.at(-1)?.block_height),
    ];
    writeFileSync(path, csv(old.map(without)));
    const options = { inputs: [join(work, 'in')], layout: 'archive', lists: true } as const;
    expect((await testBuild(join(work, 'out'), options)).manifest.lists?.outputs).toBeUndefined();
    await check(join(work, 'out'));
    const again = await build(work, memory.rows);
    expect([again.wasFull, again.manifest.lists?.outputs]).toEqual([false, {}]);
    await check(join(work, 'out'));
  });
});
