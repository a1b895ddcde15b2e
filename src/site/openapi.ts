/** `openapi.json`, in OpenAPI 3.1. Its schemas are those that check data, so that the description and the checks cannot differ. */
import { z } from 'zod';
import { answerSchemas, unknownRune } from '../contract/answerSchemas.ts';
import { RULES } from '../contract/fields.ts';
import { rowsIndex } from '../contract/rowsSchemas.ts';
import { count } from '../contract/schemaParts.ts';
import {
  changesSchemas,
  digestsFile,
  errorResponse,
  type Manifest,
  manifest as manifestSchema,
  searchFile,
  status,
} from '../contract/schemas.ts';
import { blockStats, byOperation, feed, latestBlocks, runeStats, stats, statsFile } from '../contract/statsSchemas.ts';
import { OPERATIONS } from '../pages/blockAndTransactionLists.ts';
import { DIGESTS_PER_FILE, STATS_PER_FILE } from '../pages/filePaths.ts';
import { type BuiltSite, defaultLimit, maximumLimit, type Site, siteOf } from '../pages/mirrorOptions.ts';
import { absentPart, LONGEST_ADDRESS } from '../pages/optionalEndpoints.ts';
import { RUNE } from '../pages/parseIds.ts';
import { errorBody, notAllowed, notFound, RETRY_LATER } from '../serve/http/errorBodies.ts';
import { ALLOWED_METHODS, API_HEADERS, cachingHeaders } from '../serve/http/headers.ts';
import { type Endpoint, endpointsOf, isList, type Json, parametersOf, partOf, tipOf } from './endpoints.ts';
import { EXAMPLE_ADDRESS, EXAMPLE_TX, refusals } from './openapiExamples.ts';

/** Version of the API, not of the program. CHANGELOG.md has its history, and says when to raise it. */
export const API_VERSION = '1.7.0';

/** Returns the document. Equal manifests give the same keys in the same order. */
export function openapiText(manifest: Manifest): string {
  const site = siteOf(manifest);
  const parameters = Object.entries(parametersIn(site, tipOf(manifest))).map(([name, one]) => [name, describeParameter(name, one)]);
  const document = {
    openapi: '3.1.1',
    info: {
      title: 'Rune activity mirror',
      summary: 'Bitcoin rune activity, read-only.',
      description: describeApi(site),
      license: { name: 'MIT (the program)', identifier: 'MIT' },
      version: API_VERSION,
    },
    // The URL is relative to this document, so it is also right for copies of the mirror, and for mirrors below any path.
    servers: [{ url: '.', description: 'This mirror. Paths start at the folder of openapi.json.' }],
    security: [],
    tags: tagsOf(site),
    paths: Object.fromEntries(endpointsOf(manifest, site).map((endpoint) => [endpoint.path, { get: operationOf(endpoint, site) }])),
    components: { schemas: schemasOf(site), parameters: Object.fromEntries(parameters), responses: RESPONSES, headers: HEADERS },
  };
  return `${JSON.stringify(document, null, 1)}\n`;
}

const TAGS: readonly { readonly name: Endpoint['tag']; readonly description: string }[] = [
  { name: 'Activity', description: 'Records of rune events, by transaction, block, rune and address.' },
  { name: 'Etchings', description: 'Runes: their terms and supply.' },
  { name: 'Balances', description: 'Balances of addresses, and holders of runes.' },
  { name: 'Outputs', description: 'Unspent outputs with runes.' },
  { name: 'Mirror', description: 'Status and content of this mirror.' },
  { name: 'Statistics', description: 'Activity of blocks and runes, counted when the mirror was built.' },
  { name: 'Bulk data', description: 'Ledger rows as Parquet files, for other mirrors and for programs that need more than pages.' },
];

export const tagsOf = ({ parquet }: Site): typeof TAGS => TAGS.filter(({ name }) => parquet || name !== 'Bulk data');

