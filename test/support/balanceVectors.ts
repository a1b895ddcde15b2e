/**
 * The 218 recorded exchanges with Hiro's server about balances and holders, and the rules that say where a mirror
 * answers differently. A plain model of the data computes both answers: those of the recorded server, including its
 * faults, and those that docs/api.md specifies.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

const FOLDER = new URL('../fixtures/', import.meta.url).pathname;

export interface BalanceVector {
  readonly line: number;
  readonly method: string;
  readonly path: string;
  readonly request_headers?: Readonly<Record<string, string>>;
  /** True if several entries of the page have equal balances. The recorded order of these entries is arbitrary. */
  readonly ties?: true;
  readonly status: number;
  readonly body: unknown;
}

export const readBalanceVectors = (): BalanceVector[] =>
  gunzipSync(readFileSync(join(FOLDER, 'balances/vectors.ndjson.gz')))
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as BalanceVector);

interface Rune {
  readonly id: string;
  readonly number: number;
  readonly name: string;
  readonly spaced: string;
  readonly decimals: number;
}

interface Holding {
  readonly rune: Rune;
  readonly address: string;
  /** Units that the address received minus units that it sent. */
  kept: bigint;
  burned: bigint;
  /** Blocks with receipts or sends. The recorded totals count these blocks. */
  readonly blocks: Set<string>;
}

const cells = (text: string) => text.trimEnd().split('\n').slice(1);

/**
 * Returns all pairs of a rune and an address with a receipt, send or burn. The key is `rune address`. Reads the tables
 * of the fixtures about etchings.
 */
function readHoldings() {
  const runes = cells(readFileSync(join(FOLDER, 'etchings/runes.csv'), 'utf8')).map((line): Rune => {
    const [id = '', number, name = '', spaced = '', , , , , decimals] = line.split(',');
    return { id, number: Number(number), name, spaced, decimals: Number(decimals) };
  });
  const byId = new Map(runes.map((rune) => [rune.id, rune]));
  const holdings = new Map<string, Holding>();
  const unaddressed = new Map<string, bigint | undefined>();
  for (const line of cells(gunzipSync(readFileSync(join(FOLDER, 'etchings/ledger.csv.gz'))).toString())) {
    const [id = '', , height = '', , , , , address = '', , amount = '', operation = ''] = line.split(',');
    const rune = byId.get(id);
    if (rune === undefined || operation === 'mint' || operation === 'etching') continue;
    if (address === '') {
      const before = unaddressed.has(id) ? unaddressed.get(id) : 0n;
      const change = operation === 'receive' ? BigInt(amount) : -BigInt(amount);
      unaddressed.set(id, before === undefined || operation === 'burn' ? undefined : before + change);
      continue;
    }
    const holding = holdings.get(`${id} ${address}`) ?? { rune, address, kept: 0n, burned: 0n, blocks: new Set() };
    holdings.set(`${id} ${address}`, holding);
    if (operation === 'burn') {
      holding.burned += BigInt(amount);
      continue;
    }
    holding.kept += operation === 'receive' ? BigInt(amount) : -BigInt(amount);
    holding.blocks.add(height);
  }
  return { runes, holdings, unaddressed };
}

const { runes, holdings, unaddressed } = readHoldings();

/**
 * Returns the smallest units of a rune on outputs without an address. Undefined if units were burned without an
 * address: they may come from such an output, or from a mint or premine that was never on an output.
 */
export const withoutAddress = (rune: string): bigint | undefined => (unaddressed.has(rune) ? unaddressed.get(rune) : 0n);

function shown(units: bigint, decimals: number): string {
  const text = String(units).padStart(decimals + 1, '0');
  return decimals === 0 ? text : `${text.slice(0, -decimals)}.${text.slice(-decimals)}`;
}

/** Corrections to apply to a list. The recorded server makes none of them. */
interface Rules {
  readonly deductsBurns: boolean;
  readonly omitsZeros: boolean;
  readonly countsEntries: boolean;
}
const OLD: Rules = { deductsBurns: false, omitsZeros: false, countsEntries: false };
const NEW: Rules = { deductsBurns: true, omitsZeros: true, countsEntries: true };

interface Page {
  readonly limit: number;
  readonly offset: number;
  readonly total: number;
  readonly results: readonly object[];
}

const unitsOf = ({ kept, burned }: Holding, { deductsBurns }: Rules) => (deductsBurns ? kept - burned : kept);

function listOf(of: Holding[], rules: Rules, limit: number, offset: number, show: (holding: Holding) => object): Page {
  const listed = of
    .filter((one) => rules.deductsBurns || one.blocks.size > 0)
    .filter((one) => !rules.omitsZeros || unitsOf(one, rules) > 0n);
  const place = ({ rune }: Holding) => rune.id.split(':').map(Number) as [number, number];
  listed.sort((a, b) => {
    const [x, y] = [unitsOf(a, rules), unitsOf(b, rules)];
    if (x !== y) return x > y ? -1 : 1;
    const [[heightA, txA], [heightB, txB]] = [place(a), place(b)];
    return heightA - heightB || txA - txB || Buffer.compare(Buffer.from(a.address), Buffer.from(b.address));
  });
  const results = listed.slice(offset, offset + limit).map(show);
  const counted = listed.reduce((sum, { blocks }) => sum + blocks.size, 0);
  // The query of the recorded server returns no row, and so no total, if the window is past the end.
  return { limit, offset, total: rules.countsEntries ? listed.length : results.length === 0 ? 0 : counted, results };
}

