/** Compares a mirror that started from the ledger of another mirror with a mirror that has all history. */
import { expect } from 'vitest';
import type { Manifest } from '../../src/contract/schemas.ts';
import { spentBy } from './memoryLedger.ts';
import { pulledRows } from './nodePulls.ts';
import { startServer } from './server.ts';

interface Subjects {
  readonly runes: ReadonlySet<string>;
  readonly addresses: ReadonlySet<string>;
  /** For each output, the last height at which the output was created or spent. */
  readonly outputs: ReadonlyMap<string, number>;
}

/** Finds the runes, addresses and outputs in the rows of a pull's folder. */
async function subjectsOf(complete: string): Promise<Subjects> {
  // An output that occurs in no block. A started mirror cannot know whether it was spent before the mirror's start.
  const outputs = new Map([[`${'ab'.repeat(32)}:0`, -1]]);
  const found = { runes: new Set<string>(['1:0', '9:9']), addresses: new Set<string>(['nobody']), outputs };
  for (const row of await pulledRows(complete)) {
    const { rune_id, address, tx_id, output, ...others } = JSON.parse(row) as Record<'rune_id' | 'tx_id', string> &
      Record<'address' | 'output' | 'spent', string | null> & { block_height: string };
    found.runes.add(rune_id);
    if (address !== null) found.addresses.add(address);
    const changed = [...spentBy(others), ...(output === null ? [] : [`${tx_id}:${output}`])];
    for (const name of changed) outputs.set(name, Math.max(outputs.get(name) ?? -1, Number(others.block_height)));
  }
  return found;
}

/** Requests all lists and outputs, and the holders in `pairs`. Returns the status and the body by path. */
async function answersOf(out: string, { runes, addresses, outputs }: Subjects, pairs: readonly string[]): Promise<Map<string, string>> {
  const server = await startServer(out);
  const answers = new Map<string, string>();
  const ask = async (path: string) => {
    const { status, body } = await server.send('GET', `/runes/v1/${path}`);
    answers.set(path, `${status} ${status === 501 ? '' : body}`);
    return status === 200 ? (JSON.parse(body) as { total?: number }).total : undefined;
  };
  const askAll = async (path: string) => {
    for (let offset = 0, total = 1; offset < total; offset += 7) total = (await ask(`${path}?offset=${offset}&limit=7`)) ?? 0;
  };
  try {
    await askAll('etchings');
    for (const rune of runes) {
      await ask(`etchings/${rune}`);
      await askAll(`etchings/${rune}/holders`);
    }
    for (const address of addresses) for (const part of ['balances', 'outputs']) await askAll(`addresses/${address}/${part}`);
    for (const pair of pairs) await ask(pair);
    for (const output of outputs.keys()) await ask(`outputs/${output}`);
  } finally {
    await server.close();
  }
  return answers;
}

/**
 * Compares the answers of two mirrors. `out` starts with the ledger after block `start`. `all` has all history, from
 * the pull in the folder `complete`. `out` cannot know addresses that had a rune only before the start. Compares the
 * pairs of a rune and an address for which `isAsked` returns true.
 */
export async function expectSame(out: string, start: number, all: string, complete: string, isAsked: () => boolean): Promise<void> {
  const found = await subjectsOf(complete);
  const pairs = [...found.runes].flatMap((rune) =>
    [...found.addresses].filter(isAsked).map((address) => `etchings/${rune}/holders/${address}`),
  );
  const [expected, answers] = [await answersOf(all, found, pairs), await answersOf(out, found, pairs)];
  let unknown = 0;
  for (const [path, answer] of expected) {
    const isOld = Number.parseInt(path.slice('etchings/'.length), 10) <= start;
    const height = found.outputs.get(path.slice('outputs/'.length)) ?? Number.POSITIVE_INFINITY;
    // `out` knows the outputs of older blocks only if they are unspent.
    if (height <= start && !answer.endsWith('"spent":false}'))
      expect([path, answers.get(path)]).toEqual([path, expect.stringMatching(/^200 .*"runes":\[\],"spent":null,"held":null}$/)]);
    else if (answers.get(path) === '501 ' && isOld && pairs.includes(path)) {
      unknown += 1;
      expect([path, answer]).toEqual([path, expect.stringMatching(/^404|"balance":"[0.]+"/)]);
    } else expect([path, answers.get(path)]).toEqual([path, answer]);
  }
  expect(answers.size).toBe(expected.size);
  expect(unknown).toBeGreaterThan(0);
}

const point = ({ height, hash, digest }: { height: number; hash: string; digest: string }) => ({ height, hash, digest });

/** Returns the height, hash and digest of each ledger digest in a manifest. */
export const pointsOf = ({ ledger }: Manifest) =>
  (ledger === undefined ? [] : [ledger, ...(ledger.lower === undefined ? [] : [ledger.lower])]).map(point);
