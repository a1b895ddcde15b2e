/** Operations of the API's description that return a list, or a single entry of a list. */

import { type BuiltSite, maximumLimit } from '../pages/mirrorOptions.ts';
import type { FurtherPart } from '../pages/optionalEndpoints.ts';
import { NO_HOLDER, NO_RUNE } from '../pages/respond.ts';
import { blockExamples, EXAMPLE_ADDRESS, EXAMPLE_TX, transactionExamples } from './openapiExamples.ts';
import { type Json, namesIn } from './openapiFiles.ts';

export interface ListOperation {
  readonly path: string;
  readonly id: string;
  readonly summary: string;
  readonly description: string;
  /** Missing for activity by transaction and by block, which every mirror has. */
  readonly further?: {
    /** Key in the manifest's `lists`. */
    readonly part: FurtherPart;
    readonly tag: 'Activity' | 'Etchings' | 'Balances' | 'Outputs';
    readonly schema: string;
    /** Message of the 404 for a single entry. Missing for lists. */
    readonly notFound?: string;
  };
  readonly examples?: Json;
  /** Targets that get a 400. The keys are names of examples. */
  readonly refused: Readonly<Record<string, string>>;
}

/** Returns the names of an operation's parameters: path parameters, and for a list `offset` and `limit`. */
export function parametersOf({ path, further }: ListOperation, { operationPages }: BuiltSite): string[] {
  const names = namesIn(path);
  const isList = further === undefined || further.schema.endsWith('List');
  return [...names, ...(isList ? ['offset', 'limit'] : []), ...(operationPages && names.includes('block') ? ['operation_type'] : [])];
}

