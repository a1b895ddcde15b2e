/**
 * Cases of the case table (cases.ts) that a host cannot answer without code of this program. Each has the host's answer
 * instead: a 404 for an empty list, or a 501 for windows and spellings that need code.
 */
export const REFUSED_CASES: Readonly<Record<string, string>> = {
  'an unaligned window within a page': 'refused 501',
  'an unaligned window over two pages': 'refused 501',
  'a window that ends past the end': 'refused 501',
  'an offset at the end': 'refused 501',
  'an offset far past the end': 'refused 501',
  'the end of an older block': 'refused 501',
  'the block by its hash': 'refused 501',
  'the block by its hash without 0x, in upper case': 'refused 501',
  'the block by a height with leading zeros': 'refused 501',
  'a block of one record, with the largest limit': 'refused 501',
  'a block of 20 records': 'refused 501',
  'a height without activity': 'refused 404',
  'a height that does not exist': 'refused 404',
  '64 decimal digits': 'refused 404',
  'an unknown hash': 'refused 404',
  'an unaligned window of an operation': 'refused 501',
  'an operation that the block does not have': 'refused 404',
  'a transaction with 0x, a window over two pages': 'refused 501',
  'a transaction, every record from an odd offset': 'refused 501',
  'an unknown transaction': 'refused 404',
  'a transaction with an operation, which is ignored': 'refused 501',
  'the path without v1': 'refused 501',
  'percent-encoded parameters': 'refused 501',
  'a real transaction, to the byte': 'refused 501',
};
