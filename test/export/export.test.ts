/** Tests the command `export`. Compares the files of complete lists with the API and with an independent model of the chain. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { decimal } from '../rehearsal/model/model.ts';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { endOf, run, start } from '../support/cli.ts';
import { limitsWith } from '../support/limits.ts';
import { writeRows } from '../support/nodeRows.ts';
import { airdrop, extendedBy, modelOf } from '../support/outputStates.ts';
import { startPlainFiles } from '../support/plainFiles.ts';
import { extended, memoryOf } from '../support/runeChains.ts';
import { integersFor } from '../support/seed.ts';
import { startServer } from '../support/server.ts';

const random = integersFor('exports');
/** Height of the block that gives units of a new rune to many outputs, which have 8 different addresses. */
const AIRDROP = 50;
const CHAIN = extended(extendedBy(extended([], AIRDROP, random, 6), [airdrop(20)], random), 20, random, 6);
const MODEL = modelOf(CHAIN);
const TIP = memoryOf(CHAIN).rows.at(-1)?.block_height ?? -1;
/** Limits with which the lists have several pages, and some lists of holders have only the state after an older block. */
const limits = limitsWith({ listPage: 3, listLevels: { steps: [40, 20, 4], unsettled: 2 } });
const work = temporaryFolder();
const BUILDS = [
  ['archive', 'contract'],
  ['files', 'hiro'],
] as const;
const folderOf = (layout: string) => join(work, layout);
/** The rune with the most holders after the airdrop, then the other runes by their number of holders. */
const [WIDEST, ...OTHERS] = [...MODEL.etchings()].sort((a, b) => MODEL.holders(b, AIRDROP).length - MODEL.holders(a, AIRDROP).length);
if (WIDEST === undefined) throw new Error('the chain has no runes');
const RUNES = [WIDEST, ...OTHERS.slice(0, 3)];
const ADDRESSES = [...MODEL.addresses()].slice(0, 2);

beforeAll(async () => {
  writeRows(memoryOf(CHAIN), join(work, 'in'));
  for (const [layout, dialect] of BUILDS)
    await testBuild(folderOf(layout), { inputs: [join(work, 'in')], layout, dialect, lists: true, limits });
  await testBuild(join(work, 'window'), { inputs: [SAMPLE_INPUT], layout: 'archive' });
});

let files = 0;
/** Exports to a new file. Returns the lines of the file, and what the command logs about it. */
async function exported(args: readonly string[]): Promise<{ lines: string[]; about: Record<string, unknown>; stderr: string }> {
  files += 1;
  const out = join(work, `list-${files}`);
  const { code, stdout, stderr } = await run('export', [...args, '--out', out, '--log', 'json'], work);
  expect([args.includes('--mirror') ? '' : stderr, code]).toEqual(['', 0]);
  const about = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Record<string, unknown>;
  expect(about).toMatchObject({ event: 'exported', file: out });
  const lines = readFileSync(out, 'utf8').split('\r\n');
  expect(lines.at(-1)).toBe('');
  return { lines: lines.slice(1, -1), about, stderr };
}

const holdersOf = (rune: (typeof RUNES)[number], height: number) =>
  MODEL.holders(rune, height).map(({ address, amount }) => `${address},${decimal(amount, rune.divisibility)}`);

