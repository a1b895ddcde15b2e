/**
 * The case table: requests for a build of fixtures/cases (dialect `contract`, page sizes 20 and 60), and the answers that every host with
 * the program's code must give. The tests of each host run the table.
 */
import { join } from 'node:path';
import { expect } from 'vitest';
import { answerSchemas } from '../../src/contract/answerSchemas.ts';
import { errorResponse } from '../../src/contract/schemas.ts';
import { ROOT } from './cli.ts';
import type { Answer, Host } from './server.ts';

/** Input with records of some runes, without a complete history and without spent outputs. */
export const SAMPLE_INPUT = join(ROOT, 'test/fixtures/cases');

const HASH_437 = '00000000f00d99dccc32c5291d13d871e27d9906c810b4257e859132e49b8cc3';
const TX_321 = '0fec8c48716402342396d2ce55e470cd7430e29f04c5145470e073124460d2a8';
const TX_21 = 'a1b3a92c17a005483322cf807b73bc9f7ec2977867cf5cbaec18754b900bf6bb';
const DOG = 'e79134080a83fe3e0e06ed6990c5a9b63b362313341745707a2bff7d788a1375';
const block = (id: string | number, query = '') => `/runes/v1/blocks/${id}/activity${query}`;
const tx = (id: string, query = '') => `/runes/v1/transactions/${id}/activity${query}`;

export interface Case {
  readonly name: string;
  readonly method?: string;
  readonly target: string;
  readonly status: number;
  /** The body, or the numbers of its envelope: limit, offset, total, number of results. */
  readonly body?: string | readonly [number, number, number, number];
  readonly headers?: Readonly<Record<string, string>>;
}

const list = (name: string, target: string, ...body: [number, number, number, number]): Case => ({ name, target, status: 200, body });
const error = (statusCode: number, reason: string, message: string) => JSON.stringify({ statusCode, error: reason, message });
export const refused = (name: string, target: string, message: string): Case => ({
  name,
  target,
  status: 400,
  body: error(400, 'Bad Request', message),
});
const missing = (name: string, target: string): Case => ({
  name,
  target,
  status: 404,
  body: error(404, 'Not Found', `Route GET:${target} not found`),
});
const BAD_TX = 'params/tx_id must match pattern "^[a-fA-F0-9]{64}$"';

