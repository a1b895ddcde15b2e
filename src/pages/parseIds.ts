/** Parses the ids of transactions, blocks and runes in requests and input. Formats ids for responses and paths. */
import type { Dialect } from './mirrorOptions.ts';

/** Formats a hash or tx id as the dialect does in responses and paths: with or without `0x`. */
export const spellHex = (hex: string, dialect: Dialect): string => (dialect === 'contract' ? `0x${hex}` : hex);

const HEX_ID = /^(?:0x)?([0-9a-f]{64})$/;

/** Parses 64 hex digits in upper or lower case, with or without `0x`. Returns 64 lower-case digits; undefined for other text. */
export const parseHexId = (text: string): string | undefined => (text.length <= 66 ? HEX_ID.exec(text.toLowerCase())?.[1] : undefined);

/**
 * Parses the block id of a request: a hash (any 64 hex digits), or a height in decimal digits. Removes leading zeros of a height. Replaces
 * a height that is too large for any data by BEYOND_ANY_HEIGHT. Undefined for any other text.
 */
export function parseBlockId(text: string): string | undefined {
  const hash = parseHexId(text);
  if (hash !== undefined) return hash;
  if (!/^[0-9]+$/.test(text)) return undefined;
  const height = withoutZeros(text);
  return height.length > BEYOND_ANY_HEIGHT.length ? BEYOND_ANY_HEIGHT : height;
}

/** A rune in a request: its id, its number, or its name with or without spacers. */
export const RUNE = /^(?:[0-9]+(?::[0-9]+)?|[A-Za-z]+(?:[•.][A-Za-z]+)*)$/;

/** Parses a rune of a request. Ignores spacers and case of a name, because ord does too. Undefined for other text. */
export function parseRune(text: string): string | undefined {
  if (!RUNE.test(text)) return undefined;
  return text.includes(':') ? text : withoutZeros(text).replace(/[•.]/g, '').toUpperCase();
}

export const withoutZeros = (digits: string): string => digits.replace(/^0+(?=[0-9])/, '');

export const isHeight = (block: string): boolean => block.length < 64;

/** 2^53, above all heights in input. It replaces longer heights in paths: most file systems refuse paths with thousands of digits. */
const BEYOND_ANY_HEIGHT = '9007199254740992';
