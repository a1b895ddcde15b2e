/**
 * The 720 recorded exchanges with Hiro's server, and the rules that say where a mirror answers differently. docs/api.md
 * states each rule. If no rule applies, a mirror must answer exactly as recorded.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CONFORMANCE } from './build.ts';
import type { Answer } from './server.ts';

export interface Vector {
  readonly line: number;
  readonly group: string;
  readonly method: string;
  readonly path: string;
  readonly request_headers?: Readonly<Record<string, string>>;
  readonly status: number;
  readonly body: unknown;
}

export function readVectors(): Vector[] {
  const groups = readFileSync(join(CONFORMANCE, 'vectors.index.tsv'), 'utf8').trimEnd().split('\n');
  const lines = readFileSync(join(CONFORMANCE, 'vectors.ndjson'), 'utf8').trimEnd().split('\n');
  return lines.map((text, i) => ({ ...JSON.parse(text), line: i + 1, group: groups[i]?.split('\t')[1] ?? '' }));
}

/** Returns the bytes of a recorded body. */
const recordedBody = (vector: Vector): string => (typeof vector.body === 'string' ? vector.body : JSON.stringify(vector.body));

/** The ETag that all recorded answers have. A mirror has a different ETag for each answer. */
export const RECORDED_ETAG = '00000000000000060d55383e4e7f8eac0aacb091339172792f4e557c98c91973';

interface Rule {
  readonly name: string;
  /** True if the rule applies to this request. */
  readonly applies: (vector: Vector) => boolean;
  /** Returns the problems with the answer according to this rule. Empty if the answer is right. */
  readonly check: (vector: Vector, answer: Answer) => string[];
}

const expectStatus = (status: number, answer: Answer) => (answer.status === status ? [] : [`status ${answer.status}, not ${status}`]);

const expectError = (status: number, reason: string, answer: Answer): string[] => {
  const body = JSON.parse(answer.body) as Record<string, unknown>;
  const keys = Object.keys(body).join();
  return [
    ...expectStatus(status, answer),
    ...(keys === 'statusCode,error,message' && body['statusCode'] === status && body['error'] === reason ? [] : [`body ${answer.body}`]),
  ];
};

const envelopeOf = (text: string) => JSON.parse(text) as { limit: number; offset: number; total: number; results: unknown[] };
const query = (vector: Vector) => new URLSearchParams(vector.path.split('?')[1] ?? '');
const numbers = (vector: Vector) => [...query(vector)].filter(([name]) => name === 'limit' || name === 'offset').map(([, value]) => value);
const id = (vector: Vector) => /(?:blocks|transactions)\/([^/?]*)\/activity/.exec(vector.path)?.[1] ?? '';
const isApiPath = (vector: Vector) => /^\/runes(?:\/v1)?\/?(?:$|\?|(?:blocks|transactions)\/[^/]*\/activity(?:\?|$))/.test(vector.path);

