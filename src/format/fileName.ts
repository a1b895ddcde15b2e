/** Name of an archive's file: the first 32 hex digits of the SHA-256 of its content. */
export const FILE_NAME = /^[0-9a-f]{32}$/;

export const isFileName = (value: unknown): value is string => typeof value === 'string' && FILE_NAME.test(value);
