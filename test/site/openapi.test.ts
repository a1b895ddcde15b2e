/**
 * Tests the API's description. It passes a linter, works at any base path, and agrees with recorded exchanges, with pages of builds, and
 * with the function that parses requests (src/pages).
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Manifest } from '../../src/contract/schemas.ts';
import { FORMAT } from '../../src/format/formatVersion.ts';
import { OPERATIONS } from '../../src/pages/blockAndTransactionLists.ts';
import { type Dialect, siteOf } from '../../src/pages/mirrorOptions.ts';
import { parseTarget } from '../../src/pages/parseRequest.ts';
import { API_VERSION, openapiText } from '../../src/site/openapi.ts';
import { EXAMPLE_TX } from '../../src/site/openapiExamples.ts';
import { CONFORMANCE_INPUTS, filesBelow, temporaryFolder, testBuild } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { ROOT } from '../support/cli.ts';
import { differencesIn, type Recording, readVectors } from '../support/recordedLists.ts';
import { type LocalHost, startServer } from '../support/server.ts';

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly required: boolean;
  readonly schema: Readonly<Record<string, unknown>>;
}
interface Content {
  readonly 'application/json': {
    readonly schema: unknown;
    readonly example?: unknown;
    readonly examples?: Record<string, { summary: string; value: unknown }>;
  };
}
interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly $ref: string }[];
  readonly responses: Readonly<Record<string, { readonly description?: string; readonly content?: Content; readonly $ref?: string }>>;
}
type Judge = 'schema' | 'request map';
interface Document {
  readonly info: { readonly version: string };
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, { readonly get: Operation }>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>>; readonly parameters: Readonly<Record<string, Parameter>> };
}

const manifestOf = (changes: Partial<Manifest> = {}): Manifest => ({
  generator: 'rune-activity-mirror',
  format: FORMAT,
  version: '0.1.0',
  layout: 'files',
  dialect: 'contract',
  page_sizes: [20, 60],
  operation_pages: true,
  heights: [[840000, 840123]],
  blocks: 124,
  transactions: 124,
  records: 124,
  files: 1000,
  bytes: 100000,
  digest: '0'.repeat(64),
  ...changes,
});
const documentOf = (changes: Partial<Manifest> = {}) => JSON.parse(openapiText(manifestOf(changes))) as Document;

const ROWS = { index: `rows/index-${'0'.repeat(16)}.json`, sha256: '0'.repeat(64) };
const VARIANTS: readonly Partial<Manifest>[] = [
  {},
  { dialect: 'hiro' },
  { layout: 'archive', archive: { root: '3fa04c1b0d5e6f728394a5b6c7d8e9f00f9e8d7c6b5a493827f6e5d0b1c40af3', bytes: 1234 } },
  { operation_pages: false },
  { rows: ROWS },
  { page_sizes: [1] },
  { page_sizes: [20, 60, 1000], dialect: 'hiro', operation_pages: false },
  { heights: [], blocks: 0, transactions: 0, records: 0, files: 0, bytes: 0 },
];

/** Checks requests and answers against a description, as a client would. */
class Checks {
  readonly document: Document;
  readonly #ajv = new Ajv2020({ allErrors: true });
  readonly #checks = new Map<string, ValidateFunction>();

