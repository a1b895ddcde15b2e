/**
 * The 234 recorded exchanges with Hiro's server about etchings, and the rules that say where a mirror answers
 * differently. If no rule applies, a mirror must answer exactly as recorded. docs/api.md states each rule.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

const FOLDER = new URL('../fixtures/etchings/', import.meta.url).pathname;
export const ETCHING_INPUTS = [join(FOLDER, 'ledger.csv.gz'), join(FOLDER, 'runes.csv')];

export interface EtchingVector {
  readonly line: number;
  readonly group: string;
  readonly data: 'own' | 'parent';
  readonly method: string;
  readonly path: string;
  readonly request_headers?: Readonly<Record<string, string>>;
  readonly status: number;
  readonly body: unknown;
}

export const readEtchingVectors = (): EtchingVector[] =>
  gunzipSync(readFileSync(join(FOLDER, 'vectors.ndjson.gz')))
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as EtchingVector);

/** The highest block and the number of runes of each data set. */
const DATA = { own: { tip: 840029, runes: 64 }, parent: { tip: 840040, runes: 261 } } as const;

interface Terms {
  readonly cap: string | null;
  readonly height_start: number | null;
  readonly height_end: number | null;
  readonly offset_start: number | null;
  readonly offset_end: number | null;
}
export interface Recorded {
  readonly id: string;
  turbo: boolean;
  readonly divisibility: number;
  readonly mint_terms: Terms;
  readonly supply: { current: string; mintable: boolean; minted: string; burned: string; premine: string; total_mints: string };
  readonly location: { readonly block_height: number; tx_id: string };
}

const units = (amount: string) => BigInt(amount.replace('.', ''));

/** Formats units like the recorded amounts: with exactly this number of decimals. */
function shown(amount: bigint, decimals: number): string {
  const text = String(amount)
    .replace('-', '')
    .padStart(decimals + 1, '0');
  const number = decimals === 0 ? text : `${text.slice(0, -decimals)}.${text.slice(-decimals)}`;
  return amount < 0n ? `-${number}` : number;
}

/** True if the next block may mint the rune, according to the specification of runes. */
function isOpen({ mint_terms: terms, supply, location }: Recorded, next: number): boolean {
  if (terms.cap === null || Number(supply.total_mints) >= Number(units(terms.cap))) return false;
  const from = [terms.height_start ?? 0, location.block_height + (terms.offset_start ?? 0)];
  const to = [terms.height_end ?? Infinity, terms.offset_end === null ? Infinity : location.block_height + terms.offset_end];
  return next >= Math.max(from[0] ?? 0, terms.offset_start === null ? 0 : (from[1] ?? 0)) && next < Math.min(to[0] ?? 0, to[1] ?? 0);
}

/** Changes a recorded etching to the form that a mirror returns. Adds the names of the applied rules to `used`. */
function corrected(etching: Recorded, data: EtchingVector['data'], used: Set<string>): Recorded {
  const made = structuredClone(etching);
  const { supply, location, divisibility } = made;
  const change = <Target extends object, Key extends keyof Target>(rule: string, target: Target, key: Key, value: Target[Key]) => {
    if (target[key] !== value) used.add(rule);
    target[key] = value;
  };
  const current = units(supply.premine) + units(supply.minted) - units(supply.burned);
  change('what was burned is not in current', supply, 'current', shown(current, divisibility));
  change('mintable is about the next block, and needs a cap', supply, 'mintable', isOpen(made, DATA[data].tip + 1));
  if (made.id === '1:0') {
    change('1:0 is turbo, and its transaction id is zeros', made, 'turbo', true);
    change('1:0 is turbo, and its transaction id is zeros', location, 'tx_id', '0'.repeat(64));
  }
  return made;
}

export interface Expected {
  /** Rules that override the recording. */
  readonly rules: readonly string[];
  readonly status: number;
  /** The parsed body. Undefined if any error with this status is right. */
  readonly body?: unknown;
}

const name = (vector: EtchingVector) => decodeURIComponent(/\/etchings\/([^?;#]*)/.exec(vector.path)?.[1] ?? '');
const SHAPE = 'errors have one shape';

/**
 * Returns the expected answer of a mirror in dialect hiro. `all` has the recorded etchings of the vector's data set,
 * corrected by the rules. The keys are id, number, and name without spacers.
 */
export function expected(vector: EtchingVector, all: ReadonlyMap<string, Recorded>): Expected {
  const { status, body, data, path, method } = vector;
  const used = new Set<string>();
  const by = (rule: string, code: number, content?: unknown): Expected => ({ rules: [rule], status: code, body: content });
  if (method !== 'GET') return by('other methods get 405', 405);
  if (/[?&](?:limit|offset)=(?:0x|-0)/.test(path)) return by('numbers are decimal digits', 400);
  if (status === 304) return by('each answer has its own ETag', path.includes('840000:0') ? 404 : 200);
  if (vector.request_headers?.['if-none-match'] === '*') return by('if-none-match * matches', 304);
  if (!path.startsWith('/runes') || (status === 404 && /\/\/|\/(?:Activity|holder)$/.test(path))) return by(SHAPE, 404);
  if (status === 200 && path.includes('/etchings/')) {
    const made = corrected(body as Recorded, data, used);
    return { rules: [...used], status, body: made };
  }
  if (status === 200) {
    const list = body as { limit: number; offset: number; total: number; results: Recorded[] };
    used.add('total is the number of etchings');
    const results = list.results.map((one) => corrected(one, data, used));
    return { rules: [...used], status, body: { ...list, total: DATA[data].runes, results } };
  }
  if (!path.includes('/etchings/')) return { rules: [], status, body };
  if (/[^ -~]/.test(path)) return by('Node refuses bytes beyond ASCII in a path', 400);
  if (/%(?:ZZ|E2%80$)/.test(path)) return by('malformed percent-encoding is a malformed rune', 400);
  if (status === 500) return by('numbers beyond any rune are unknown', 404, { error: 'Not found' });
  const text = name(vector);
  if (status === 404 && text.length > 100) return by('a long name is unknown', 404, { error: 'Not found' });
  const plain = text.replace(/[•.]/g, '').toUpperCase();
  if (status !== 404 || plain !== text) {
    const isName = /^[A-Za-z]+(?:[•.][A-Za-z]+)*$/.test(text);
    const found = all.get(plain);
    if (isName)
      return found === undefined
        ? by('names are compared without case and spacers', 404)
        : by('names are compared without case and spacers', 200, found);
  }
  return { rules: [], status, body };
}

/** Collects the recorded etchings of a data set. */
export function recordedEtchings(data: EtchingVector['data'], vectors: readonly EtchingVector[]): Map<string, Recorded> {
  const found = new Map<string, Recorded>();
  for (const { body, status, path, method } of vectors.filter((one) => one.data === data)) {
    if (status !== 200 || method !== 'GET') continue;
    const list = path.includes('/etchings/') ? [body as Recorded] : (body as { results: Recorded[] }).results;
    for (const one of list) found.set((one as Recorded & { name: string }).name, corrected(one, data, new Set()));
  }
  return found;
}