/** Returns the rules of the API as paragraphs. */
export const describeApi = (site: Site): string => `Rune activity of transactions and blocks, from static files.

**Order**: in a block the last transaction comes first, in a transaction the last event. **Windows**: \`limit\` and \`offset\` count entries. The default
limit is ${defaultLimit(site)}, the maximum ${maximumLimit(site)}. An offset past the end gets no results and the true \`total\`.
**Unknown ids** get \`total: 0\`, not an error.

**Other parts of the former API** (etchings, holders, balances, outputs, activity by rune and by address): \`lists\` in the manifest names the parts
that this mirror has. Other parts get 501, which says nothing about the rune or address.

**Paths**: \`/runes/...\` without \`v1\` is the same as \`/runes/v1/...\`, except for paths that end in \`.json\`.
Unknown parameters are ignored. Give each parameter once.
**Methods**: \`GET\`, \`HEAD\` (the same without a body) and \`OPTIONS\` (CORS preflight, 204). No API key is needed.

**Caching**: answers have a strong \`ETag\`, and \`If-None-Match\` gets a 304. Revalidate every time, because a reorganisation replaces blocks.
**CORS**: any website may read every answer.

**Hosts without code** (nginx, Caddy, plain files) answer only from whole files: 501 for a window that is not a file, 404 for an unknown id.
On plain file hosts \`/runes/v1/blocks/840000.json\` is the first page of a list, and paths ending in \`/activity\` do not exist.

Hashes in answers are lower-case hex digits ${site.dialect === 'contract' ? 'with' : 'without'} \`0x\`; requests may use either form.`;

function schemasOf(site: Site): Json {
  const registry = z.registry<{ id: string }>();
  const named = {
    ...answerSchemas(site.dialect),
    ...(site.dialect === 'hiro' ? { UnknownRune: unknownRune } : {}),
    Error: errorResponse,
    Status: status,
    Manifest: manifestSchema,
    Digests: digestsFile,
    ...changesSchemas(site.dialect),
    ByOperation: byOperation,
    BlockStats: blockStats,
    RuneStats: runeStats,
    Stats: stats,
    StatsOfHundred: statsFile,
    LatestBlocks: latestBlocks,
    Feed: feed,
    SearchFile: searchFile,
    ...(site.parquet ? { RowsIndex: rowsIndex } : {}),
  };
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, {
    uri: (id) => `#/components/schemas/${id}`,
    // A later version may add fields, so clients must not refuse unknown fields.
    override: ({ jsonSchema }) => {
      delete jsonSchema.additionalProperties;
    },
  });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, bare(schema)]));
}

/** Removes `$schema` and `$id`. The document sets the schema dialect, and a schema's path is its id. */
const bare = ({ $schema: _dialect, $id: _id, ...schema }: z.core.JSONSchema.BaseSchema): Json => schema;

const HASH = RULES.hash.pattern;

/** A parameter of requests. Those in paths have an example. */
type Parameter = readonly [schema: z.ZodType, description: string, example?: string | number];

/** Hosts parse parameters without the schema library (pages/parseRequest.ts). test/site/openapi.test.ts checks that both agree. */
export function parametersIn(site: Site, tip: number): Readonly<Record<string, Parameter>> {
  return {
    tx_id: [
      z.string().regex(new RegExp(`^${HASH}$`)),
      'Transaction id: 64 hex digits, with or without `0x`, in any case. The example is a real etching.',
      EXAMPLE_TX,
    ],
    block: [
      z.string().regex(new RegExp(`^(?:${HASH}|[0-9]+)$`)),
      'Block height in decimal digits, or block hash: 64 hex digits, with or without `0x`, in any case. 64 decimal digits are a hash. The example is the highest block.',
      String(tip),
    ],
    rune: [z.string().regex(RUNE), 'Id of a rune, its number, or its name. Names are compared without spacers (`•`, `.`) and case.', '1:0'],
    address: [
      z.string().min(1).max(LONGEST_ADDRESS),
      'Address of 1 to 100 characters. Bech32 that is all upper case is read as lower case. Any other text is read as it is.',
      EXAMPLE_ADDRESS,
    ],
    output: [
      z.string().regex(new RegExp(`^${HASH}:[0-9]+$`)),
      'Outpoint: transaction id, with or without `0x`, a colon, and the index of the output.',
      `${EXAMPLE_TX}:1`,
    ],
    offset: [count.default(0), 'Entries to skip, in decimal digits.'],
    limit: [z.int().min(1).max(maximumLimit(site)).default(defaultLimit(site)), 'Maximum number of entries to return, in decimal digits.'],
    ...(site.operationPages ? { operation_type: [z.enum(OPERATIONS), 'Return and count only records of this operation.'] as const } : {}),
    first_of_thousand: [
      count.multipleOf(DIGESTS_PER_FILE),
      'First of a thousand heights: a multiple of 1000.',
      tip - (tip % DIGESTS_PER_FILE),
    ],
    first_of_hundred: [count.multipleOf(STATS_PER_FILE), 'First of a hundred heights: a multiple of 100.', tip - (tip % STATS_PER_FILE)],
    recent_height: [count, 'Height of one of the newest 144 blocks. The example is the highest block.', tip],
    letters: [z.string().regex(/^[a-z]{1,2}$/), 'The first two letters of a name without spacers, in lower case.', 'do'],
  };
}

