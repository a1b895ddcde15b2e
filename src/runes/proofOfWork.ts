/**
 * Proof of work. A block's header must state the target that the rules of its network require, and its hash must meet
 * this target. Signatures of signet's blocks are not checked.
 */

/** Rules by which a network sets its difficulty. Targets are in the compact form of headers ("bits"). */
export interface DifficultyRules {
  /** Easiest target that the network allows. */
  readonly limit: number;
  /** False if all blocks have the easiest target, as on regtest. */
  readonly retargets: boolean;
  /**
   * True for the rules of testnet4 (BIP 94). A block more than 20 minutes after the previous block has the easiest
   * target. The last block of a period may be such a block, so the next target is computed from the period's first one.
   */
  readonly hasEasyBlocks: boolean;
  /**
   * Hash of the first block with runes. Comparing it replaces the check of all earlier blocks. Undefined if pulls begin
   * at height 0.
   */
  readonly firstHash: string | undefined;
}

/** Fields of a header that the difficulty depends on. */
export interface Work {
  /** Hash as Bitcoin displays it. */
  readonly hash: string;
  /** Seconds since 1970. */
  readonly time: number;
  /** Target in the header, in compact form. */
  readonly bits: number;
}

/** Number of blocks with the same target. */
export const PERIOD = 2016;
/** Intended duration of a period, in seconds. */
const PERIOD_SECONDS = 14 * 24 * 3600;
/** Seconds after which testnet4 accepts a block with the easiest target. */
const EASY_AFTER = 20 * 60;

/** Thrown if a header has less work than the rules require. The message gives the reason, but not the block. */
export class WorkError extends Error {
  override readonly name = 'WorkError';
}

/** Converts a target from compact form to an integer. Throws a WorkError for a form that Bitcoin does not accept. */
export function targetOf(bits: number): bigint {
  const mantissa = BigInt(bits & 0x7fffff);
  const shift = 8n * BigInt((bits >>> 24) - 3);
  const target = shift < 0n ? mantissa >> -shift : mantissa << shift;
  if ((bits & 0x800000) !== 0 || target === 0n || target >= 1n << 256n) throw new WorkError(`its target ${bitsText(bits)} is not valid`);
  return target;
}

/** Converts a target to compact form, which keeps its first 2 or 3 bytes. */
function bitsOf(target: bigint): number {
  let size = Math.ceil(target.toString(16).length / 2);
  let mantissa = Number(size <= 3 ? target << BigInt(8 * (3 - size)) : target >> BigInt(8 * (size - 3)));
  // The highest bit is a sign in compact form.
  if (mantissa >= 0x800000) {
    mantissa >>= 8;
    size += 1;
  }
  return size * 2 ** 24 + mantissa;
}

/** Returns the target of the next period, as bits, from the target and the duration of the current period. */
export function retarget(bits: number, seconds: number, limit: number): number {
  const taken = BigInt(Math.min(Math.max(seconds, PERIOD_SECONDS / 4), PERIOD_SECONDS * 4));
  const target = (targetOf(bits) * taken) / BigInt(PERIOD_SECONDS);
  const easiest = targetOf(limit);
  return bitsOf(target < easiest ? target : easiest);
}

const bitsText = (bits: number): string => `0x${bits.toString(16).padStart(8, '0')}`;

/** Checks the headers of consecutive blocks. */
export class WorkChecker {
  readonly #rules: DifficultyRules;
  /** First header of the current period. Undefined if unknown. */
  #first: Work | undefined;
  /** Last header that was added. */
  #last: Work | undefined;
  /** Target of the last block that did not use the exception of testnet4. */
  #usual: number | undefined;

  constructor(rules: DifficultyRules) {
    this.#rules = rules;
  }

  /** Hash of the last header. Undefined before the first header. */
  get hash(): string | undefined {
    return this.#last?.hash;
  }

  /**
   * Adds the next header without a check. The caller must know that its block was checked before, or is an ancestor of
   * a checked block.
   */
  add(height: number, header: Work): void {
    if (height % PERIOD === 0) this.#first = header;
    if (height % PERIOD === 0 || header.bits !== this.#rules.limit) this.#usual = header.bits;
    this.#last = header;
  }

  /** Checks and adds the next header. Throws a WorkError if the header has less work than the rules require. */
  check(height: number, header: Work): void {
    const target = targetOf(header.bits);
    const { limit } = this.#rules;
    if (target > targetOf(limit))
      throw new WorkError(`its target ${bitsText(header.bits)} is easier than the limit of its network, ${bitsText(limit)}`);
    const expected = this.#expected(height, header.time);
    if (expected !== undefined && header.bits !== expected)
      throw new WorkError(`its target is ${bitsText(header.bits)}, and the blocks before it require ${bitsText(expected)}`);
    if (BigInt(`0x${header.hash}`) > target) throw new WorkError(`its hash is above its target ${bitsText(header.bits)}`);
    this.add(height, header);
  }

  /** Returns the target of the next header, as bits. Undefined if the headers that determine it are unknown. */
  #expected(height: number, time: number): number | undefined {
    const { limit, retargets, hasEasyBlocks } = this.#rules;
    if (!retargets || height === 0) return limit;
    const [first, last] = [this.#first, this.#last];
    if (last === undefined) return undefined;
    if (height % PERIOD === 0) return first && retarget(hasEasyBlocks ? first.bits : last.bits, last.time - first.time, limit);
    if (!hasEasyBlocks) return last.bits;
    return time > last.time + EASY_AFTER ? limit : this.#usual;
  }
}
