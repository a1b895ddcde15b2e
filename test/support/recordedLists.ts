/**
 * Recorded exchanges with Hiro's server. `differences.ndjson.gz` has the answers of a mirror that differ from the recorded ones, each with
 * the rules of docs/api.md that make it differ. Models that shared no code with the program computed the first version of these files.
 *
 * After an intended change, `UPDATE_GOLDEN=1 RULE='reason of the change'` writes the answers that the tests get.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { env } from 'node:process';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { Host } from './server.ts';

const at = (path: string) => new URL(`../fixtures/${path}`, import.meta.url).pathname;

/** Input with the data of the recordings. Some requests are about `CONFORMANCE_INPUTS` instead. */
export const ETCHING_INPUTS = [at('etchings/ledger.csv.gz'), at('etchings/runes.csv')];

export interface Recording {
  readonly line: number;
  /** What the request is about. Only in `conformance`. */
  readonly group?: string;
  /** Name of the data that the request is about. */
  readonly data?: string;
  readonly method: string;
  readonly path: string;
  readonly request_headers?: Readonly<Record<string, string>>;
  readonly status: number;
  readonly body: unknown;
}

interface Difference {
  readonly line: number;
  readonly rules: readonly string[];
  readonly status: number;
  /** Undefined if any answer with this status is right. */
  readonly body?: string;
}

const linesIn = (text: string): string[] => text.trimEnd().split('\n');
const linesOf = <T>(path: string): T[] => linesIn(gunzipSync(readFileSync(at(path))).toString()).map((line) => JSON.parse(line) as T);

/** The 720 recorded exchanges about the status and activity. */
export function readVectors(): Recording[] {
  const groups = linesIn(readFileSync(at('conformance/vectors.index.tsv'), 'utf8'));
  const lines = linesIn(readFileSync(at('conformance/vectors.ndjson'), 'utf8'));
  return lines.map((text, i) => ({ ...JSON.parse(text), line: i + 1, group: groups[i]?.split('\t')[1] ?? '' }));
}

type Folder = 'activity' | 'balances' | 'conformance' | 'etchings';

/** Returns the answers that differ from recorded ones, by the lines of these. */
export const differencesIn = (folder: Folder): ReadonlyMap<number, Difference> =>
  new Map(linesOf<Difference>(`${folder}/differences.ndjson.gz`).map((one) => [one.line, one]));

/**
 * Numbers above 2^53 have all digits in an answer, but the parsed recordings have rounded them. The version of the program does not matter.
 */
const normal = (text: string) =>
  /[0-9]{17}[,}]/.test(text) ? JSON.stringify(JSON.parse(text)) : text.replace(/(rune-activity-mirror v)[^"]*/, '$1*');

/**
 * Sends the recorded requests of a folder of fixtures. Returns the wrong answers, and the number of recorded answers that each rule
 * overrides.
 */
export async function replay(folder: Folder, hostOf: (data: string | undefined) => Host | undefined) {
  const differences = differencesIn(folder);
  const counts: Record<string, number> = {};
  const wrong: string[] = [];
  const changed: Difference[] = [];
  const recordings = folder === 'conformance' ? readVectors() : linesOf<Recording>(`${folder}/vectors.ndjson.gz`);
  for (const { line, data, method, path, request_headers, ...recorded } of recordings) {
    const difference = differences.get(line);
    for (const rule of difference?.rules ?? []) counts[rule] = (counts[rule] ?? 0) + 1;
    const text = typeof recorded.body === 'string' ? recorded.body : JSON.stringify(recorded.body);
    const { status, body } = difference ?? { ...recorded, body: text };
    const answer = await hostOf(data)?.send(method, Buffer.from(path).toString('latin1'), request_headers);
    const found = normal(answer?.body ?? '');
    const isRight = answer?.status === status && (body === undefined || found === body);
    if (!isRight) wrong.push(`${line} ${path}: ${answer?.status} ${found.slice(0, 200)}, not ${status} ${body?.slice(0, 200)}`);
    if (isRight && difference !== undefined) changed.push(difference);
    else if (!isRight && answer !== undefined)
      changed.push({ line, rules: [...(difference?.rules ?? []), env['RULE'] ?? ''], status: answer.status, body: found });
  }
  if (env['UPDATE_GOLDEN'] === '1')
    writeFileSync(at(`${folder}/differences.ndjson.gz`), gzipSync(changed.map((one) => `${JSON.stringify(one)}\n`).join(''), { level: 9 }));
  return { requests: recordings.length, wrong, counts };
}