/** Returns the model's answer if these corrections apply: a page, an object, or undefined for a 404. */
function modelOf(path: string, rules: Rules): unknown {
  const url = new URL(path.replace(/[;#].*/, ''), 'http://host');
  const number = (name: string, absent: number) => Number(url.searchParams.get(name) ?? absent);
  const [limit, offset] = [number('limit', 20), number('offset', 0)];
  const segments = url.pathname.split('/').slice(1).map(decodeURIComponent);
  const [kind, id = '', , address] = segments.slice(segments[1] === 'v1' ? 2 : 1);
  const all = [...holdings.values()];
  if (kind === 'addresses') {
    const balance = (one: Holding) => {
      const { rune } = one;
      const { number: count, name, spaced } = rune;
      return {
        rune: { id: rune.id, number: count, name, spaced_name: spaced },
        balance: shown(unitsOf(one, rules), rune.decimals),
        address: one.address,
      };
    };
    return listOf(
      all.filter((one) => one.address === known(id)),
      rules,
      limit,
      offset,
      balance,
    );
  }
  const plain = id.replace(/[•.]/g, '').toUpperCase();
  const rune = runes.find((one) => one.id === id || (/^[0-9]+$/.test(id) && one.number === Number(id)) || one.name === plain);
  const of = all.filter((one) => one.rune === rune);
  const holder = (one: Holding) => ({ balance: shown(unitsOf(one, rules), one.rune.decimals), address: one.address });
  if (address === undefined) return listOf(of, rules, limit, offset, holder);
  const found = of.find((one) => one.address === known(address) && (rules.deductsBurns || one.blocks.size > 0));
  return found && holder(found);
}

/** Converts bech32 addresses in upper case to lower case. The recorded server does not find addresses in upper case. */
const known = (address: string) => (/^(?:BC|TB|BCRT)1[0-9A-Z]+$/.test(address) ? address.toLowerCase() : address);

export interface Expected {
  /** Rules that override the recording. */
  readonly rules: readonly string[];
  readonly status: number;
  /** The parsed body. Undefined if any error with this status is right. */
  readonly body?: unknown;
}

/** Returns the expected answer of a mirror in dialect hiro. Throws if the model does not explain the recording. */
export function expected({ method, path, status, body, ties, request_headers }: BalanceVector): Expected {
  const by = (rule: string, code: number, content?: unknown): Expected => ({ rules: [rule], status: code, body: content });
  if (method === 'HEAD') return { rules: [], status, body: '' };
  if (method !== 'GET') return by('other methods get 405', 405);
  if (/[?&](?:limit|offset)=(?:0x|-0|1e|\+|1\.0|%20|[0-9]{16})/.test(path)) return by('numbers are decimal digits up to 2^53 - 1', 400);
  if (request_headers?.['if-none-match'] !== undefined) return by('each answer has its own ETag', 200, modelOf(path, NEW));
  if (/%FF/.test(path)) return by('malformed percent-encoding is a malformed address', 400);
  if (/\/a{101}(?:\/|$)/.test(path)) return by('an address of more than 100 characters is malformed', 400);
  if (/\/(?:holders\/|addresses\/\/balances)(?:\?.*)?$/.test(path)) return by('an empty address is malformed', 400);
  if (
    /^\/runes.*\/(?:balances|holders\/[^?]+)\/(?:\?.*)?$/.test(path) ||
    /\/\/|\/(?:Addresses|Etchings)\//.test(path) ||
    !/^\/runes\//.test(path)
  )
    return by('errors have one shape', 404);
  const model = modelOf(path, NEW);
  const answered: Expected = { rules: [], status: model === undefined ? 404 : 200, body: model ?? { error: 'Not found' } };
  if (status === 500) return { ...answered, rules: ['the recorded server failed'] };
  if (status === 400) {
    const name = decodeURIComponent(/\/etchings\/([^/]*)/.exec(path)?.[1] ?? '');
    return /^[a-z]+$/.test(name) ? { ...answered, rules: ['names are compared without case and spacers'] } : { rules: [], status, body };
  }
  if (/\/(?:BC|TB)1[0-9A-Z]+(?:\/|$)/.test(path)) return { ...answered, rules: ['bech32 in upper case is found'] };
  const old = modelOf(path, OLD);
  const [recorded, explained] = [ties === undefined ? body : withoutNames(body), ties === undefined ? old : withoutNames(old)];
  if (status === 200 && JSON.stringify(recorded) !== JSON.stringify(explained))
    throw new Error(`the model does not explain ${path}: ${JSON.stringify(recorded)}, not ${JSON.stringify(explained)}`);
  if (status === 404 && old !== undefined) throw new Error(`the model finds ${path}`);
  const steps: [string, Rules][] = [
    ['what was burned is not held', { ...OLD, deductsBurns: true }],
    ['zero balances are left out of lists', { ...NEW, countsEntries: false }],
    ['total is the number of entries', NEW],
  ];
  const rules = ties === undefined ? [] : ['equal balances have an order'];
  let before = old;
  for (const [rule, made] of steps) {
    const next = modelOf(path, made);
    if (JSON.stringify(next) !== JSON.stringify(before)) rules.push(rule);
    before = next;
  }
  return { ...answered, rules };
}

/** Reduces the entries of a page to their balances, because entries with equal balances have an arbitrary order. */
function withoutNames(body: unknown): unknown {
  const { results, ...page } = body as Page;
  return { ...page, results: results.map((one) => unitsOfShown((one as { balance: string }).balance)) };
}

const unitsOfShown = (balance: string) => BigInt(balance.replace('.', '')).toString();
