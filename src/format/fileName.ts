/** Pattern of names of an archive's files. A name is the SHA-256 of the file's tail (tails.ts), as 64 hex digits. */
export const FILE_NAME = /^[0-9a-f]{64}$/;

export const isFileName = (value: unknown): value is string => typeof value === 'string' && FILE_NAME.test(value);