export const CASES: readonly Case[] = [
  list('the first page of a block', block(2000007), 20, 0, 437, 20),
  list('a page of the default size', block(2000007, '?offset=420&limit=20'), 20, 420, 437, 17),
  list('a page of the largest size', block(2000007, '?limit=60&offset=60'), 60, 60, 437, 60),
  list('an unaligned window within a page', block(2000007, '?limit=5&offset=3'), 5, 3, 437, 5),
  list('an unaligned window over two pages', block(2000007, '?limit=60&offset=30'), 60, 30, 437, 60),
  list('a window that ends past the end', block(2000007, '?limit=60&offset=400'), 60, 400, 437, 37),
  list('an offset at the end', block(2000007, '?offset=437'), 20, 437, 437, 0),
  list('an offset far past the end', block(2000007, '?offset=9007199254740991'), 20, 9007199254740991, 437, 0),
  list('the block by its hash', block(`0x${HASH_437}`, '?limit=1'), 1, 0, 437, 1),
  list('the block by its hash without 0x, in upper case', block(HASH_437.toUpperCase(), '?limit=1'), 1, 0, 437, 1),
  list('the block by a height with leading zeros', block('0002000007', '?limit=1'), 1, 0, 437, 1),
  list('a block of one record', block(2000002), 20, 0, 1, 1),
  list('a block of one record, with the largest limit', block(2000002, '?limit=60'), 60, 0, 1, 1),
  list('a block of 20 records', block(2000001, '?limit=60'), 60, 0, 20, 20),
  list('a block of 21 records', block(2000003, '?limit=60'), 60, 0, 21, 21),
  list('a page of an older block', block(2000004, '?limit=20&offset=40'), 20, 40, 60, 20),
  list('the end of an older block', block(2000004, '?offset=60'), 20, 60, 60, 0),
  list('a block of 60 records', block(2000004, '?limit=60'), 60, 0, 60, 60),
  list('a block of 61 records', block(2000006, '?limit=60&offset=60'), 60, 60, 61, 1),
  list('a height without activity', block(2000005), 20, 0, 0, 0),
  list('a height that does not exist', block('99999999999999999999999'), 20, 0, 0, 0),
  list('64 decimal digits', block('1'.repeat(64)), 20, 0, 0, 0),
  list('an unknown hash', block('ab'.repeat(32), '?offset=5&limit=7'), 7, 5, 0, 0),
  list('an operation of a block', block(2000007, '?operation_type=send'), 20, 0, 244, 20),
  list('an unaligned window of an operation', block(`0x${HASH_437}`, '?operation_type=send&limit=60&offset=200'), 60, 200, 244, 44),
  list('an operation that the block does not have', block(2000001, '?operation_type=burn'), 20, 0, 0, 0),
  list('a transaction', tx(TX_321), 20, 0, 321, 20),
  list('a transaction with 0x, a window over two pages', tx(`0x${TX_321}`, '?offset=50&limit=20'), 20, 50, 321, 20),
  list('a transaction, every record from an odd offset', tx(TX_21, '?offset=1&limit=60'), 60, 1, 21, 20),
  list('an unknown transaction', tx('ff'.repeat(32)), 20, 0, 0, 0),
  list('a transaction with an operation, which is ignored', tx(TX_21, '?operation_type=nope&limit=1'), 1, 0, 21, 1),
  list('the path without v1', `/runes/blocks/2000007/activity?limit=2`, 2, 0, 437, 2),
  list('other parameters', block(2000007, '?block=2000007&offset=0&api_key=x&_=1'), 20, 0, 437, 20),
  list('percent-encoded parameters', block(2000007, '?l%69mit=%32'), 2, 0, 437, 2),
  {
    name: 'a real transaction, to the byte',
    target: tx(DOG, '?limit=1'),
    status: 200,
    body: `{"limit":1,"offset":0,"total":2,"results":[{"rune":{"id":"840000:3","number":3,"name":"DOGGOTOTHEMOON","spaced_name":"DOG•GO•TO•THE•MOON"},"address":"bc1pry0ne0yf5pkgqsszmytmqkpzs4aflhr8tfptz9sydqrhxexgujcqqler2t","amount":"100000000000.00000","operation":"receive","location":{"block_hash":"0x0000000000000000000320283a032748cef8227873ff4872689bf23f1cda83a5","block_height":840000,"tx_id":"0x${DOG}","tx_index":3,"vout":1,"output":"0x${DOG}","timestamp":1713571767}}]}`,
  },
  refused('limit 0', block(2000007, '?limit=0'), 'querystring/limit must be >= 1'),
  refused('limit 61', block(2000007, '?limit=61'), 'querystring/limit must be <= 60'),
  refused('a limit that is no integer', block(2000007, '?limit=1e1'), 'querystring/limit must be integer'),
  refused('an empty limit', block(2000007, '?limit='), 'querystring/limit must be integer'),
  refused('a limit twice', block(2000007, '?limit=1&limit=1'), 'querystring/limit must be integer'),
  refused('a negative offset', tx(TX_21, '?offset=-1'), 'querystring/offset must be >= 0'),
  refused('a huge offset', tx(TX_21, '?offset=9007199254740992'), 'querystring/offset must be <= 9007199254740991'),
  refused('a bad tx_id', tx('abc'), BAD_TX),
  refused('a tx_id with an encoded slash', tx('..%2f..%2fetc'), BAD_TX),
  { name: 'a part of the API that the mirror lacks', target: '/runes/v1/addresses/x/balances', status: 501 },
  { name: 'such a part with a malformed rune', target: '/runes/etchings/%20/holders?limit=0', status: 501 },
  {
    name: 'another method on such a part',
    method: 'POST',
    target: `/runes/v1/outputs/${TX_21}:0`,
    status: 405,
    body: error(405, 'Method Not Allowed', 'POST is not allowed on this path; the API is read-only'),
    headers: { allow: 'GET, HEAD, OPTIONS' },
  },
  missing('a path that is none', '/runes/v1/nothing'),
  missing('a path with a slash at its end', block(2000007).concat('/')),
  missing('a folder', '/runes/v1/blocks/2000007'),
  {
    name: 'what a block touched',
    target: '/runes/v1/changes/2000010.json',
    status: 200,
    body: '{"height":2000010,"hash":"0x00000000f00dedbe69bbd54b446c5202d7c55e79c74d0c9aaf38523be9a49427","previous":{"height":2000009,"hash":"0x00000000f00d53b4a7b52b9a5fcdef1c420700225d8a2465c263963ca80c97cf"},"runes":["2000001:6"],"addresses":["bcrt1qtcrtjpk3rkdwhjpaquhm3r0gfxm8upgatg6qud"],"made":["fc9492b1baaf474b147e59a546ffeb21afae0ee3e60ad7492cb6fc818f13e61e:1"]}\n',
  },
  // This case expects no particular body, because some hosts answer it with their own error page.
  { name: 'a file that does not exist', target: '/runes/v1/blocks/1.json', status: 404 },
  {
    name: 'another method',
    method: 'POST',
    target: block(2000007),
    status: 405,
    body: error(405, 'Method Not Allowed', 'POST is not allowed on this path; the API is read-only'),
    headers: { allow: 'GET, HEAD, OPTIONS' },
  },
  { name: 'HEAD', method: 'HEAD', target: block(2000007), status: 200, body: '' },
  {
    name: 'OPTIONS',
    method: 'OPTIONS',
    target: block(2000007),
    status: 204,
    body: '',
    headers: { 'access-control-allow-methods': 'GET, HEAD, OPTIONS' },
  },
];

