/** Name of an archive's file: the SHA-256 of its tail (tails.ts), as 64 hex digits. */
export const FILE_NAME = /^[0-9a-f]{64}$/;

export const isFileName = (value: unknown): value is string => typeof value === 'string' && FILE_NAME.test(value);
