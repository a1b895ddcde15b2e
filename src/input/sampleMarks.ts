/** Heights and hashes that identify the sample's invented blocks, so that mirrors do not present them as real data. */

/**
 * SQL condition for rows of invented blocks, by the columns `block_height` and `block_hash`. The heights are far above the tip of the
 * chain, so nobody mistakes the blocks for real ones. 8 zeros are too few for the hash of a real block of the main chain since 2010.
 */
export const IS_INVENTED = `(block_height BETWEEN 2000001 AND 2001000 AND starts_with(block_hash, '00000000f00d'))`;