  constructor(document: Document) {
    this.document = document;
    for (const word of ['components', 'example', 'in', 'required']) if (this.#ajv.getKeyword(word) === false) this.#ajv.addKeyword(word);
    this.#ajv.addSchema({ $id: 'http://mirror/', components: { schemas: closed(document.components.schemas) as object } });
  }

  /** Returns a function that checks a value against a named schema. It reports unknown keys as faults. */
  schema(name: string): ValidateFunction {
    const check = this.#checks.get(name) ?? this.#ajv.compile({ $ref: `http://mirror/#/components/schemas/${name}` });
    this.#checks.set(name, check);
    return check;
  }

  parametersOf(path: string): Parameter[] {
    const { parameters = [] } = this.document.paths[path]?.get ?? { parameters: [] };
    return parameters.map(({ $ref }) => {
      const parameter = this.document.components.parameters[$ref.replace('#/components/parameters/', '')];
      if (parameter === undefined) throw new Error(`${$ref} leads nowhere`);
      return parameter;
    });
  }

  /** True if the schema of the parameter allows these values. A parameter that occurs several times is checked as a list. */
  accepts({ schema, required }: Parameter, texts: readonly string[]): boolean {
    if (texts.length === 0) return !required;
    const values = texts.map((text) => (schema['type'] === 'integer' && /^-?(?:0|[1-9][0-9]*)$/.test(text) ? JSON.parse(text) : text));
    return this.#ajv.validate(schema, values.length === 1 ? values[0] : values);
  }

  /**
   * Finds the path of the description that matches a target. Returns it with the values of its parameters, or undefined if none matches.
   */
  read(target: string): { path: string; values: Map<Parameter, string[]> } | undefined {
    // Changes paths without `v1`, and the path of the status, to the form that the description has.
    const named = target.replace(/^\/runes(?!\/v1(?:\/|$))/, '/runes/v1').replace(/^\/runes\/v1$/, '/runes/v1/');
    const url = new URL(named, 'http://mirror');
    for (const path of Object.keys(this.document.paths)) {
      const names: string[] = [];
      const pattern = path.replaceAll('.', '[.]').replace(/\{([a-z_]+)\}/g, (_, name: string) => {
        names.push(name);
        return '([^/]*)';
      });
      const found = new RegExp(`^${pattern}$`).exec(url.pathname);
      if (found === null) continue;
      const inPath = new Map(names.map((name, i) => [name, decodeURIComponent(found[i + 1] ?? '')]));
      const texts = (parameter: Parameter) =>
        parameter.in === 'path' ? [inPath.get(parameter.name) ?? ''] : url.searchParams.getAll(parameter.name);
      return { path, values: new Map(this.parametersOf(path).map((parameter) => [parameter, texts(parameter)])) };
    }
    return undefined;
  }

  /** Returns the names of the parameters whose rules a target breaks, or undefined if no path matches the target. */
  broken(target: string): string[] | undefined {
    const found = this.read(target);
    return found && [...found.values].filter(([parameter, texts]) => !this.accepts(parameter, texts)).map(([{ name }]) => name);
  }
}

/** Returns the schema, changed so that objects may have only the keys that it names. This finds fields that the description lacks. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  return 'properties' in schema ? { ...inner, additionalProperties: false } : inner;
}

describe('openapi.json', () => {
  it.each(VARIANTS)('passes a linter: %j', async (changes) => {
    const config = await createConfig({
      extends: ['recommended'],
      // The path of the status ends with a slash, as in the original API. Static hosts can answer it only with the slash.
      rules: { 'no-path-trailing-slash': 'off' },
    });
    const problems = await lintFromString({ source: openapiText(manifestOf(changes)), config });
    expect(problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`)).toEqual([]);
  });

  it('has only one path with a trailing slash', () => {
    expect(Object.keys(documentOf().paths).filter((path) => path.endsWith('/'))).toEqual(['/runes/v1/']);
  });

  it('follows from the manifest', () => {
    const { parameters, schemas } = documentOf({ page_sizes: [5, 100], operation_pages: false, dialect: 'hiro' }).components;
    expect(parameters['limit']?.schema).toMatchObject({ type: 'integer', minimum: 1, maximum: 100, default: 5 });
    expect(parameters).not.toHaveProperty('operation_type');
    expect(documentOf().paths).not.toHaveProperty(`/${ROWS.index}`);
    expect(documentOf({ rows: ROWS }).paths).toHaveProperty(`/${ROWS.index}`);
    expect(documentOf().components.parameters['operation_type']?.schema).toMatchObject({ enum: [...OPERATIONS] });
    const hash = (document: { schemas: unknown }) =>
      (document.schemas as { Location: { properties: { tx_id: { pattern: string } } } }).Location.properties.tx_id.pattern;
    expect([hash({ schemas }), hash(documentOf().components)]).toEqual(['^[0-9a-f]{64}$', '^0x[0-9a-f]{64}$']);
    expect(openapiText(manifestOf())).toBe(openapiText(manifestOf()));
  });

  it('describes exactly the answers with `limit` and `offset` as windows', () => {
    const operations = Object.values(documentOf().paths).map(({ get }) => get);
    const isWindow = ({ responses }: Operation) => responses['200']?.description?.startsWith('The window') === true;
    const hasOffset = ({ parameters = [] }: Operation) => parameters.some(({ $ref }) => $ref.endsWith('/offset'));
    expect(operations.filter(isWindow).length).toBeGreaterThan(5);
    expect(operations.filter(isWindow)).toEqual(operations.filter(hasOffset));
  });

  it('has its version in the history', () => {
    expect(documentOf().info.version).toBe(API_VERSION);
    expect(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')).toContain(`\n### API ${API_VERSION}\n`);
  });

  it('has unique operation ids and no missing references', () => {
    const operations = Object.values(documentOf().paths).map(({ get }) => get);
    const ids = operations.map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { responses } of operations)
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(['200', '304', '404', '405', '503']));
  });

  it.each(VARIANTS)('has examples that match their schemas: %j', (changes) => {
    const checks = new Checks(documentOf(changes));
    let count = 0;
    for (const { get } of Object.values(checks.document.paths)) {
      for (const { content } of Object.values(get.responses)) {
        if (content === undefined) continue;
        const { schema, example, examples = {} } = content['application/json'];
        const check = checks.schema(String((schema as { $ref: string }).$ref.split('/').at(-1)));
        const values = [...(example === undefined ? [] : [example]), ...Object.values(examples).map(({ value }) => value)];
        for (const value of values) expect([check(value), check.errors]).toEqual([true, null]);
        count += values.length;
      }
    }
    expect(count).toBeGreaterThan(10);
  });
});

describe.each(['contract', 'hiro'] as const)('a mirror in dialect %s', (dialect: Dialect) => {
  const folder = temporaryFolder();
  const out = (name: string) => join(folder, name);
  const documentAt = (name: string) => new Checks(JSON.parse(readFileSync(join(out(name), 'openapi.json'), 'utf8')) as Document);

  async function withServer(name: string, work: (host: LocalHost) => Promise<void>): Promise<void> {
    const host = await startServer(out(name));
    try {
      await work(host);
    } finally {
      await host.close();
    }
  }

  it('has pages, status, manifest, digests, stats and the list of bulk data that match its description', async () => {
    await testBuild(out('sample'), { inputs: [SAMPLE_INPUT], dialect, parquet: true });
    const checks = documentAt('sample');
    const kinds: readonly [pattern: RegExp, schema: string, least: number][] = [
      [/^runes\/v1\/(?:blocks|transactions)\//, 'ActivityList', 500],
      [/^runes\/v1\/blocks\.json$/, 'LatestBlocks', 1],
      [/^runes\/v1\/feed\.json$/, 'Feed', 1],
      [/^runes\/v1\/stats\.json$/, 'Stats', 1],
      [/^runes\/v1\/stats\//, 'StatsOfHundred', 2],
      [/^runes\/v1\/index\.json$/, 'Status', 1],
      [/^runes\/v1\/manifest\.json$/, 'Manifest', 1],
      [/^runes\/v1\/digests\//, 'Digests', 2],
      [/^rows\/index-.*\.json$/, 'RowsIndex', 1],
    ];
    for (const [pattern, name, least] of kinds) {
      const check = checks.schema(name);
      const paths = filesBelow(out('sample')).filter((path) => pattern.test(path));
      const wrong = paths.filter((path) => !check(JSON.parse(readFileSync(join(out('sample'), path), 'utf8'))));
      expect(wrong).toEqual([]);
      expect(paths.length).toBeGreaterThanOrEqual(least);
    }
    // An additional key must be a fault. Otherwise the checks above could not fail.
    expect(checks.schema('ActivityList')({ limit: 1, offset: 0, total: 0, results: [], more: 1 })).toBe(false);
  });

  it('answers the request of an example with that example', async () => {
    const answerTo = async (name: string, target: string) => {
      let body = '';
      await withServer(name, async (host) => {
        body = (await host.send('GET', target)).body;
      });
      return body;
    };
    await testBuild(out('recorded'), { inputs: CONFORMANCE_INPUTS, dialect });
    const { paths } = documentAt('sample').document;
    const textOf = (path: string, status: string, name: string) =>
      JSON.stringify(paths[path]?.get.responses[status]?.content?.['application/json'].examples?.[name]?.value);
    const [transactions, blocks] = ['/runes/v1/transactions/{tx_id}/activity', '/runes/v1/blocks/{block}/activity'];
    const unknown = 'f'.repeat(64);
    expect(await answerTo('sample', `/runes/v1/transactions/${EXAMPLE_TX}/activity?limit=1`)).toBe(textOf(transactions, '200', 'etching'));
    expect(await answerTo('sample', `/runes/v1/transactions/${unknown}/activity?limit=1`)).toBe(textOf(transactions, '200', 'unknown'));
    expect(await answerTo('recorded', '/runes/v1/blocks/840012/activity?limit=1')).toBe(textOf(blocks, '200', 'recorded'));
    expect(await answerTo('sample', `/runes/v1/blocks/${unknown}/activity?limit=1`)).toBe(textOf(blocks, '200', 'unknown'));
    const { examples = {} } = paths[blocks]?.get.responses['400']?.content?.['application/json'] ?? {};
    for (const [name, { summary }] of Object.entries(examples)) {
      const target = summary.replace('GET ', '');
      expect(await answerTo('sample', target)).toBe(textOf(blocks, '400', name));
    }
    expect(Object.keys(examples)).toEqual(['limit', 'offset', 'operation_type', 'block']);
  });
});

describe('the recorded exchanges', () => {
  const checks = new Checks(documentOf({ dialect: 'hiro' }));
  const covered = readVectors().filter(({ method, path }) => method === 'GET' && checks.read(path) !== undefined);
  const withStatus = (status: number) => covered.filter((vector) => vector.status === status);
  const differences = differencesIn('conformance');
  const ruleOf = ({ line }: Recording) => differences.get(line)?.rules[0];
  /** Counts the requests of each group. */
  const tally = (vectors: readonly Recording[], group: (vector: Recording) => string) => {
    const counts: Record<string, number> = {};
    for (const vector of vectors) counts[group(vector)] = (counts[group(vector)] ?? 0) + 1;
    return counts;
  };

