/**
 * The API's description, `openapi.json`, as OpenAPI 3.1. It follows from a build's manifest alone: page sizes, dialect, whether there are lists by
 * operation, and the highest block for an example. Schemas come from the zod contract, so that a description can't say what a check does not hold.
 */
import { z } from 'zod';
import { bulkFiles } from '../contract/bulk.ts';
import { parameterSchemas } from '../contract/parameters.ts';
import { digestsFile, errorResponse, type Manifest, manifest as manifestSchema, responseSchemas, status } from '../contract/schemas.ts';
import { blockFigures, byOperation, feed, latestBlocks, runeFigures, stats, statsFile } from '../contract/stats.ts';
import { errorBody, notFound, RETRY_LATER } from '../http/errors.ts';
import { API_HEADERS, cachingHeaders } from '../http/headers.ts';
import { defaultLimit, maximumLimit, type Site, siteOf } from '../pages/lists.ts';
import { DIGESTS_PER_FILE, RANGES_PATH, STATS_PER_FILE } from '../pages/paths.ts';
import { serverVersion } from '../version.ts';
import { blockExamples, EXAMPLE_TX, errorExample, refusals, transactionExamples } from './openapiExamples.ts';

/** Version of the API: what it answers, and not of the program that does. docs/api-changelog.md has its history, and what raises it. */
export const API_VERSION = '1.1.0';

type Json = Readonly<Record<string, unknown>>;

/** What the parts of the description are made for. */
interface Subject {
  readonly site: Site;
  /** The highest block that is held. */
  readonly tip: number;
  readonly version: string;
}

/** The whole document, ready for JSON. The same manifest makes the same keys in the same order. */
function openapiDocument(manifest: Manifest): Json {
  const subject: Subject = { site: siteOf(manifest), tip: manifest.heights.at(-1)?.[1] ?? 0, version: manifest.version };
  return {
    openapi: '3.1.1',
    info: {
      title: 'Rune activity mirror',
      summary: 'Bitcoin rune activity, read-only.',
      description: describeApi(subject.site),
      license: { name: 'MIT (the program)', identifier: 'MIT' },
      version: API_VERSION,
    },
    // Relative to this document, which lies at the mirror's root: right below any path, and on a copy.
    servers: [{ url: '.', description: 'This mirror: paths begin at the folder that holds openapi.json.' }],
    security: [],
    tags: [
      { name: 'Activity', description: 'What happened to runes, by transaction and by block.' },
      { name: 'Mirror', description: 'What this mirror holds.' },
      { name: 'Figures', description: 'What blocks and runes did, counted when the mirror was made.' },
      ...(subject.site.parquet
        ? [{ name: 'Bulk data', description: 'All records as Parquet files, for programs that want more than pages.' }]
        : []),
    ],
    paths: {
      ...Object.fromEntries(listOperations(subject).map((operation) => [operation.path, { get: listOperation(operation, subject.site) }])),
      ...Object.fromEntries(fileOperations(subject).map((operation) => [operation.path, { get: fileOperation(operation) }])),
    },
    components: { schemas: componentSchemas(subject.site), parameters: parameters(subject), responses: RESPONSES, headers: HEADERS },
  };
}

/** The content of `openapi.json`. */
export const openapiText = (manifest: Manifest): string => `${JSON.stringify(openapiDocument(manifest), null, 1)}\n`;

const describeApi = (site: Site): string => `Every page of every transaction's and every block's rune activity, made ahead as static files.

**Order**: in a block the last transaction comes first, in a transaction the last event. **Windows**: \`limit\` and \`offset\` count records; the limit is
${defaultLimit(site)} unless given, and at most ${maximumLimit(site)}. An offset past the end is answered with no results and the true \`total\`.
**Unknown ids** are answered with \`total: 0\`, not with an error.

**Paths**: \`/runes/...\` without \`v1\` is the same as \`/runes/v1/...\`. Other parameters than those named here are ignored. A parameter may be given once.
**Methods**: \`GET\`, \`HEAD\` (the same without a body) and \`OPTIONS\` (a CORS preflight, 204). There are no keys.

**Caching**: answers have a strong \`ETag\`, and \`If-None-Match\` gets a 304. Ask again each time: a block that was replaced changes its answer.
**CORS**: any page may read every answer.

**Hosts without code** (nginx, Caddy, plain files) answer with what there is as a file: a window that is none is refused with 501, an id that is not
held with 404. Where there are files alone, \`/runes/v1/blocks/840000.json\` is the first page of a list, and the paths that end in \`/activity\` do not exist.

Hashes in answers are lower-case hex digits ${site.dialect === 'contract' ? 'with' : 'without'} \`0x\`; requests may spell them either way.`;