describe.each(BUILDS)('from layout %s in dialect %s', (layout) => {
  const dir = ['--dir', folderOf(layout)];

  it('has the holders after any block, equal to the model', async () => {
    let found = 0;
    const server = await startServer(folderOf(layout));
    const unitsOf = (amount = '') => BigInt(amount.replace('.', ''));
    let rests = 0;
    for (const rune of RUNES) {
      const { current } = JSON.parse((await server.send('GET', `/runes/v1/etchings/${rune.id}`)).body).supply as { current: string };
      for (const height of [TIP, AIRDROP, AIRDROP - 1, random(TIP)]) {
        const { lines, about } = await exported(['holders', rune.id, '--height', String(height), ...dir]);
        expect([rune.id, height, lines]).toEqual([rune.id, height, holdersOf(rune, height)]);
        expect(about).toMatchObject({ list: 'holders', height, rows: lines.length, tip: { height: TIP, hash: CHAIN[TIP]?.hash } });
        found += lines.length;
        const held = lines.reduce((sum, line) => sum + unitsOf(line.split(',')[1]), 0n);
        const rest = about['without_address'] as string | undefined;
        expect(rest && unitsOf(rest)).toBe(height === TIP ? unitsOf(current) - held : undefined);
        if (rest !== undefined) rests += 1;
      }
      const { lines, about } = await exported(['holders', String(rune.number), ...dir]);
      expect(lines).toEqual(holdersOf(rune, Number(about['height'])));
    }
    await server.close();
    expect(found).toBeGreaterThan(8);
    expect(rests).toBeGreaterThanOrEqual(RUNES.length);
  });

  it('has balances, outputs and activity, equal to the model and the API', async () => {
    const server = await startServer(folderOf(layout));
    try {
      for (const address of ADDRESSES) {
        const named = MODEL.balances(address).map(({ rune, amount }) => [rune.id, decimal(amount, rune.divisibility)]);
        const { lines, about } = await exported(['balances', address, ...dir]);
        expect(lines.map((line) => [line.split(',')[1], line.split(',').at(-1)])).toEqual(named);
        expect(about).toMatchObject({ list: 'balances', height: TIP });
        const outputs = await exported(['outputs', address, ...dir]);
        const held = MODEL.outputsOf(address).flatMap(({ outpoint, held: all }) => all.map(({ rune }) => [outpoint, rune.id]));
        expect(outputs.lines.map((line) => [line.split(',')[0]?.replace('0x', ''), line.split(',')[7]])).toEqual(held);
      }
      for (const [subject, path, from] of [
        [WIDEST.id, `etchings/${WIDEST.id}`, 3],
        [ADDRESSES[0] ?? '', `addresses/${ADDRESSES[0]}`, 7],
      ] as const) {
        const { lines } = await exported(['activity', subject, ...dir]);
        const pages: { operation: string; location: { tx_id: string } }[][] = [];
        for (let offset = 0; offset === 0 || pages.at(-1)?.length === 7; offset += 7) {
          const { body } = await server.send('GET', `/runes/v1/${path}/activity?limit=7&offset=${offset}`);
          pages.push((JSON.parse(body) as { results: (typeof pages)[number] }).results);
        }
        const told = pages.flat().map(({ operation, location }) => [operation, location.tx_id]);
        expect(told.length).toBeGreaterThan(7);
        expect(lines.map((line) => [line.split(',')[from], line.split(',')[from + 3]])).toEqual(told);
      }
    } finally {
      await server.close();
    }
  });

  it('has all runes, newest first', async () => {
    const { lines, about } = await exported(['runes', ...dir]);
    const named = lines.map((line) => line.split(',').slice(0, 4));
    expect(named).toEqual(MODEL.etchings().map(({ id, number, letters, spacedName }) => [id, String(number), letters, spacedName]));
    expect(about).toMatchObject({ list: 'runes', height: TIP, rows: lines.length });
  });

  it('has the same lists over HTTP, also from a host without range requests', async () => {
    const [server, plain] = [await startServer(folderOf(layout)), await startPlainFiles(folderOf(layout))];
    try {
      const heights = new Set<unknown>();
      for (const rune of MODEL.etchings()) {
        const { headers, body } = await server.send('GET', `/runes/v1/etchings/${rune.id}/holders?limit=1`);
        const { block_height: older } = JSON.parse(body) as { readonly block_height?: number };
        // A list that names an older block itself needs no header, which would name another block.
        expect([rune.id, headers['x-block-height']]).toEqual([rune.id, older === undefined ? String(TIP) : undefined]);
        heights.add(headers['x-block-height']);
      }
      expect(heights).toContain(String(TIP));
      const args = ['holders', WIDEST.id, '--height', String(TIP)];
      const { lines } = await exported([...args, ...dir]);
      for (const url of [`http://127.0.0.1:${server.port}`, `${plain.base}/`]) {
        // Closes the connection of the first request without an answer. The export must retry.
        let failures = 0;
        plain.intercept = (_, __, response) => {
          if (failures > 0) return false;
          failures += 1;
          response.destroy();
          return true;
        };
        const over = await exported([...args, '--mirror', url]);
        expect([over.lines, over.stderr.includes('trying again')]).toEqual([lines, url.startsWith(plain.base)]);
      }
    } finally {
      await server.close();
      await plain.close();
    }
  });
});

