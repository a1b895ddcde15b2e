/**
 * Tests that the configurations of nginx and Caddy refuse the same requests as the page map (src/pages), with the same
 * messages. test/hosts runs both programs.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { BuiltSite } from '../../src/pages/mirrorOptions.ts';
import { parseTarget } from '../../src/pages/parseRequest.ts';
import { ROOT } from '../support/cli.ts';

const SITE: BuiltSite = {
  layout: 'files',
  dialect: 'contract',
  pageSizes: [20, 60],
  operationPages: true,
  parquet: false,
  archive: undefined,
  listRoot: undefined,
  tip: 9,
  lists: {},
};

/**
 * Returns the rules of a configuration in order. A rule has a regular expression, and the message for requests that
 * match it. An empty message means that the request is valid.
 */
function rulesOf(recipe: string): (readonly [RegExp, string])[] {
  const text = readFileSync(join(ROOT, 'hosting', recipe), 'utf8');
  const rows = text.matchAll(/^\s*"~(\S*(?: &\S*| \S*)?)"\s+(["'`])((?:params|querystring)\/.*?|)\2;?(?:\s*#.*)?$/gm);
  return [...rows].map(([, expression = '', , message = '']) => [
    new RegExp(expression),
    message.replace(/\\+"/g, '"').replaceAll('$mirror_dollar', '$').replaceAll('$$', '$'),
  ]);
}

/**
 * Returns the message with which a configuration refuses a request. The rules for ids come first, then the rules for
 * offset, limit and operation.
 */
function refusalBy(rules: readonly (readonly [RegExp, string])[], kind: string, id: string, query: string): string {
  const subjects = [
    [`${kind} ${id}`, /^\^(?!block &)/],
    [`&${query}&`, /^&offset/],
    [`&${query}&`, /^&limit/],
    [`${kind} &${query}&`, /^\^block &/],
  ] as const;
  for (const [subject, isOwn] of subjects) {
    const message = rules.filter(([{ source }]) => isOwn.test(source)).find(([rule]) => rule.test(subject))?.[1];
    if (message !== undefined && message !== '') return message;
  }
  return '';
}

const NUMBERS = ['', '0', '1', '00', '007', '20', '59', '60', '61', '060', '061', '99', '100', '-0', '-1', '+1', '1.5', 'x', ' 1', '1e1'];
const LARGE = ['9007199254740991', '9007199254740992', '09007199254740991', '10000000000000000', '99999999999999999999'];
const OPERATIONS = ['etching', 'mint', 'burn', 'send', 'receive', 'Mint', 'mint,burn', '', 'x'];
const ALL = ['limit', 'offset'].flatMap((name) => [...NUMBERS, ...LARGE].map((value) => `${name}=${value}`));
const QUERIES = [
  '',
  ...ALL,
  ...OPERATIONS.map((value) => `operation_type=${value}`),
  'limit',
  'offset',
  'operation_type',
  'limit=1&limit=2',
  'limit=1&x=2&limit',
  'offset=1&offset=1',
  'operation_type=mint&operation_type=mint',
  'operation_type=mint&x=1&operation_type=x',
  'limit=x&offset=x',
  'limit=0&operation_type=x',
  'unlimit=x&limits=x&xoffset=-1',
];
const IDS = [
  ['block', 'blocks', ['5', '007', 'a'.repeat(64), `0x${'A'.repeat(64)}`, 'a'.repeat(63), 'x', '-1', '5.0', '0x5']],
  ['transaction', 'transactions', ['5', 'b'.repeat(64), `0X${'b'.repeat(64)}`, 'b'.repeat(65), 'x']],
] as const;

describe.each(['nginx/nginx.conf', 'caddy/Caddyfile'])('hosting/%s', (recipe) => {
  const rules = rulesOf(recipe);

  it('refuses the same requests as the page map, in the same words', () => {
    const wrong: string[] = [];
    const said = new Set<string>();
    for (const [kind, folder, ids] of IDS) {
      for (const id of ids) {
        for (const query of QUERIES) {
          const route = parseTarget(`/runes/v1/${folder}/${id}/activity?${query.replaceAll(' ', '%20')}`, SITE);
          const expected = route.kind === 'refusal' ? route.message : '';
          said.add(expected);
          const found = refusalBy(rules, kind, id, query);
          if (found !== expected) wrong.push(`${kind} ${id} ?${query}: "${found}", expected "${expected}"`);
        }
      }
    }
    expect(wrong).toEqual([]);
    // The requests above must have caused each message of the configuration. Otherwise a rule would be untested.
    expect(new Set(rules.map(([, message]) => message))).toEqual(said);
  });
});