const schemasOf = new Map<string, Json>();

/** The schemas that have a name, as JSON Schema. They depend on the dialect and on whether there are Parquet files; making them takes most of the document's time. */
function componentSchemas(site: Site): Json {
  const key = `${site.dialect} ${site.parquet}`;
  const made = schemasOf.get(key) ?? makeSchemas(site);
  schemasOf.set(key, made);
  return made;
}

function makeSchemas(site: Site): Json {
  const registry = z.registry<{ id: string }>();
  const named = {
    ...responseSchemas(site.dialect),
    Error: errorResponse,
    Status: status,
    Manifest: manifestSchema,
    Digests: digestsFile,
    ByOperation: byOperation,
    BlockFigures: blockFigures,
    RuneFigures: runeFigures,
    Stats: stats,
    StatsOfHundred: statsFile,
    LatestBlocks: latestBlocks,
    Feed: feed,
    ...(site.parquet ? { BulkFiles: bulkFiles } : {}),
  };
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, {
    uri: (id) => `#/components/schemas/${id}`,
    // A later version may add fields, so clients are not told to refuse them.
    override: ({ jsonSchema }) => {
      delete jsonSchema.additionalProperties;
    },
  });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, bare(schema)]));
}

/** A schema within a document that says the dialect for all, and where the path of a schema is its id. */
const bare = ({ $schema: _dialect, $id: _id, ...schema }: z.core.JSONSchema.BaseSchema): Json => schema;

/** Parameters by name. */
function parameters({ site, tip }: Subject): Json {
  const schemas = parameterSchemas(site);
  const make = (name: keyof typeof schemas, where: 'path' | 'query', description: string, more: Json = {}): Json => ({
    name,
    in: where,
    required: where === 'path',
    description,
    schema: bare(z.toJSONSchema(schemas[name], { io: 'input' })),
    ...more,
  });
  return {
    tx_id: make('tx_id', 'path', 'Id of a transaction: 64 hex digits, with or without `0x`, in any case. The example is a real etching.', {
      example: EXAMPLE_TX,
    }),
    block: make(
      'block',
      'path',
      'A height in decimal digits, or the hash of a block: 64 hex digits, with or without `0x`, in any case. 64 decimal digits are a hash. The example is the highest block held.',
      { example: String(tip) },
    ),
    offset: make('offset', 'query', 'How many records of the list to pass over, in decimal digits.'),
    limit: make('limit', 'query', 'How many records to answer with at most, in decimal digits.'),
    ...(site.operationPages
      ? { operation_type: make('operation_type', 'query', 'Only the records of this operation; `total` counts only these.') }
      : {}),
    first_of_thousand: make('first_of_thousand', 'path', 'The first of a thousand heights: a multiple of 1000.', {
      example: tip - (tip % DIGESTS_PER_FILE),
    }),
    first_of_hundred: make('first_of_hundred', 'path', 'The first of a hundred heights: a multiple of 100.', {
      example: tip - (tip % STATS_PER_FILE),
    }),
  };
}

const HEADERS: Json = {
  ETag: header('Changes when and only when the body does. Send it back as `If-None-Match`.'),
  'Cache-Control': header('Clients ask again each time.', cachingHeaders(false)['cache-control']),
  'CDN-Cache-Control': header(
    'Only with records of blocks that are six or more below the highest: a CDN may hold these for a day.',
    cachingHeaders(true)['cdn-cache-control'],
  ),
  'Access-Control-Allow-Origin': header('Any page may read the answer.', API_HEADERS['access-control-allow-origin']),
  Allow: header('The methods that the path has.', 'GET, HEAD, OPTIONS'),
  'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer', minimum: 0 }, example: 5 },
};