export function listOperations(site: BuiltSite): ListOperation[] {
  const block = (rest: string) => `/runes/v1/blocks/840000/activity${rest}`;
  const tx = (rest: string) => `/runes/v1/transactions/${EXAMPLE_TX}/activity${rest}`;
  const tooMany = `?limit=${maximumLimit(site) + 1}`;
  const holders = '/runes/v1/etchings/840000:3/holders';
  const balances = `/runes/v1/addresses/${EXAMPLE_ADDRESS}/balances`;
  const long = (letter: string) => letter.repeat(101);
  const ofRune = { part: 'rune_activity', tag: 'Activity', schema: 'RuneActivityList' } as const;
  return [
    {
      path: '/runes/v1/transactions/{tx_id}/activity',
      id: 'listTransactionActivity',
      summary: 'Activity of a transaction',
      description: 'The records of a transaction, last event first. Ignores `operation_type`.',
      examples: transactionExamples(site),
      refused: { limit: tx(tooMany), offset: tx('?offset=-1'), tx_id: '/runes/v1/transactions/abc/activity' },
    },
    {
      path: '/runes/v1/blocks/{block}/activity',
      id: 'listBlockActivity',
      summary: 'Activity of a block',
      description: `The records of a block, by height or hash, last transaction first. ${
        site.operationPages
          ? '`operation_type` selects one operation.'
          : 'This mirror has no lists by operation: `operation_type` gets 400.'
      }`,
      examples: blockExamples(site),
      refused: {
        limit: block(tooMany),
        offset: block('?offset=abc'),
        operation_type: block(`?operation_type=${site.operationPages ? 'transfer' : 'mint'}`),
        block: '/runes/v1/blocks/abc/activity',
      },
    },
    {
      path: '/runes/v1/etchings',
      id: 'listEtchings',
      summary: 'Etchings',
      description: 'All runes, newest first.',
      further: { part: 'etchings', tag: 'Etchings', schema: 'EtchingList' },
      refused: { limit: `/runes/v1/etchings${tooMany}`, offset: '/runes/v1/etchings?offset=-1' },
    },
    {
      path: '/runes/v1/etchings/{rune}',
      id: 'getEtching',
      summary: 'A rune',
      description: 'A rune with its terms and supply.',
      further: { part: 'etchings', tag: 'Etchings', schema: 'Etching', notFound: NO_RUNE },
      refused: { rune: '/runes/v1/etchings/-' },
    },
    {
      path: '/runes/v1/etchings/{rune}/activity',
      id: 'listRuneActivity',
      summary: 'Activity of a rune',
      description: 'The records of a rune in the blocks of this mirror, newest first, without `rune`.',
      further: ofRune,
      refused: { rune: '/runes/v1/etchings/-/activity', limit: `/runes/v1/etchings/1:0/activity${tooMany}` },
    },
    {
      path: '/runes/v1/etchings/{rune}/activity/{address}',
      id: 'listRuneAddressActivity',
      summary: 'Activity of a rune at an address',
      description:
        'The records of a rune with this `address`, newest first, without `rune`. Records with this address only as `receiver_address` are not included.',
      further: ofRune,
      refused: { address: `/runes/v1/etchings/1:0/activity/${long('x')}` },
    },
    {
      path: '/runes/v1/addresses/{address}/activity',
      id: 'listAddressActivity',
      summary: 'Activity of an address',
      description: 'The records with this `address`, newest first. Records with this address only as `receiver_address` are not included.',
      further: { part: 'address_activity', tag: 'Activity', schema: 'ActivityList' },
      refused: {
        address: `/runes/v1/addresses/${long('x')}/activity`,
        offset: `/runes/v1/addresses/${EXAMPLE_ADDRESS}/activity?offset=-1`,
      },
    },
    {
      path: '/runes/v1/etchings/{rune}/holders',
      id: 'listHolders',
      summary: 'Holders of a rune',
      description:
        'The addresses that have a rune, the largest balance first. Runes on outputs without an address belong to no holder. If a rune has many holders and changed lately, the list is exact after an older block, which `block_height` names.',
      further: { part: 'holders', tag: 'Balances', schema: 'HolderList' },
      refused: { limit: `${holders}${tooMany}`, offset: `${holders}?offset=-1`, rune: '/runes/v1/etchings/-/holders' },
    },
    {
      path: '/runes/v1/etchings/{rune}/holders/{address}',
      id: 'getHolder',
      summary: 'A holder of a rune',
      description: 'The balance of an address in a rune after the highest block. It is 0 if the address had the rune only before.',
      further: { part: 'holders', tag: 'Balances', schema: 'Holder', notFound: NO_HOLDER },
      refused: { address: `${holders}/${long('a')}` },
    },
    {
      path: '/runes/v1/addresses/{address}/balances',
      id: 'listBalances',
      summary: 'Balances of an address',
      description: 'The balances of an address after the highest block, by number of smallest units, the largest first.',
      further: { part: 'balances', tag: 'Balances', schema: 'BalanceList' },
      refused: { limit: `${balances}${tooMany}`, offset: `${balances}?offset=abc`, address: `/runes/v1/addresses/${long('a')}/balances` },
    },
    {
      path: '/runes/v1/outputs/{output}',
      id: 'getOutput',
      summary: 'An output',
      description:
        'The runes of an unspent output, and the runes that a spent output held. If the block of the output is above `block_height` of the answer, the answer has no runes. So compare the heights before you spend the output. If the output holds no runes and its transaction has too many records, `held` is null.',
      further: { part: 'outputs', tag: 'Outputs', schema: 'Output' },
      refused: { output: `/runes/v1/outputs/${EXAMPLE_TX}` },
    },
    {
      path: '/runes/v1/addresses/{address}/outputs',
      id: 'listOutputs',
      summary: 'Unspent outputs of an address',
      description: 'The unspent outputs with runes that an address has after the highest block, newest first.',
      further: { part: 'outputs', tag: 'Outputs', schema: 'OutputList' },
      refused: { limit: `/runes/v1/addresses/${EXAMPLE_ADDRESS}/outputs${tooMany}`, address: `/runes/v1/addresses/${long('a')}/outputs` },
    },
  ];
}
