/** Tests incremental builds of layout `archive`. */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { answerFromLists } from '../../src/lists/answers.ts';
import type { OpenFile } from '../../src/pages/fileAccess.ts';
import { ARCHIVE_FOLDER } from '../../src/pages/filePaths.ts';
import { type BuiltSite, siteOf } from '../../src/pages/mirrorOptions.ts';
import { type Answer, respond } from '../../src/pages/respond.ts';
import { diskFiles, MANIFEST, readArchive } from '../support/archives.ts';
import { failedBuild, RecordingLog, temporaryFolder, testBuild, tree, writeFiles } from '../support/build.ts';
import { Chain, fill } from '../support/chain.ts';
import { check, list } from '../support/outputs.ts';
import { ndjson, record } from '../support/records.ts';
import { randomFor } from '../support/seed.ts';

const work = temporaryFolder();
const at = (name: string) => join(work, name);
const site = (name: string): BuiltSite => siteOf(JSON.parse(readFileSync(join(at(name), MANIFEST), 'utf8')));
const bodyOf = async (answer: Answer<OpenFile>) =>
  answer.kind === 'page' ? answer.page.text() : answer.kind === 'window' ? answer.body : JSON.stringify(answer);

describe('an incremental build', () => {
  it('gives the files of a full build after any change of the chain, and writes only the necessary files', async () => {
    const chain = new Chain(at('growing'));
    fill(chain, randomFor('growing'), { blocks: 36, large: 60 });
    const options = { inputs: [at('growing')], layout: 'archive', objectSize: 4096, pageSizes: [4] } as const;
    const some = (n: number) => chain.heights[n] ?? 0;
    let serial = 0;
    const steps: Record<string, () => void> = {
      'the first build': () => undefined,
      'a new block': () => chain.set(chain.tip + 1, [1, 2]),
      'new blocks after gaps, a changed old block, one that no longer fits into a file, and one that does again': () => {
        chain.set(chain.tip + 4, [3]);
        chain.set(chain.tip + 40, [1]);
        chain.set(some(3), [5], { amount: 2 });
        chain.set(
          some(5),
          Array.from({ length: 70 }, () => 1),
        );
        chain.set(some(20), [1, 1]);
      },
      'blocks that are gone, one between others, and a reorganisation of one block': () => {
        for (const n of [2, 11, 12]) chain.blocks.delete(some(n));
        chain.set(some(30) - 1, [2], { fork: 5 });
        chain.reorganise(1, 1);
      },
      'a reorganisation of nine': () => chain.reorganise(9, 2),
      'a tip that goes back': () => {
        for (const height of chain.heights.slice(-6)) chain.blocks.delete(height);
      },
    };
    for (const [name, change] of Object.entries(steps)) {
      change();
      chain.write();
      const before = serial === 0 ? {} : tree(at('grown'));
      const { wasFull } = await testBuild(at('grown'), options);
      serial += 1;
      const fresh = at(`fresh-${serial}`);
      await testBuild(fresh, options);
      const after = tree(at('grown'));
      expect([name, wasFull, after]).toEqual([name, serial === 1, tree(fresh)]);
      await check(at('grown'));
      // The lists of changes must name exactly the new files and the removed files.
      const isArchived = (path: string) => path.startsWith(ARCHIVE_FOLDER);
      if (serial > 1) {
        const [added, removed] = [list(at('grown'), 'added').filter(isArchived), list(at('grown'), 'removed').filter(isArchived)];
        expect(added.sort()).toEqual(Object.keys(after).filter((path) => isArchived(path) && before[path] === undefined));
        expect(removed.sort()).toEqual(Object.keys(before).filter((path) => isArchived(path) && after[path] === undefined));
      }
      rmSync(fresh, { recursive: true });
    }
  });

  it('writes a few small files for a new block', async () => {
    const chain = new Chain(at('long'));
    for (let height = 5000; height < 5070; height += 1) chain.set(height, [1, 2]);
    const options = { inputs: [at('long')], layout: 'archive', pageSizes: [20] } as const;
    for (let height = 5070; height < 5073; height += 1) {
      chain.write();
      await testBuild(at('long-out'), options);
      // Each build adds three files: a segment of pages, the table of the newest level, and the root.
      if (height > 5070) expect(list(at('long-out'), 'added').filter((path) => path.startsWith(ARCHIVE_FOLDER)).length).toBe(3);
      chain.set(height, [1]);
    }
  });

  it('builds everything again if a file that it needs is missing, changed or cut', async () => {
    const chain = new Chain(at('needed'));
    for (let height = 100; height < 110; height += 1) chain.set(height, [1, 2]);
    chain.write();
    const options = { inputs: [at('needed')], layout: 'archive' } as const;
    await testBuild(at('sound'), options);
    chain.set(109, [1, 3]);
    chain.write();
    await testBuild(at('whole'), options);
    const { root } = readArchive(at('sound'));
    const damages: readonly (readonly [file: string | undefined, damage: (path: string) => void])[] = [
      [
        root.segments.at(-1)?.file,
        (path) => writeFileSync(path, Buffer.from(readFileSync(path).map((byte, i) => (i === 100 ? byte ^ 1 : byte)))),
      ],
      [root.ids.at(-1)?.files[0], (path) => writeFileSync(path, readFileSync(path).subarray(0, -100))],
      [site('sound').archive?.root, (path) => rmSync(path)],
    ];
    for (const [i, [file, damage]] of damages.entries()) {
      for (const ending of ['', '.cache']) cpSync(at(`sound${ending}`), at(`damaged-${i}${ending}`), { recursive: true });
      damage(join(at(`damaged-${i}`), ARCHIVE_FOLDER, `${file}.bin`));
      const log = new RecordingLog();
      const { wasFull } = await testBuild(at(`damaged-${i}`), { ...options, log });
      expect([wasFull, log.notices]).toEqual([true, [expect.stringMatching(new RegExp(`${file}[.]bin was changed .* is built again`))]]);
      expect(tree(at(`damaged-${i}`))).toEqual(tree(at('whole')));
    }
  });

  it.each([
    ['few new transactions', 400],
    ['many new transactions', 1],
  ])('refuses a transaction of an unchanged block, and accepts an id that only has the same ending: %s', async (_, old) => {
    const folder = at(`twice-${old}`);
    const id = (start: string) => `0x${start.repeat(52)}${'abcdef012345'}`;
    const of = (height: number, tx: number, txId: string) => record(height, tx, { location: { tx_id: txId, output: txId } });
    const others = Array.from({ length: old }, (_, i) => record(3, i + 1)).reverse();
    writeFiles(folder, { '1.ndjson': ndjson([of(1, 1, id('1'))]), '2.ndjson': ndjson([of(2, 1, id('2'))]), '3.ndjson': ndjson(others) });
    const options = { inputs: [folder], layout: 'archive' } as const;
    await testBuild(at(`once-${old}`), options);
    const before = tree(at(`once-${old}`));
    for (const start of ['1', '2']) {
      writeFiles(folder, { '4.ndjson': ndjson([of(4, 1, id(start))]) });
      const error = await failedBuild(at(`once-${old}`), options);
      expect([error.exitCode, error.details]).toEqual([
        2,
        [expect.stringContaining(`tx_id ${id(start).slice(2)} is in two blocks: ${start} and 4`)],
      ]);
      expect(tree(at(`once-${old}`))).toEqual(before);
    }
    writeFiles(folder, { '4.ndjson': ndjson([of(4, 1, id('3'))]) });
    expect(await testBuild(at(`once-${old}`), options)).toMatchObject({ wasFull: false });
    const files = diskFiles(at(`once-${old}`));
    for (const [start, height] of [
      ['1', 1],
      ['2', 2],
      ['3', 4],
    ] as const) {
      const answer = await respond(`/runes/v1/transactions/${id(start)}/activity`, site(`once-${old}`), files, answerFromLists);
      expect(await bodyOf(answer)).toContain(`"block_height":${height},"tx_id":"${id(start)}"`);
    }
    // The transaction may move to block 4 if block 1 is in the input without the transaction.
    writeFiles(folder, { '1.ndjson': ndjson([record(1, 1)]), '4.ndjson': ndjson([of(4, 1, id('1'))]) });
    expect(await testBuild(at(`once-${old}`), options)).toMatchObject({ wasFull: false });
    await check(at(`once-${old}`));
  });
});