function header(description: string, example?: string): Json {
  return { description, schema: { type: 'string' }, ...(example === undefined ? {} : { example }) };
}

const reference = (kind: 'schemas' | 'parameters' | 'responses' | 'headers', name: string): Json => ({
  $ref: `#/components/${kind}/${name}`,
});
const withHeaders = (...names: string[]): Json => Object.fromEntries(names.map((name) => [name, reference('headers', name)]));
const CACHED = ['ETag', 'Cache-Control', 'Access-Control-Allow-Origin'];

function errorAnswer(description: string, headers: readonly string[], examples: Json): Json {
  return {
    description,
    headers: withHeaders('Access-Control-Allow-Origin', ...headers),
    content: { 'application/json': { schema: reference('schemas', 'Error'), ...examples } },
  };
}

/** Answers that are the same for all operations. */
const RESPONSES: Json = {
  NotModified: { description: 'The answer is the one that `If-None-Match` names. No body.', headers: withHeaders(...CACHED) },
  NotFound: errorAnswer('There is no such file. (A host without code answers so for ids that are not held.)', [], {
    example: JSON.parse(notFound('GET', '/runes/v1/nothing').body),
  }),
  MethodNotAllowed: errorAnswer('To other methods than `GET`, `HEAD` and `OPTIONS`.', ['Allow'], {
    example: errorExample(405, 'POST is not allowed on this path; the API is read-only'),
  }),
  Unavailable: errorAnswer(
    'A file is missing or cannot be read, mostly because the mirror is being replaced at this moment. Try again.',
    ['Retry-After'],
    {
      example: JSON.parse(errorBody(503, RETRY_LATER).body),
    },
  ),
};

/** An operation that answers with a window of a list. */
interface ListOperation {
  readonly path: string;
  readonly id: string;
  readonly summary: string;
  readonly description: string;
  readonly parameters: readonly string[];
  readonly examples: Json;
  /** Requests that are refused, by the name of their example. */
  readonly refused: Readonly<Record<string, string>>;
}

function listOperations({ site }: Subject): ListOperation[] {
  const block = (rest: string) => `/runes/v1/blocks/840000/activity${rest}`;
  const tx = (rest: string) => `/runes/v1/transactions/${EXAMPLE_TX}/activity${rest}`;
  const tooMany = `?limit=${maximumLimit(site) + 1}`;
  return [
    {
      path: '/runes/v1/transactions/{tx_id}/activity',
      id: 'listTransactionActivity',
      summary: 'Activity of a transaction',
      description: 'The records of a transaction, the last event first. `operation_type` is ignored here.',
      parameters: ['tx_id', 'offset', 'limit'],
      examples: transactionExamples(site),
      refused: { limit: tx(tooMany), offset: tx('?offset=-1'), tx_id: '/runes/v1/transactions/abc/activity' },
    },
    {
      path: '/runes/v1/blocks/{block}/activity',
      id: 'listBlockActivity',
      summary: 'Activity of a block',
      description: `The records of a block, by its height or its hash, the last transaction first. ${
        site.operationPages
          ? 'With `operation_type` only those of one operation.'
          : 'This mirror has no lists by operation: `operation_type` is answered with 400.'
      }`,
      parameters: ['block', 'offset', 'limit', ...(site.operationPages ? ['operation_type'] : [])],
      examples: blockExamples(site),
      refused: {
        limit: block(tooMany),
        offset: block('?offset=abc'),
        operation_type: block(`?operation_type=${site.operationPages ? 'transfer' : 'mint'}`),
        block: '/runes/v1/blocks/abc/activity',
      },
    },
  ];
}