  const NUMBERS = 'numbers other than plain decimal digits up to 2^53 - 1: 400';

  it('with 200 match the description, except windows that no client can read', () => {
    const schemaOf = ({ path }: Recording) => checks.schema(checks.read(path)?.path === '/runes/v1/' ? 'Status' : 'ActivityList');
    expect(tally(withStatus(200), (vector) => (schemaOf(vector)(vector.body) ? 'fits' : (ruleOf(vector) ?? vector.path)))).toEqual({
      fits: 541,
      [NUMBERS]: 3,
      // The recorded server has no time in its status.
      'the status names this server': 5,
    });
  });

  it('with 200 are allowed by the description, except refused ones and numbers with leading zeros', () => {
    const group = (vector: Recording) => {
      if (checks.broken(vector.path)?.length === 0) return 'allowed';
      return ruleOf(vector) ?? (/=0+[0-9]/.test(vector.path) ? 'leading zeros' : vector.path);
    };
    expect(tally(withStatus(200), group)).toEqual({ allowed: 527, [NUMBERS]: 19, 'leading zeros': 3 });
  });

  it('with 400 break the rule of the named parameter, except those that a mirror answers', () => {
    const group = (vector: Recording) => {
      const named = /^[a-z]+\/([a-z_]+) /.exec((vector.body as { message: string }).message)?.[1] ?? '';
      return checks.broken(vector.path)?.includes(named) === true ? named : (ruleOf(vector) ?? vector.path);
    };
    expect(tally(withStatus(400), group)).toEqual({
      block: 18,
      limit: 34,
      offset: 16,
      operation_type: 6,
      tx_id: 12,
      'any hash, with or without leading zeros: 200, empty when unknown': 3,
      'ids with 0x or upper case are found': 2,
    });
    expect(withStatus(400).filter(({ body }) => !checks.schema('Error')(body))).toEqual([]);
  });
});