describe('refuses', () => {
  const archive = ['--dir', join(work, 'archive')];
  it.each([
    [
      'an unknown list',
      ['holder', WIDEST.id, ...archive],
      1,
      'unknown list "holder"; lists are runes, holders, balances, activity, outputs; did you mean holders?',
    ],
    ['two subjects', ['holders', WIDEST.id, WIDEST.id, ...archive], 1, 'only one rune or address can be given'],
    ['no list', [], 1, 'LIST [RUNE|ADDRESS] must be given'],
    ['no subject', ['holders'], 1, 'a rune or an address must be given, as in holders 840000:3'],
    ['a subject of all runes', ['runes', WIDEST.id, ...archive], 1, 'it takes no rune or address'],
    ['holders of an address', ['holders', 'bc1q0', ...archive], 1, '"bc1q0" is not a rune'],
    ['a height of another list', ['balances', 'bc1q0', '--height', '1'], 1, '--height can only be used with the list "holders"'],
    [
      'an address that is too long',
      ['balances', `b1${'c'.repeat(200)}`, ...archive],
      1,
      'params/address must NOT have more than 100 characters',
    ],
    ['two mirrors', ['holders', WIDEST.id, '--mirror', 'http://host', ...archive], 1, '--dir and --mirror cannot be used together'],
    ['a URL with a password', ['holders', WIDEST.id, '--mirror', 'http://a:b@host'], 1, '--mirror must be an http(s) URL'],
    [
      'a height above the tip',
      ['holders', WIDEST.id, '--height', String(TIP + 1), ...archive],
      2,
      `the mirror has blocks up to ${TIP}, so`,
    ],
    ['an unknown rune', ['holders', '999999:1', ...archive], 2, 'there is no rune "999999:1" in the mirror'],
    [
      'a mirror without the list',
      ['holders', '840000:3', '--dir', join(work, 'window')],
      2,
      'this mirror does not have holders of runes; it has',
    ],
    [
      'a folder without a mirror',
      ['holders', WIDEST.id, '--dir', work],
      2,
      'is not the output folder of a build: runes/v1/manifest.json is missing',
    ],
    ['a missing folder for the file', ['holders', WIDEST.id, ...archive, '--out', join(work, 'no/such/file')], 2, 'no/such does not exist'],
  ])('%s', async (_, args, exit, message) => {
    const before = readdirSync(work);
    const { code, stderr } = await run('export', args, work);
    expect(stderr).toContain(message);
    expect(code).toBe(exit);
    expect(readdirSync(work)).toEqual(before);
  });

  it('an unknown name, and suggests similar names', async () => {
    const { code, stderr } = await run('export', ['activity', `${WIDEST.letters.slice(0, -2)}QQ`, '--dir', folderOf('archive')], work);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/there is no rune ".*QQ" in the mirror\n {2}Similar names: [A-Z•]+/)]);
  });

  it('redirects, as pulls do', async () => {
    const [other, plain] = [await startPlainFiles(folderOf('archive')), await startPlainFiles(folderOf('archive'))];
    plain.intercept = (path, _, response) => {
      response.writeHead(302, { location: `${other.base}/${path}?api_key=k3y` }).end();
      return true;
    };
    try {
      const { code, stderr } = await run('export', ['holders', WIDEST.id, '--mirror', plain.base], work);
      const message = `Error: ${plain.base}/runes/v1/manifest.json redirects to ${other.base}\n  Redirects are not followed, `;
      expect([code, stderr, other.asked]).toEqual([2, expect.stringContaining(message), []]);
    } finally {
      await other.close();
      await plain.close();
    }
  });

  it('to replace an existing file', async () => {
    writeFileSync(join(work, 'kept'), 'mine');
    const { code, stderr } = await run('export', ['holders', WIDEST.id, '--dir', folderOf('archive'), '--out', 'kept'], work);
    expect([code, stderr]).toEqual([2, expect.stringContaining('exists, and export never replaces a file')]);
    expect(readFileSync(join(work, 'kept'), 'utf8')).toBe('mine');
  });
});

it('names the file by list, subject and height, and removes the file of a failed export', async () => {
  const folder = join(work, 'named');
  mkdirSync(folder);
  const subject = WIDEST.id;
  const { stdout } = await run('export', ['holders', subject, '--height', '30', '--dir', folderOf('archive')], folder);
  const name = `holders-${subject.replace(':', '-')}-30.csv`;
  expect(readdirSync(folder)).toEqual([name]);
  expect(stdout).toMatch(new RegExp(`Wrote [0-9,]+ rows? of holders as of block 30 to ${name} in `));
  const damaged = join(work, 'damaged');
  cpSync(folderOf('archive'), damaged, { recursive: true });
  const archive = join(damaged, 'archive');
  const segments = readdirSync(archive).map((file) => join(archive, file));
  for (const file of segments) truncateSync(file, Math.floor(statSync(file).size / 2));
  const { code, stderr } = await run('export', ['activity', subject, '--dir', damaged], folder);
  expect([code, stderr]).toEqual([3, expect.stringContaining('Error: ')]);
  expect(readdirSync(folder)).toEqual([name]);
});

it('removes its file when it is stopped', { timeout: 60_000 }, async () => {
  const plain = await startPlainFiles(folderOf('archive'));
  const folder = join(work, 'stopped');
  mkdirSync(folder);
  try {
    let asked: () => void = () => undefined;
    const waiting = new Promise<void>((resolve) => {
      asked = resolve;
    });
    // From the second request to the archive on, the host never answers.
    plain.intercept = (path) => {
      if (!path.startsWith('archive/') || plain.asked.filter((one) => one.startsWith('archive/')).length < 2) return false;
      asked();
      return true;
    };
    const child = start('export', ['activity', WIDEST.id, '--mirror', plain.base], folder);
    await Promise.race([waiting, endOf(child)]);
    child.kill('SIGTERM');
    expect(await endOf(child)).toEqual([130, null]);
    expect(existsSync(folder) && readdirSync(folder)).toEqual([]);
  } finally {
    await plain.close();
  }
});
