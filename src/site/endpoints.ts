/** The endpoints of the API. The description for programs (openapi.ts), the API page and the table in docs/api.md are made from them. */
import type { Manifest } from '../contract/schemas.ts';
import { maximumLimit, type Site } from '../pages/mirrorOptions.ts';
import type { FurtherPart } from '../pages/optionalEndpoints.ts';
import { parsePath } from '../pages/parseRequest.ts';
import { NO_HOLDER, NO_RUNE } from '../pages/respond.ts';
import { serverVersion } from '../version.ts';
import { blockExamples, EXAMPLE_ADDRESS, EXAMPLE_TX, transactionExamples } from './openapiExamples.ts';

export type Json = Readonly<Record<string, unknown>>;

export interface Endpoint {
  readonly path: string;
  readonly id: string;
  readonly summary: string;
  readonly description: string;
  readonly tag: 'Activity' | 'Etchings' | 'Balances' | 'Outputs' | 'Mirror' | 'Statistics' | 'Bulk data';
  /** Name of the schema of the answer. */
  readonly schema: string;
  /** Message of the 404 for a single entry of a list. */
  readonly notFound?: string;
  readonly content?: { readonly example: Json } | { readonly examples: Json };
  /** Targets that get a 400. The keys are names of examples. Missing for files of the build. */
  readonly refused?: Readonly<Record<string, string>>;
}

/** Returns the key of an endpoint in the manifest's `lists`. Undefined for endpoints that every mirror has. */
export function partOf({ path }: Endpoint): FurtherPart | undefined {
  const parsed = parsePath(path);
  return parsed.kind === 'further' ? parsed.part : undefined;
}

/** True if the answer is a list, which has a window. */
export const isList = ({ schema }: Endpoint): boolean => schema.endsWith('List');

/** Returns the names of an endpoint's parameters: those of its path, and for a list `offset` and `limit`. */
export function parametersOf(endpoint: Endpoint, { operationPages }: Site): string[] {
  const names = [...endpoint.path.matchAll(/(?<=\{)\w+(?=\})/g)].map(([name]) => name);
  return [
    ...names,
    ...(isList(endpoint) ? ['offset', 'limit'] : []),
    ...(operationPages && names.includes('block') ? ['operation_type'] : []),
  ];
}

type Kind = Pick<Endpoint, 'id' | 'tag' | 'schema'>;

/** The id, the tag and the schema of endpoints that answer with one object, with a list of objects, and with records. */
const object = (tag: Endpoint['tag'], schema: string): Kind => ({ id: `get${schema}`, tag, schema });
const list = (tag: Endpoint['tag'], entry: string): Kind => ({ id: `list${entry}s`, tag, schema: `${entry}List` });
const activity = (of: string, schema = 'ActivityList'): Kind => ({ id: `list${of}Activity`, tag: 'Activity', schema });

/** Height of the highest block with activity, for examples. */
export const tipOf = ({ heights }: Pick<Manifest, 'heights'>): number => heights.at(-1)?.[1] ?? 0;