function listOperation({ id, summary, description, parameters, examples, refused }: ListOperation, site: Site): Json {
  return {
    operationId: id,
    tags: ['Activity'],
    summary,
    description,
    parameters: parameters.map((name) => reference('parameters', name)),
    responses: {
      200: {
        description: 'The window. An id that is not held has `total: 0`.',
        headers: withHeaders(...CACHED, 'CDN-Cache-Control'),
        content: { 'application/json': { schema: reference('schemas', 'ActivityList'), examples } },
      },
      304: reference('responses', 'NotModified'),
      400: errorAnswer('A parameter broke a rule; the message names both.', [], { examples: refusals(refused, site) }),
      404: reference('responses', 'NotFound'),
      405: reference('responses', 'MethodNotAllowed'),
      503: reference('responses', 'Unavailable'),
    },
  };
}

/** An operation that answers with a file of the build. */
interface FileOperation {
  readonly path: string;
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  /** The name of the answer's schema. */
  readonly schema: string;
  readonly parameters?: readonly string[];
  readonly example?: Json;
}

function fileOperations({ site, tip, version }: Subject): FileOperation[] {
  return [
    {
      path: '/runes/v1/',
      id: 'getStatus',
      tag: 'Mirror',
      summary: 'Status and highest block',
      description: 'Also at `/runes/v1`, `/runes/` and `/runes`; where there are files alone, at `/runes/v1/index.json`.',
      schema: 'Status',
      example: { server_version: serverVersion(version), status: 'ready', block_height: tip },
    },
    {
      path: '/runes/v1/manifest.json',
      id: 'getManifest',
      tag: 'Mirror',
      summary: 'What the mirror holds',
      description: 'Heights, counts, page sizes, dialect, and a digest of all data.',
      schema: 'Manifest',
    },
    {
      path: '/runes/v1/digests/{first_of_thousand}.json',
      id: 'getDigests',
      tag: 'Mirror',
      summary: 'Digests of a thousand blocks',
      description: 'A digest of the records of each block, to compare mirrors by. 404 when none of the heights has activity.',
      schema: 'Digests',
      parameters: ['first_of_thousand'],
    },
    {
      path: '/runes/v1/blocks.json',
      id: 'getLatestBlocks',
      tag: 'Figures',
      summary: 'The last blocks',
      description: 'The last hundred blocks with their figures, for clients that poll.',
      schema: 'LatestBlocks',
    },
    {
      path: '/runes/v1/feed.json',
      id: 'getFeed',
      tag: 'Figures',
      summary: 'A feed of the last blocks',
      description: 'JSON Feed 1.1, for feed readers.',
      schema: 'Feed',
    },
    {
      path: '/runes/v1/stats.json',
      id: 'getStats',
      tag: 'Figures',
      summary: 'Figures of all blocks',
      description: 'Totals, activity over time, and the runes with the most records, for charts.',
      schema: 'Stats',
    },
    {
      path: '/runes/v1/stats/{first_of_hundred}.json',
      id: 'getStatsOfHundred',
      tag: 'Figures',
      summary: 'Figures of a hundred heights',
      description: 'The figures of each block and of each rune in these blocks. 404 when none of the heights has activity.',
      schema: 'StatsOfHundred',
      parameters: ['first_of_hundred'],
    },
    ...(site.parquet
      ? [
          {
            path: `/${RANGES_PATH}`,
            id: 'getBulkFiles',
            tag: 'Bulk data',
            summary: 'The Parquet files of all records',
            description: 'A file for each hundred heights with activity, beside this list, as in `activity/840000.parquet`.',
            schema: 'BulkFiles',
          },
        ]
      : []),
  ];
}

function fileOperation({ id, tag, summary, description, schema, parameters = [], example }: FileOperation): Json {
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    ...(parameters.length > 0 ? { parameters: parameters.map((name) => reference('parameters', name)) } : {}),
    responses: {
      200: {
        description: `${summary}.`,
        headers: withHeaders(...CACHED),
        content: { 'application/json': { schema: reference('schemas', schema), ...(example === undefined ? {} : { example }) } },
      },
      304: reference('responses', 'NotModified'),
      404: reference('responses', 'NotFound'),
      405: reference('responses', 'MethodNotAllowed'),
      503: reference('responses', 'Unavailable'),
    },
  };
}
