/**
 * Operations about balances, holders and unspent outputs, for the API's description.
 */
import { NO_HOLDER } from '../pages/respond.ts';
import type { ListOperation } from './openapi.ts';
import { EXAMPLE_ADDRESS, EXAMPLE_TX } from './openapiExamples.ts';

/** `tooMany` is a query with a limit above the largest. */
export function balanceOperations(tooMany: string): ListOperation[] {
  const holders = '/runes/v1/etchings/840000:3/holders';
  const balances = `/runes/v1/addresses/${EXAMPLE_ADDRESS}/balances`;
  const long = 'a'.repeat(101);
  return [
    {
      path: '/runes/v1/etchings/{rune}/holders',
      id: 'listHolders',
      summary: 'Holders of a rune',
      description:
        'The addresses that have a rune, the largest balance first. Runes on outputs without an address belong to no holder. The list of a rune with many holders that changed lately is exact after an older block, which it names in `block_height`.',
      parameters: ['rune', 'offset', 'limit'],
      further: { part: 'holders', tag: 'Balances', schema: 'HolderList' },
      refused: { limit: `${holders}${tooMany}`, offset: `${holders}?offset=-1`, rune: '/runes/v1/etchings/-/holders' },
    },
    {
      path: '/runes/v1/etchings/{rune}/holders/{address}',
      id: 'getHolder',
      summary: 'A holder of a rune',
      description: 'What an address has of a rune after the highest block: 0 if it had some before.',
      parameters: ['rune', 'address'],
      further: { part: 'holders', tag: 'Balances', schema: 'Holder', notFound: NO_HOLDER },
      refused: { address: `${holders}/${long}` },
    },
    {
      path: '/runes/v1/addresses/{address}/balances',
      id: 'listBalances',
      summary: 'Balances of an address',
      description: 'The runes that an address has after the highest block, the largest number of smallest units first.',
      parameters: ['address', 'offset', 'limit'],
      further: { part: 'balances', tag: 'Balances', schema: 'BalanceList' },
      refused: { limit: `${balances}${tooMany}`, offset: `${balances}?offset=abc`, address: `/runes/v1/addresses/${long}/balances` },
    },
    {
      path: '/runes/v1/outputs/{output}',
      id: 'getOutput',
      summary: 'An output',
      description:
        'The runes of an unspent output. An output that is newer than `block_height` of the answer has no runes here, so compare the heights before you spend it.',
      parameters: ['output'],
      further: { part: 'outputs', tag: 'Outputs', schema: 'Output' },
      refused: { output: `/runes/v1/outputs/${EXAMPLE_TX}` },
    },
    {
      path: '/runes/v1/addresses/{address}/outputs',
      id: 'listOutputs',
      summary: 'Unspent outputs of an address',
      description: 'The unspent outputs with runes that an address has after the highest block, newest first.',
      parameters: ['address', 'offset', 'limit'],
      further: { part: 'outputs', tag: 'Outputs', schema: 'OutputList' },
      refused: { limit: `/runes/v1/addresses/${EXAMPLE_ADDRESS}/outputs${tooMany}`, address: `/runes/v1/addresses/${long}/outputs` },
    },
  ];
}