export function endpointsOf(manifest: Pick<Manifest, 'heights' | 'rows' | 'version'>, site: Site): Endpoint[] {
  const { rows, version } = manifest;
  const block = (rest: string) => `/runes/v1/blocks/840000/activity${rest}`;
  const tx = (rest: string) => `/runes/v1/transactions/${EXAMPLE_TX}/activity${rest}`;
  const tooMany = `?limit=${maximumLimit(site) + 1}`;
  const holders = '/runes/v1/etchings/840000:3/holders';
  const balances = `/runes/v1/addresses/${EXAMPLE_ADDRESS}/balances`;
  const long = (letter: string) => letter.repeat(101);
  const [selection, refusedOperation] = site.operationPages
    ? ['`operation_type` selects one operation.', 'transfer']
    : ['This mirror has no lists by operation: `operation_type` gets 400.', 'mint'];
  return [
    {
      path: '/runes/v1/transactions/{tx_id}/activity',
      ...activity('Transaction'),
      summary: 'Activity of a transaction',
      description: 'The records of a transaction, last event first. Ignores `operation_type`.',
      content: { examples: transactionExamples(site) },
      refused: { limit: tx(tooMany), offset: tx('?offset=-1'), tx_id: '/runes/v1/transactions/abc/activity' },
    },
    {
      path: '/runes/v1/blocks/{block}/activity',
      ...activity('Block'),
      summary: 'Activity of a block',
      description: `The records of a block, by height or hash, last transaction first. ${selection}`,
      content: { examples: blockExamples(site) },
      refused: {
        limit: block(tooMany),
        offset: block('?offset=abc'),
        operation_type: block(`?operation_type=${refusedOperation}`),
        block: '/runes/v1/blocks/abc/activity',
      },
    },
    {
      path: '/runes/v1/etchings',
      ...list('Etchings', 'Etching'),
      summary: 'Etchings',
      description: 'All runes, newest first.',
      refused: { limit: `/runes/v1/etchings${tooMany}`, offset: '/runes/v1/etchings?offset=-1' },
    },
    {
      path: '/runes/v1/etchings/{rune}',
      ...object('Etchings', 'Etching'),
      summary: 'A rune',
      description: 'A rune with its terms and supply.',
      notFound: NO_RUNE,
      refused: { rune: '/runes/v1/etchings/-' },
    },
    {
      path: '/runes/v1/etchings/{rune}/activity',
      ...activity('Rune', 'RuneActivityList'),
      summary: 'Activity of a rune',
      description: 'The records of a rune in the blocks of this mirror, newest first, without `rune`.',
      refused: { rune: '/runes/v1/etchings/-/activity', limit: `/runes/v1/etchings/1:0/activity${tooMany}` },
    },
    {
      path: '/runes/v1/etchings/{rune}/activity/{address}',
      ...activity('RuneAddress', 'RuneActivityList'),
      summary: 'Activity of a rune at an address',
      description:
        'The records of a rune with this `address`, newest first, without `rune`. Records with this address only as `receiver_address` are not included.',
      refused: { address: `/runes/v1/etchings/1:0/activity/${long('x')}` },
    },
    {
      path: '/runes/v1/addresses/{address}/activity',
      ...activity('Address'),
      summary: 'Activity of an address',
      description: 'The records with this `address`, newest first. Records with this address only as `receiver_address` are not included.',
      refused: {
        address: `/runes/v1/addresses/${long('x')}/activity`,
        offset: `/runes/v1/addresses/${EXAMPLE_ADDRESS}/activity?offset=-1`,
      },
    },
    {
      path: '/runes/v1/etchings/{rune}/holders',
      ...list('Balances', 'Holder'),
      summary: 'Holders of a rune',
      description:
        'The addresses that have a rune, the largest balance first. Runes on outputs without an address belong to no holder. If a rune has many holders and changed lately, the list is exact after an older block, which `block_height` names.',
      refused: { limit: `${holders}${tooMany}`, offset: `${holders}?offset=-1`, rune: '/runes/v1/etchings/-/holders' },
    },
    {
      path: '/runes/v1/etchings/{rune}/holders/{address}',
      ...object('Balances', 'Holder'),
      summary: 'A holder of a rune',
      description: 'The balance of an address in a rune after the highest block. It is 0 if the address had the rune only before.',
      notFound: NO_HOLDER,
      refused: { address: `${holders}/${long('a')}` },
    },
    {
      path: '/runes/v1/addresses/{address}/balances',
      ...list('Balances', 'Balance'),
      summary: 'Balances of an address',
      description: 'The balances of an address after the highest block, by number of smallest units, the largest first.',
      refused: { limit: `${balances}${tooMany}`, offset: `${balances}?offset=abc`, address: `/runes/v1/addresses/${long('a')}/balances` },
    },
    {
      path: '/runes/v1/outputs/{output}',
      ...object('Outputs', 'Output'),
      summary: 'An output',
      description:
        'The runes of an unspent output, and the runes that a spent output held. If the block of the output is above `block_height` of the answer, the answer has no runes. So compare the heights before you spend the output. If the output holds no runes and its transaction has too many records, `held` is null.',
      refused: { output: `/runes/v1/outputs/${EXAMPLE_TX}` },
    },
    {
      path: '/runes/v1/addresses/{address}/outputs',
      ...list('Outputs', 'Output'),
      summary: 'Unspent outputs of an address',
      description: 'The unspent outputs with runes that an address has after the highest block, newest first.',
      refused: { limit: `/runes/v1/addresses/${EXAMPLE_ADDRESS}/outputs${tooMany}`, address: `/runes/v1/addresses/${long('a')}/outputs` },
    },
    {
      path: '/runes/v1/',
      ...object('Mirror', 'Status'),
      summary: 'Status, and height and time of the highest block',
      description: 'Also at `/runes/v1`, `/runes/` and `/runes`; on plain file hosts at `/runes/v1/index.json`.',
      content: {
        example: { server_version: serverVersion(version), status: 'ready', block_height: tipOf(manifest), block_time: 1713571767 },
      },
    },
    {
      path: '/runes/v1/manifest.json',
      ...object('Mirror', 'Manifest'),
      summary: 'Manifest of the mirror',
      description: 'Heights, counts, page sizes, dialect and a digest of all data.',
    },
    {
      path: '/runes/v1/digests/{first_of_thousand}.json',
      ...object('Mirror', 'Digests'),
      summary: 'Digests of a thousand blocks',
      description: 'A digest of each block, to compare mirrors. 404 if none of the heights has activity.',
    },
    {
      path: '/runes/v1/changes/index.json',
      ...object('Mirror', 'ChangesIndex'),
      summary: 'Newest blocks with a file of changes',
      description: 'Hashes of the newest 144 blocks, so that clients find the newest block that they know.',
    },
    {
      path: '/runes/v1/changes/{recent_height}.json',
      ...object('Mirror', 'Changes'),
      summary: 'What a block touched',
      description: 'Runes, addresses and outputs that one of the newest 144 blocks touched. 404 for an older block.',
    },
    {
      path: '/runes/v1/blocks.json',
      ...object('Statistics', 'LatestBlocks'),
      summary: 'Latest blocks',
      description: 'The last hundred blocks with their statistics, for clients that poll.',
    },
    {
      path: '/runes/v1/feed.json',
      ...object('Statistics', 'Feed'),
      summary: 'Feed of the latest blocks',
      description: 'JSON Feed 1.1, for feed readers.',
    },
    {
      path: '/runes/v1/stats.json',
      ...object('Statistics', 'Stats'),
      summary: 'Statistics of all blocks',
      description: 'Totals, activity over time and the most active runes, for charts.',
    },
    {
      path: '/runes/v1/stats/{first_of_hundred}.json',
      ...object('Statistics', 'StatsOfHundred'),
      summary: 'Statistics of a hundred heights',
      description: 'Statistics of each block, and of each rune in these blocks. 404 if none of the heights has activity.',
    },
    {
      path: '/runes/v1/search/{letters}.json',
      ...object('Etchings', 'SearchFile'),
      id: 'getRunesByLetters',
      summary: 'Runes by the first letters of their names',
      description:
        'For suggestions while a user types. Has the runes whose names begin with these two letters, or consist of this one letter. 404 if there are none. If there are too many, the names with some third letters are in their own files, such as `search/do/g.json`.',
    },
    ...(rows !== undefined
      ? [
          {
            path: `/${rows.index}`,
            ...object('Bulk data', 'RowsIndex'),
            summary: 'List of the Parquet files',
            description:
              'The manifest has the path in `rows`. The files are beside this list, as in `rows/840000-840099-3fa04c1b0d5e6f72.parquet`.',
          },
        ]
      : []),
  ];
}