/** All rules, in order of precedence. The first rule that applies to a request decides. */
export const RULES: readonly Rule[] = [
  {
    name: 'OPTIONS is always a preflight: 204',
    applies: (v) => v.method === 'OPTIONS' && v.status !== 204,
    check: (_v, answer) => expectStatus(204, answer),
  },
  {
    name: 'other methods on an API path: 405 with Allow',
    applies: (v) => ['POST', 'PUT', 'DELETE', 'PATCH'].includes(v.method) && isApiPath(v),
    check: (_v, answer) => [
      ...expectError(405, 'Method Not Allowed', answer),
      ...(answer.headers['allow'] === 'GET, HEAD, OPTIONS' ? [] : ['no Allow']),
    ],
  },
  {
    name: 'the landing page is at /',
    applies: (v) => v.path === '/',
    check: (_v, answer) => [...expectStatus(200, answer), ...(answer.body.startsWith('<!doctype html>') ? [] : ['no page'])],
  },
  {
    name: 'numbers other than plain decimal digits up to 2^53 - 1: 400',
    applies: (v) => v.status !== 400 && numbers(v).some((text) => !/^[0-9]+$/.test(text) || Number(text) > Number.MAX_SAFE_INTEGER),
    check: (_v, answer) => expectError(400, 'Bad Request', answer),
  },
  {
    name: 'one ETag for each answer, so the recorded one does not match',
    applies: (v) => v.status === 304 && (v.request_headers?.['If-None-Match'] ?? '').includes(RECORDED_ETAG),
    check: (_v, answer) => [...expectStatus(200, answer), ...(answer.headers['etag'] === undefined ? ['no etag'] : [])],
  },
  {
    name: 'if-none-match * matches: 304',
    applies: (v) => v.request_headers?.['If-None-Match'] === '*',
    check: (_v, answer) => expectStatus(304, answer),
  },
  {
    name: 'the status names this server',
    applies: (v) => v.group === 'status' && v.method === 'GET',
    check: (v, answer) => {
      const recorded = v.body as Record<string, unknown>;
      const { block_time, ...own } = JSON.parse(answer.body) as Record<string, unknown>;
      const same = { ...own, server_version: recorded['server_version'] };
      return JSON.stringify(same) === JSON.stringify(recorded) &&
        Number.isSafeInteger(block_time) &&
        String(own['server_version']).startsWith('rune-activity-mirror v')
        ? expectStatus(200, answer)
        : [`body ${answer.body}`];
    },
  },
  {
    name: 'ids with 0x or upper case are found',
    applies: (v) => /^(?:0x[0-9a-f]{64}|[0-9A-F]*[A-F][0-9A-F]*)$/.test(id(v)) && id(v).length >= 64,
    check: (v, answer) => {
      const { limit, offset, total, results } = envelopeOf(answer.body);
      const found = limit === Number(query(v).get('limit') ?? 20) && offset === 0 && total === 21 && results.length === Math.min(limit, 21);
      return [...expectStatus(200, answer), ...(found ? [] : [`body ${answer.body.slice(0, 80)}`])];
    },
  },
  {
    name: 'any hash, with or without leading zeros: 200, empty when unknown',
    applies: (v) => v.status === 400 && v.path.includes('/blocks/') && /^[0-9a-f]{64}$/.test(id(v)),
    check: (_v, answer) => [...expectStatus(200, answer), ...(envelopeOf(answer.body).total === 0 ? [] : ['not empty'])],
  },
  {
    name: 'over-long ids: a height that does not exist, or no tx_id',
    applies: (v) => v.status === 404 && id(v).length > 100,
    check: (v, answer) =>
      v.path.includes('/blocks/')
        ? [...expectStatus(200, answer), ...(envelopeOf(answer.body).total === 0 ? [] : ['not empty'])]
        : expectError(400, 'Bad Request', answer),
  },
  {
    name: 'an offset at or past the end: the true total',
    applies: (v) =>
      v.group !== 'unknown' &&
      v.status === 200 &&
      v.method === 'GET' &&
      Number(query(v).get('offset')) > 0 &&
      envelopeOf(recordedBody(v)).total === 0,
    check: (v, answer) => {
      const [recorded, own] = [envelopeOf(recordedBody(v)), envelopeOf(answer.body)];
      const same = JSON.stringify({ ...own, total: 0 }) === JSON.stringify(recorded);
      return [...expectStatus(200, answer), ...(same && own.total > 0 && own.total <= own.offset ? [] : [`body ${answer.body}`])];
    },
  },
  {
    name: 'the shape of 404 bodies',
    applies: (v) => v.status === 404 && v.method !== 'HEAD',
    check: (v, answer) => [
      ...expectError(404, 'Not Found', answer),
      ...((JSON.parse(answer.body) as { message: string }).message === (v.body as { message: string }).message ? [] : ['another message']),
    ],
  },
];

/**
 * Returns the name of the rule that applies, and the problems with the answer. If no rule applies, the answer must
 * equal the recording.
 */
export function judge(vector: Vector, answer: Answer): { rule: string | undefined; problems: string[] } {
  const rule = RULES.find((r) => r.applies(vector));
  if (rule !== undefined) {
    try {
      return { rule: rule.name, problems: rule.check(vector, answer) };
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return { rule: rule.name, problems: [`no JSON: ${answer.body.slice(0, 200)}`] };
    }
  }
  const problems = expectStatus(vector.status, answer);
  if (answer.body !== recordedBody(vector)) problems.push(`body ${answer.body.slice(0, 200)}, not ${recordedBody(vector).slice(0, 200)}`);
  return { rule: undefined, problems };
}