describe('the parameters', () => {
  /**
   * Numbers that JSON Schema and the program's parser of requests judge differently: one of them reads the text as another number, and the
   * other refuses it. A client that writes numbers as JSON never sends a text that the schema refuses. Of the texts that the parser
   * refuses, such a client can only send the number -0.
   */
  const DIFFERENCES: readonly {
    name: string;
    example: string;
    applies(text: string): boolean;
    same(text: string): string;
    refusedBy: Judge;
  }[] = [
    {
      name: 'a number with leading zeros is no integer in JSON, and is taken',
      example: '007',
      applies: (text) => /^0+[0-9]+$/.test(text),
      same: (text) => text.replace(/^0+(?=[0-9])/, ''),
      refusedBy: 'schema',
    },
    {
      name: 'minus zero is an integer in JSON, and is refused',
      example: '-0',
      applies: (text) => text === '-0',
      same: () => '0',
      refusedBy: 'request map',
    },
  ];
  const digits = (least: number, most: number) =>
    fc.array(fc.constantFrom(...'0123456789abcdefABCDEFx'), { minLength: least, maxLength: most }).map((all) => all.join(''));
  const texts = fc.oneof(
    fc.integer({ min: -5, max: 120 }).map(String),
    fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String),
    fc.constantFrom(
      '',
      '-0',
      '0',
      '00',
      '007',
      '1e1',
      '1.0',
      '+5',
      '0x10',
      ' 5',
      '9007199254740991',
      '9007199254740992',
      'null',
      '[]',
      '1,2',
    ),
    fc.constantFrom(...OPERATIONS, 'Mint', 'toString'),
    digits(1, 5),
    digits(62, 68),
    fc.tuple(fc.constantFrom('', '0x', '0X', 'x0'), digits(64, 64)).map((parts) => parts.join('')),
    fc.string(),
  );
  const targets: Readonly<Record<string, (text: string) => string>> = {
    tx_id: (text) => `/runes/v1/transactions/${encodeURIComponent(text)}/activity`,
    block: (text) => `/runes/v1/blocks/${encodeURIComponent(text)}/activity`,
    limit: (text) => `/runes/v1/blocks/840000/activity?limit=${encodeURIComponent(text)}`,
    offset: (text) => `/runes/v1/transactions/${EXAMPLE_TX}/activity?offset=${encodeURIComponent(text)}`,
    operation_type: (text) => `/runes/v1/blocks/840000/activity?operation_type=${encodeURIComponent(text)}`,
  };

  describe.each([[[20, 60]], [[1]], [[5, 7, 100]]])('with page sizes %j', (page_sizes) => {
    const checks = new Checks(documentOf({ page_sizes }));
    const site = siteOf(manifestOf({ page_sizes }));

    it.each(Object.keys(targets))('allow the same %s as the request map', (name) => {
      const parameter = checks.document.components.parameters[name] as Parameter;
      const seen = { true: 0, false: 0 };
      const isInteger = parameter.schema['type'] === 'integer';
      const isTaken = (text: string) => parseTarget((targets[name] as (text: string) => string)(text), site).kind === 'list';
      fc.assert(
        fc.property(texts, (text) => {
          const found = { schema: checks.accepts(parameter, [text]), 'request map': isTaken(text) };
          seen[`${found['request map']}`] += 1;
          const difference = isInteger ? DIFFERENCES.find(({ applies }) => applies(text)) : undefined;
          const both = isTaken(difference?.same(text) ?? text);
          expect(found, text).toEqual({ schema: both, 'request map': both, ...(difference && { [difference.refusedBy]: false }) });
        }),
        { numRuns: 1000 },
      );
      expect(Math.min(seen.true, seen.false)).toBeGreaterThan(0);
    });

    it.each(['limit', 'offset', 'operation_type'])('may omit %s, but not repeat it', (name) => {
      const parameter = checks.document.components.parameters[name] as Parameter;
      const value = name === 'operation_type' ? 'mint' : '1';
      const target = (targets[name] as (text: string) => string)(value);
      const isTaken = (each: string) => parseTarget(each, site).kind === 'list';
      expect([checks.accepts(parameter, []), isTaken(target.replace(/[?].*/, ''))]).toEqual([true, true]);
      expect([checks.accepts(parameter, [value]), isTaken(target)]).toEqual([true, true]);
      expect([checks.accepts(parameter, [value, value]), isTaken(`${target}&${name}=${value}`)]).toEqual([false, false]);
    });
  });

  it.each(DIFFERENCES)('differ from the request map: $name', ({ example, refusedBy }) => {
    const isAllowed = new Checks(documentOf()).accepts(documentOf().components.parameters['offset'] as Parameter, [example]);
    const isTaken = parseTarget((targets['offset'] as (text: string) => string)(example), siteOf(manifestOf())).kind === 'list';
    expect({ isAllowed, isTaken }).toEqual({ isAllowed: refusedBy !== 'schema', isTaken: refusedBy !== 'request map' });
  });
});

describe('the address of the mirror', () => {
  it.each(['https://host/openapi.json', 'https://host/PROJECT/openapi.json', 'https://host/a/b/openapi.json'])(
    'is correct below %s',
    (at) => {
      const base = new URL(documentOf().servers[0]?.url ?? '', at).href.replace(/\/$/, '');
      expect(`${base}/runes/v1/manifest.json`).toBe(at.replace('openapi.json', 'runes/v1/manifest.json'));
    },
  );
});
