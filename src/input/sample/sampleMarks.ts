/** Heights and hashes that identify the sample's invented blocks, so that mirrors do not present them as real data. */

/** Height of the first invented block. It is far above the tip of the chain, so nobody mistakes it for a real block. */
export const FIRST_INVENTED = 2_000_001;

/** Prefix of the hashes of invented blocks. Its 8 zeros are too few for a real block of the main chain since 2010. */
export const INVENTED_HASH_START = '00000000f00d';

/** SQL condition for rows of invented blocks, by the columns `block_height` and `block_hash`. */
export const IS_INVENTED = `(block_height BETWEEN ${FIRST_INVENTED} AND ${FIRST_INVENTED + 999} AND starts_with(block_hash, '${INVENTED_HASH_START}'))`;