function describeParameter(name: string, [type, description, example]: Parameter): Json {
  const schema = bare(z.toJSONSchema(type, { io: 'input' }));
  const where = example === undefined ? { in: 'query', required: false } : { in: 'path', required: true };
  return { name, ...where, description, schema, example };
}

const HEADERS: Json = {
  ETag: header('Changes only when the body changes. Send it back as `If-None-Match`.'),
  'Cache-Control': header('Clients revalidate every time.', cachingHeaders(false)['cache-control']),
  'CDN-Cache-Control': header(
    'Only in answers whose records are all in blocks at least six below the highest. A CDN may cache such an answer for a day.',
    cachingHeaders(true)['cdn-cache-control'],
  ),
  'Access-Control-Allow-Origin': header('Any website may read the answer.', API_HEADERS['access-control-allow-origin']),
  Allow: header('Allowed methods.', ALLOWED_METHODS),
  'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer', minimum: 0 }, example: 5 },
};

function header(description: string, example?: string): Json {
  return { description, schema: { type: 'string' }, example };
}

const reference = (kind: 'schemas' | 'parameters' | 'responses' | 'headers', name: string): Json => ({
  $ref: `#/components/${kind}/${name}`,
});
const withHeaders = (...names: string[]): Json => Object.fromEntries(names.map((name) => [name, reference('headers', name)]));
const json = (schema: string, more: Json = {}): Json => ({ 'application/json': { schema: reference('schemas', schema), ...more } });
const CACHED = ['ETag', 'Cache-Control', 'Access-Control-Allow-Origin'];

const exampleOf = ({ body }: ReturnType<typeof errorBody>): Json => ({ example: JSON.parse(body) });

function errorAnswer(description: string, examples: Json, headers: readonly string[] = [], schema = 'Error'): Json {
  return { description, headers: withHeaders('Access-Control-Allow-Origin', ...headers), content: json(schema, examples) };
}

const RESPONSES: Json = {
  NotModified: { description: 'The answer still matches `If-None-Match`. No body.', headers: withHeaders(...CACHED) },
  NotFound: errorAnswer(
    'File not found. Hosts without code also send this for unknown ids.',
    exampleOf(notFound('GET', '/runes/v1/nothing')),
  ),
  MethodNotAllowed: errorAnswer('The method is not `GET`, `HEAD` or `OPTIONS`.', exampleOf(notAllowed('POST')), ['Allow']),
  NotInThisMirror: errorAnswer(
    'The mirror does not have this part of the API. `lists` in the manifest names the parts that it has.',
    exampleOf(errorBody(501, absentPart('etchings', { lists: {} }))),
  ),
  Unavailable: errorAnswer(
    'A file is missing or unreadable, usually because the mirror is being replaced. Try again.',
    exampleOf(errorBody(503, RETRY_LATER)),
    ['Retry-After'],
  ),
};

function operationOf(endpoint: Endpoint, site: BuiltSite): Json {
  const { id, tag, summary, description, schema, notFound: missing, content, refused } = endpoint;
  const part = partOf(endpoint);
  const parameters = parametersOf(endpoint, site);
  const isActivity = refused !== undefined && part === undefined;
  // A mirror without this part answers 501 to every request for it. So the examples of 400 are from a mirror with this part.
  const subject = part === undefined ? site : { ...site, lists: { [part]: { total: 0 } } };
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    parameters: parameters.length === 0 ? undefined : parameters.map((name) => reference('parameters', name)),
    responses: {
      200: {
        description: isList(endpoint) ? 'The window. An unknown id has `total: 0`.' : `${summary}.`,
        headers: withHeaders(...CACHED, ...(isActivity ? ['CDN-Cache-Control'] : [])),
        content: json(schema, content),
      },
      304: reference('responses', 'NotModified'),
      400: refused && errorAnswer('A parameter breaks its rule. The message names both.', { examples: refusals(refused, subject) }),
      404: missing === undefined ? reference('responses', 'NotFound') : notFoundAnswer(missing, site),
      405: reference('responses', 'MethodNotAllowed'),
      501: part && reference('responses', 'NotInThisMirror'),
      503: reference('responses', 'Unavailable'),
    },
  };
}

/** Returns the 404 of a single object. In dialect `hiro`, it has the body of Hiro's server. */
function notFoundAnswer(message: string, { dialect }: BuiltSite): Json {
  const description = `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
  if (dialect === 'contract') return errorAnswer(description, exampleOf(errorBody(404, message)));
  return errorAnswer(description, { example: { error: 'Not found' } }, [], 'UnknownRune');
}
