/** Verifies builds of the recorded data, and checks that verification detects every changed value of a manifest. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MANIFEST_PATH } from '../../../src/pages/filePaths.ts';
import { DIALECTS, LAYOUTS } from '../../../src/pages/mirrorOptions.ts';
import { VerificationError } from '../../../src/verify/findings.ts';
import { CONFORMANCE_INPUTS, type TestBuild, temporaryFolder, testBuild, tree } from '../../support/build.ts';
import { chainOf, FakeNode } from '../../support/fakeNode.ts';
import { check, isPage } from '../../support/outputs.ts';
import { testPull } from '../../support/pull.ts';
import { extended } from '../../support/runeChains.ts';
import { integersFor } from '../../support/seed.ts';

const FIXTURES = new URL('../../fixtures', import.meta.url).pathname;

describe('an unchanged build', () => {
  it.each(DIALECTS)(
    'passes verification: the recorded data in dialect %s, in each layout, and without lists by operation',
    async (dialect) => {
      for (const layout of LAYOUTS) {
        const [out, plain] = [join(temporaryFolder(), 'out'), join(temporaryFolder(), 'plain')];
        const options = { inputs: CONFORMANCE_INPUTS, dialect, layout, pageSizes: [10, 25, 60] };
        await testBuild(out, options);
        await testBuild(plain, { ...options, operationPages: false });
        for (const folder of [out, plain]) await check(folder);
        const pages = Object.entries(tree(plain)).filter(([path]) => isPage(path));
        expect(tree(out)).toMatchObject(Object.fromEntries(pages));
      }
    },
  );
});

describe('verification finds each changed value of the manifest', () => {
  const golden = { inputs: [join(FIXTURES, 'golden/ledger/input')], lists: true, parquet: true, siteUrl: 'https://example.org/mirror/' };
  it.each([
    ['files', 'records', { inputs: [join(FIXTURES, 'golden/activity/input')] }],
    ['archive', 'records', { inputs: [join(FIXTURES, 'golden/activity/input')] }],
    ['files', 'ledger rows', golden],
    ['archive', 'ledger rows', golden],
    ['archive', 'a node', { inputs: [], lists: true }],
  ] as const)('in layout %s, from %s', async (layout, source, given) => {
    const options: TestBuild = { ...given, ...(source === 'a node' ? { inputs: [await pulledChain()] } : {}) };
    const out = join(temporaryFolder(), 'out');
    await testBuild(out, { ...options, layout });
    const path = join(out, MANIFEST_PATH);
    const before = readFileSync(path, 'utf8');
    const missed: string[] = [];
    for (const [place, text] of changedValues(JSON.parse(before))) {
      writeFileSync(path, `${JSON.stringify(text, null, 2)}\n`);
      if ((await findingsOf(out)).length === 0) missed.push(place);
    }
    writeFileSync(path, before);
    expect(await findingsOf(out)).toEqual([]);
    // One change cannot be detected: the first block that a pull has read. The pull may have read blocks without activity below the first
    // block with activity, and no other file records how many.
    expect(missed).toEqual(source === 'a node' ? ['/sources/0/blocks/0/0'] : []);
  });
});

/** Pulls a chain from a node. Returns the folder with its rows. */
async function pulledChain(): Promise<string> {
  const random = integersFor('manifest of a node');
  const node = await FakeNode.start(extended(chainOf(0, [[], []]), 20, random), { network: 'regtest' });
  const to = join(temporaryFolder(), 'pulled');
  try {
    await testPull(`core:${node.url}`, to);
  } finally {
    await node.close();
  }
  return to;
}

/** Yields copies of a JSON value, each with one number, text or flag changed, and the path of the change. */
function* changedValues(value: unknown, place = ''): Generator<[place: string, copy: unknown]> {
  if (typeof value === 'number') yield [place, value + 1];
  else if (typeof value === 'boolean') yield [place, !value];
  else if (typeof value === 'string') yield [place, value.replace(/.$/, (last) => (last === '0' ? '1' : '0'))];
  else
    for (const [key, part] of Object.entries(value ?? {}))
      for (const [where, copy] of changedValues(part, `${place}/${key}`))
        yield [
          where,
          Array.isArray(value) ? value.map((old, i) => (String(i) === key ? copy : old)) : { ...(value as object), [key]: copy },
        ];
}

/** Returns the findings of verification. */
const findingsOf = (out: string): Promise<readonly string[]> =>
  check(out).then(
    () => [],
    (error: unknown) => {
      if (error instanceof VerificationError) return error.details;
      throw error;
    },
  );
