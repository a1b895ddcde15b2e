/** Requests for tests of hosts that run no code of this project. */
import fc from 'fast-check';
import { readVectors } from '../support/recordedLists.ts';
import { words } from '../support/records.ts';

export interface PlainRequest {
  readonly method: string;
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/**
 * Returns the first recorded request of each group, method and status, without `accept-encoding`, so that bodies are text. Other tests
 * cover compression.
 */
export function vectorRequests(): PlainRequest[] {
  const first = new Map<string, PlainRequest>();
  for (const { group, status, method, path, request_headers } of readVectors()) {
    const headers = Object.entries(request_headers ?? {}).filter(([name]) => name.toLowerCase() !== 'accept-encoding');
    const key = `${group} ${method} ${status}`;
    if (!first.has(key)) first.set(key, { method, target: path, headers: Object.fromEntries(headers) });
  }
  return [...first.values()];
}

const BLOCK = '/runes/v1/blocks/840001';

/** Targets that lead out of a list's folder or to private files, or that a server may parse differently from the API. */
export const ODD_TARGETS: readonly string[] = [
  ...['20%2F20', '..%2F840002', '../840002', 'mint/20', '/mint', 'Mint', 'mint%00', 'mint.json', 'mint&operation_type=send'].map(
    (value) => `${BLOCK}/activity?operation_type=${value}`,
  ),
  ...['..%2F..%2F840002%2F20', '../../840002/20', '60%2F60.json%3F', '0x14', '020', '0060', '60.0', '60,20', '60;offset=60', ' 60', '60 ']
    .map(encodeSpaces)
    .map((value) => `${BLOCK}/activity?limit=${value}&offset=60`),
  ...words(`foo=1&limit=60&bar=2 Limit=60 LIMIT=60 xlimit=60 limit=20&xlimit=60 limit offset limit&offset operation_type`).map(
    (query) => `${BLOCK}/activity?${query}`,
  ),
  ...words(`
      limit=20& &limit=60 &&limit=60&&offset=60&& limit=60&&offset=60 limit==60 l%69mit=60 limit=%36%30 offset=%32%30
      operation_type=m%69nt o%66fset=20 oper%61tion_type=mint +limit=60
    `).map((query) => `${BLOCK}/activity?${query}`),
  ...words(`limit=60&limit=60 limit&limit=60 limit=60&limit offset=0&x=1&offset=0 offset=60&l%69mit=60 ?limit=60 a?limit=60`).map(
    (query) => `${BLOCK}/activity?${query}`,
  ),
  ...['offset=20#', 'limit=60#offset=60', 'a=%', 'a=%zz', 'limit=60&a=%', 'limit=60&%', 'a=b=c&limit=60', 'x={env.PATH}', '$limit=60'].map(
    (query) => `${BLOCK}/activity?${query}`,
  ),
  ...['10', '1000', '0', '00', '-0', '-1', '+20', '1e1', '18446744073709551616', '000000000000000000000000060', '999999'].map(
    (limit) => `${BLOCK}/activity?limit=${limit}`,
  ),
  ...['10', '30', '0020', '-0', '9007199254740990', '9007199254740991', '9007199254740992', '9999999999999999', '18446744073709551616'].map(
    (offset) => `${BLOCK}/activity?offset=${offset}`,
  ),
  // Targets as long as servers accept. If a regular expression gives up on such a text, the server must not accept the request.
  ...words(`
    ${BLOCK}/activity?limit=20&${'x&'.repeat(3800)}limit=60 ${BLOCK}/activity?limit=20&${'&'.repeat(7800)}limit=60
    ${BLOCK}/activity?limit=20&${'limi=&'.repeat(1200)}l%69mit=60 ${BLOCK}/activity?offset=${'0'.repeat(7800)}
    /runes/v1/blocks/${'%33'.repeat(2500)}/activity ${BLOCK}/activity# ${BLOCK}/activity#?limit=5 ${BLOCK}/activity/
    ${BLOCK}/activity/?limit=60 ${BLOCK}/activity.json ${BLOCK}/Activity ${BLOCK}/activity;limit=60 ${BLOCK}/%61ctivity
    /runes/v1/blocks/84000%31/activity /runes/v1/%62locks/840001/activity /%72unes/v1/blocks/840001/activity
    /runes/v1/blocks/840000/..%2f840001/activity /runes/v1/blocks/840000/..%2F840001/activity /runes/v1/blocks/840000/../840001/activity
    /runes/v1/blocks/840000/%2e%2e/840001/activity /runes/v1/blocks/840000/.%2e/840001/activity
    /runes/v1/blocks/840000/..;/840001/activity /runes/v1/blocks/840000/..%5c840001/activity
    /runes/v1/blocks/840000%2F..%2F840001/activity /runes/v1/blocks/840000%252F..%252F840001/activity /runes/v1/blocks/./840001/activity
    /runes/./v1/blocks/840001/activity /runes//v1/blocks/840001/activity //runes/v1/blocks/840001/activity
    /runes/v1/blocks//840001/activity /runes/v1/blocks/840001//activity /runes/v1/blocks/840001%2Factivity
    /runes/v1/blocks/840001%2F20%2F20.json%3F/activity /runes/v1/blocks/840001.json/activity /runes/v1/blocks/840001.json/
    /runes/v1/blocks/840001.json%00 /runes/v1/blocks/840001%00.html/activity /runes/v1/blocks/840001.json?limit=60
    /runes/v1/blocks/0840001.json /runes/v1/blocks/840001.JSON /runes/v1/blocks//840001.json /runes/v1/blocks/./840001.json
    /runes/v1/blocks/840001%2ejson /runes/v1/blocks/840001/mint.json /runes/v1/blocks/840001/60/60.json /runes/v1/blocks/840001/60/61.json
    /runes/v1/blocks/840001.json.gz /runes/blocks/840001.json /runes/v1/blocks/-1/activity /runes/v1/blocks/%2d1/activity
    /runes/v1/blocks/1e5/activity /runes/v1/blocks/*/activity /runes/v1/blocks/"/activity /runes/v1/blocks/\\/activity
    /runes/v1/blocks/{env.PATH}/activity /runes/v1/blocks/$uri/activity /runes/v1/blocks//activity /runes/v1/transactions//activity
    /runes/v1/blocks/${'9'.repeat(300)}/activity /runes/v1/blocks/${'a'.repeat(300)}.json
    /runes/v1/transactions/0X${'f'.repeat(64)}/activity /runes/v1/transactions/${'F'.repeat(64)}/activity
    /runes/v1/transactions/0x0x${'f'.repeat(60)}/activity ${BLOCK} ${BLOCK}/ /runes/v1/blocks /runes/v1/blocks/ /runes/v1/transactions/
    /runes /runes/ /runes/v1 /runes/v1/ /runes/v1// /runes?limit=5 /runes/v1? /runes/v1/?x=% /runes/v1/index.json /runes/v1/manifest.json
    /runes/v1/digests/840000.json /runes/v2/ / /?x=1 /index.html // /. /.. /./ /../ /runes/.. /runes/../ /%2e /%2f /index.html/
    /INDEX.HTML /index /.rune-activity-mirror /%2erune-activity-mirror /runes/../.rune-activity-mirror
    /runes/v1/..%2f..%2f.rune-activity-mirror /.git/config /../../../../etc/passwd /..%2f..%2f..%2fetc/passwd /%2e%2e/%2e%2e/etc/passwd
    /runes/v1/..%c0%af..%c0%afetc/passwd /....//etc/passwd /mirror-error /404.json /nothing /nothing.html /runes/v1/nothing.txt
    /favicon.ico /a"b /${'x'.repeat(290)} /${'x'.repeat(400)}
  `),
];

function encodeSpaces(text: string): string {
  return text.replaceAll(' ', '%20');
}

/** Returns the usual spellings of the requests that a file of the build answers. */
export function requestsOf(path: string): string[] {
  const [, collection, name, rest = ''] = /^runes\/v1\/(blocks|transactions)\/([^/.]+)(.*)\.json$/.exec(path) ?? [];
  if (collection === undefined || name === undefined) return [];
  const [, limit = '20', offset = '0'] = /^(?:\/([0-9]+)\/([0-9]+))?$/.exec(rest) ?? ['', ''];
  if (limit === '') return [];
  const other = name.startsWith('0x') ? name.slice(2) : `0x${name}`;
  const spellings = name.length < 64 ? [name] : [name, other];
  const window = [`limit=${limit}`, `offset=${offset}`];
  const queries = [
    window,
    [`offset=${offset}`, `limit=${limit}`],
    window.filter((pair) => pair !== 'offset=0'),
    rest === '' ? [] : window,
  ].map((pairs) => pairs.join('&'));
  return spellings.flatMap((id) => queries.map((query) => `/runes/v1/${collection}/${id}/activity${query === '' ? '' : `?${query}`}`));
}

const ID = '1708cc05a3adee35263af6757840070ecf4a171a09d1c2c30613fba6dcef7478';
const IDS = [
  ...words(`840001 0840001 840014 840017 1 -1`),
  '',
  ID,
  `0x${ID}`,
  `0X${ID}`,
  ID.toUpperCase(),
  `${ID}0`,
  '84000%31',
  '840001%2f20',
  '..',
  'mint',
];
const NAMES = ['limit', 'offset', 'operation_type', 'Limit', 'x', 'l%69mit', '', 'limit ', '+offset', 'limit[]', 'offset;limit'];
const VALUES = [...words(`20 60 0 120 40 7 020 61 -1 mint send burn`), '', '1e1', '%32%30', '6%30', '20+', '2=0', '9007199254740992'];

/** Returns invented targets. Most of them are nearly right. Every part is one of a few values that hosts may parse in several ways. */
export const inventedTargets = (count: number): string[] => {
  const pick = (values: readonly string[]) => fc.constantFrom(...values);
  // Draws a right value more often than a wrong one, so that many targets are wrong in only one way.
  const mostly = (right: readonly string[], others: readonly string[]) => fc.oneof({ weight: 3, arbitrary: pick(right) }, pick(others));
  const pair = fc
    .tuple(mostly(['limit', 'offset', 'operation_type'], NAMES), mostly(['='], ['']), mostly(['20', '60', '0', 'mint'], VALUES))
    .map((parts) => parts.join('').replaceAll(' ', '%20'));
  const query = fc
    .tuple(mostly(['?'], ['??', '?&']), fc.array(pair, { maxLength: 4 }), mostly(['&'], ['&&']))
    .map(([mark, pairs, by]) => mark + pairs.join(by));
  const path = fc
    .tuple(
      mostly(['/runes/v1'], ['/runes', '/runes/v1/', '/Runes/v1']),
      mostly(['blocks'], ['transactions', 'block']),
      mostly(['840001', ID], IDS),
      mostly(['activity'], ['activity/', '']),
    )
    .map((parts) => parts.join('/'));
  const target = fc.tuple(path, fc.oneof(fc.constant(''), query)).map((parts) => parts.join(''));
  return fc.sample(target, { numRuns: count, seed: 1 });
};
