/**
 * Operations about activity by rune and by address, for the API's description.
 */
import type { ListOperation } from './openapi.ts';
import { EXAMPLE_ADDRESS } from './openapiExamples.ts';

/** `tooMany` is a query with a limit above the largest. */
export function activityOperations(tooMany: string): ListOperation[] {
  const long = 'x'.repeat(101);
  const ofRune = { part: 'rune_activity', tag: 'Activity', schema: 'RuneActivityList' } as const;
  return [
    {
      path: '/runes/v1/etchings/{rune}/activity',
      id: 'listRuneActivity',
      summary: 'Activity of a rune',
      description: 'The records of a rune in the blocks of this mirror, newest first, without `rune`.',
      parameters: ['rune', 'offset', 'limit'],
      further: ofRune,
      refused: { rune: '/runes/v1/etchings/-/activity', limit: `/runes/v1/etchings/1:0/activity${tooMany}` },
    },
    {
      path: '/runes/v1/etchings/{rune}/activity/{address}',
      id: 'listRuneAddressActivity',
      summary: 'Activity of a rune at an address',
      description:
        'The records of a rune whose `address` this is, newest first, without `rune`. Those that only receive from it are not among them.',
      parameters: ['rune', 'address', 'offset', 'limit'],
      further: ofRune,
      refused: { address: `/runes/v1/etchings/1:0/activity/${long}` },
    },
    {
      path: '/runes/v1/addresses/{address}/activity',
      id: 'listAddressActivity',
      summary: 'Activity of an address',
      description: 'The records whose `address` this is, newest first. `receiver_address` does not count.',
      parameters: ['address', 'offset', 'limit'],
      further: { part: 'address_activity', tag: 'Activity', schema: 'ActivityList' },
      refused: {
        address: `/runes/v1/addresses/${long}/activity`,
        offset: `/runes/v1/addresses/${EXAMPLE_ADDRESS}/activity?offset=-1`,
      },
    },
  ];
}
