/**
 * Schemas of the API's request parameters, for the OpenAPI document. Hosts parse requests with pages/parseRequest.ts,
 * which does not need the schema library. test/site/openapi.test.ts checks that the parser and these schemas agree.
 */
import { z } from 'zod';
import { OPERATIONS } from '../pages/blockAndTransactionLists.ts';
import { DIGESTS_PER_FILE, STATS_PER_FILE } from '../pages/filePaths.ts';
import { defaultLimit, maximumLimit, type Site } from '../pages/mirrorOptions.ts';
import { RUNE } from '../pages/parseIds.ts';
import { MAX_INTEGER, RULES } from './fields.ts';

const HASH = RULES.hash.pattern;

/** Returns the schemas by parameter name. In requests, integers are written in decimal digits. */
export const parameterSchemas = (site: Site) => ({
  tx_id: z.string().regex(new RegExp(`^${HASH}$`)),
  block: z.string().regex(new RegExp(`^(?:${HASH}|[0-9]+)$`)),
  rune: z.string().regex(RUNE),
  address: z.string().min(1).max(100),
  output: z.string().regex(new RegExp(`^${HASH}:[0-9]+$`)),
  offset: z.int().min(0).max(MAX_INTEGER).default(0),
  limit: z.int().min(1).max(maximumLimit(site)).default(defaultLimit(site)),
  operation_type: z.enum(OPERATIONS).optional(),
  first_of_thousand: z.int().min(0).max(MAX_INTEGER).multipleOf(DIGESTS_PER_FILE),
  first_of_hundred: z.int().min(0).max(MAX_INTEGER).multipleOf(STATS_PER_FILE),
  recent_height: z.int().min(0).max(MAX_INTEGER),
  letters: z.string().regex(/^[a-z]{1,2}$/),
});