const CHARLIE = 'etchings/2000001:10/activity';
const HOLDER = 'bcrt1p3jdss6srl8kdqkkn36uz5a59mv542xlk5h3zx94y6wqn5rg6ekuqw7dhys';
const at = (path: string) => `/runes/v1/${path}`;
const LONG = 'x'.repeat(101);

/** Cases for hosts that run code, and for mirrors with lists. */
export const LIST_CASES: readonly Case[] = [
  ...CASES,
  list('activity of a rune', at(CHARLIE), 20, 0, 287, 20),
  list('the end of the activity of a rune', at(`${CHARLIE}?limit=60&offset=280`), 60, 280, 287, 7),
  list('activity of a rune past the end', at(`${CHARLIE}?limit=7&offset=9007199254740991`), 7, 9007199254740991, 287, 0),
  list('activity of a rune by its number', at('etchings/09000002/activity?limit=1'), 1, 0, 287, 1),
  list('activity of a rune by its name', at('etchings/syntheticcharlie/activity?limit=1'), 1, 0, 287, 1),
  list('activity of a rune by its name with spacers', at('etchings/SYNTHETIC%E2%80%A2CHARLIE/activity?limit=1'), 1, 0, 287, 1),
  list('activity of an unknown rune', at('etchings/NOSUCHRUNE/activity'), 20, 0, 0, 0),
  list('activity of a rune at an address', at(`${CHARLIE}/${HOLDER}?limit=60`), 60, 0, 25, 25),
  list('activity of an address', at(`addresses/${HOLDER}/activity?limit=60&offset=47`), 60, 47, 107, 60),
  list('activity of an address, from its middle, without v1', `/runes/addresses/${HOLDER}/activity?limit=3&offset=50`, 3, 50, 107, 3),
  list('activity of an unknown address', at('addresses/a%2Fb%00/activity'), 20, 0, 0, 0),
  refused('a malformed address', at(`addresses/${LONG}/activity`), 'params/address must NOT have more than 100 characters'),
  refused('an empty address', at(`${CHARLIE}/`), 'params/address must NOT have fewer than 1 characters'),
  {
    name: 'activity of a real rune, to the byte',
    target: at('etchings/dog.go.to.the.moon/activity?limit=1'),
    status: 200,
    body: `{"limit":1,"offset":0,"total":2,"results":[{"address":"bc1pry0ne0yf5pkgqsszmytmqkpzs4aflhr8tfptz9sydqrhxexgujcqqler2t","amount":"100000000000.00000","operation":"receive","location":{"block_hash":"0x0000000000000000000320283a032748cef8227873ff4872689bf23f1cda83a5","block_height":840000,"tx_id":"0x${DOG}","tx_index":3,"vout":1,"output":"0x${DOG}","timestamp":1713571767}}]}`,
  },
];

/** Sends a case to a host and checks the answer. A host without code cannot know which blocks are settled, so it sends no CDN header. */
export async function checkCase(
  host: Host,
  { method = 'GET', target, status, body, headers = {} }: Case,
  knowsSettled = true,
): Promise<void> {
  const answer = await host.send(method, target);
  expect({ status: answer.status, body: body === undefined ? body : bodyOf(answer, body, target) }).toEqual({
    status,
    body: typeof body === 'string' || body === undefined ? body : [...body],
  });
  expect(answer.headers).toMatchObject({ 'access-control-allow-origin': '*', ...headers });
  if (method === 'OPTIONS') return;
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
  if (status !== 200) {
    errorResponse.parse(JSON.parse(answer.body));
    return;
  }
  // The sample's highest block is 2000010, so blocks up to 2000004 are settled. Skips HEAD, because its answer has no body to check.
  if (method === 'GET') {
    const heights = [...answer.body.matchAll(/"block_height":([0-9]+),"tx_id"/g)].map(([, height]) => Number(height));
    const isList = /\/(?:etchings|addresses|outputs)\//.test(target);
    const isSettled = !isList && heights.length > 0 && Math.max(...heights) <= 2000004;
    if (knowsSettled) expect(answer.headers['cdn-cache-control']).toBe(isSettled ? 'public, max-age=86400' : undefined);
    expect(answer.headers['cache-control']).toBe('public, no-cache, must-revalidate');
  }
  const { etag } = answer.headers;
  expect(etag).toMatch(/^"[^"]+"$/);
  const again = await host.send(method, target, { 'if-none-match': `"x", W/${String(etag)}` });
  expect([again.status, again.body, again.headers['etag']]).toEqual([304, '', etag]);
  expect(again.headers['cdn-cache-control']).toBe(answer.headers['cdn-cache-control']);
}

function bodyOf(answer: Answer, expected: Case['body'], target: string): unknown {
  if (typeof expected === 'string') return answer.body;
  const { limit, offset, total, results } = JSON.parse(answer.body) as { limit: number; offset: number; total: number; results: unknown[] };
  const { ActivityList, RuneActivityList } = answerSchemas('contract');
  (target.includes('/etchings/') ? RuneActivityList : ActivityList).parse(JSON.parse(answer.body));
  return [limit, offset, total, results.length];
}
