import { createHash } from 'node:crypto';

/** Output scripts for tests, by form. `n` selects one of several keys. `bare` has no address. */
const SCRIPTS = {
  key: (n: number) => `0014${byte(n).repeat(20)}`,
  taproot: (n: number) => `5120${byte(n).repeat(32)}`,
  legacy: (n: number) => `76a914${byte(n).repeat(20)}88ac`,
  bare: (n: number) => `21${byte(n).repeat(33)}ac`,
  burn: () => '6a0101',
};

export interface ChainTransaction {
  /** Spent outputs as `txid:vout`, and the elements of their witness in hex. */
  readonly inputs: readonly { outpoint: string; witness?: string[] }[];
  /** Output scripts in hex. */
  readonly outputs: readonly string[];
}

/** Returns the script of a message. The integers are encoded in LEB128, in pushes of at most 75 bytes. */
function message(...integers: (bigint | number)[]): string {
  const bytes: number[] = [];
  for (const integer of integers) {
    let rest = BigInt(integer);
    for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
    bytes.push(Number(rest));
  }
  let script = '6a5d';
  for (let at = 0; at < bytes.length; at += 75) script += push(Buffer.from(bytes.slice(at, at + 75)).toString('hex'));
  return script;
}

/** Returns the script that pushes at most 75 bytes, given in hex. */
function push(hex: string): string {
  return byte(hex.length / 2) + hex;
}

/** Returns the bytes that commit to a name, in hex: little-endian, without zeros at the end. */
function nameHex(name: bigint): string {
  return reversed(name.toString(16).padStart(32, '0')).replace(/(00)+$/, '');
}

/** Serialises a block without proof of work. Returns its bytes, its hash, and the ids of its transactions. */
function blockBytes(previous: string, time: number, transactions: readonly ChainTransaction[]) {
  const serialised = transactions.map(transactionHex);
  const header = `00000020${reversed(previous)}${'00'.repeat(32)}${u32(time)}${u32(0)}${u32(0)}`;
  const bytes = Buffer.from(header + size(transactions.length) + serialised.map(({ hex }) => hex).join(''), 'hex');
  return { bytes, hash: sha256d(header), txids: serialised.map(({ txid }) => txid) };
}

function transactionHex({ inputs, outputs }: ChainTransaction): { hex: string; txid: string } {
  const spends = inputs.map(({ outpoint }) => `${reversed(outpoint.slice(0, 64))}${u32(Number(outpoint.slice(65)))}00ffffffff`);
  const pays = outputs.map((script) => `2202000000000000${size(script.length / 2)}${script}`);
  const body = size(inputs.length) + spends.join('') + size(outputs.length) + pays.join('');
  const witnesses = inputs.map(({ witness = [] }) => size(witness.length) + witness.map((hex) => size(hex.length / 2) + hex).join(''));
  return { txid: sha256d(`02000000${body}00000000`), hex: `020000000001${body}${witnesses.join('')}00000000` };
}

function sha256d(hex: string): string {
  const inner = createHash('sha256').update(Buffer.from(hex, 'hex')).digest();
  return createHash('sha256').update(inner).digest().reverse().toString('hex');
}

function reversed(hex: string): string {
  return Buffer.from(hex, 'hex').reverse().toString('hex');
}

function byte(n: number): string {
  return n.toString(16).padStart(2, '0');
}

function u32(n: number): string {
  return reversed(n.toString(16).padStart(8, '0'));
}

function size(n: number): string {
  if (n < 0xfd) return byte(n);
  return n < 0x10000 ? `fd${reversed(n.toString(16).padStart(4, '0'))}` : `fe${u32(n)}`;
}

/**
 * A random chain: transfers, mints, etchings with and without names, cenotaphs and burns. The same seed gives the same
 * blocks.
 */
export class InventedChain {
  readonly blocks: Buffer[] = [];
  #hash = '00'.repeat(32);
  #random: number;
  #unspent: { outpoint: string; script: string; height: number }[] = [];
  readonly #runes: string[] = [];
  #names = 99246114928149462n;

  constructor(seed: number) {
    this.#random = seed;
  }

  /** Makes the next block. */
  grow(): void {
    const height = this.blocks.length;
    const transactions: ChainTransaction[] = [
      {
        inputs: [{ outpoint: `${'00'.repeat(32)}:4294967295` }],
        outputs: [SCRIPTS.taproot(height % 200), SCRIPTS.key(1), push(u32(height))],
      },
    ];
    for (let left = this.#below(8); left > 0; left--) transactions.push(this.#transaction(height, transactions.length));
    const { bytes, hash, txids } = blockBytes(this.#hash, 1_700_000_000 + height * 600, transactions);
    this.blocks.push(bytes);
    this.#hash = hash;
    // Nobody can spend outputs of block 0.
    if (height === 0) return;
    for (const [i, { outputs }] of transactions.entries()) {
      for (const [vout, script] of outputs.entries()) this.#unspent.push({ outpoint: `${txids[i]}:${vout}`, script, height });
    }
  }

  /** Returns a copy of the chain. Its next blocks come from another seed. */
  branch(seed: number): InventedChain {
    const copy = new InventedChain(seed);
    copy.blocks.push(...this.blocks);
    copy.#hash = this.#hash;
    copy.#unspent = [...this.#unspent];
    copy.#runes.push(...this.#runes);
    copy.#names = this.#names;
    return copy;
  }

  #transaction(height: number, index: number): ChainTransaction {
    const inputs: { outpoint: string; witness?: string[] }[] = [];
    for (let left = 1 + this.#below(4); left > 0 && this.#unspent.length > 0; left--) {
      // Prefers young outputs, so that runes move often.
      const at = this.#unspent.length - 1 - Math.min(this.#below(this.#unspent.length), this.#below(this.#unspent.length), this.#below(40));
      const [spent] = this.#unspent.splice(Math.max(at, 0), 1);
      if (spent !== undefined) inputs.push({ outpoint: spent.outpoint });
    }
    const outputs: string[] = [];
    const forms = [SCRIPTS.key, SCRIPTS.taproot, SCRIPTS.legacy, SCRIPTS.bare];
    for (let left = 1 + this.#below(4); left > 0; left--) outputs.push((forms[this.#below(4)] ?? SCRIPTS.key)(1 + this.#below(6)));
    if (this.#below(4) === 0) outputs.splice(this.#below(outputs.length + 1), 0, SCRIPTS.burn());
    if (this.#below(4) === 0) return { inputs, outputs };
    const count = outputs.length + 1;
    const integers: bigint[] = [];
    const field = (...values: (bigint | number)[]) => integers.push(...values.map(BigInt));
    if (this.#below(3) === 0) {
      const terms = this.#below(2);
      field(
        2,
        1 + 2 * terms + 4 * this.#below(2),
        1,
        this.#below(39),
        3,
        this.#below(300),
        5,
        0x4e00 + height,
        6,
        this.#below(3) * this.#below(5000),
      );
      if (terms) field(8, this.#below(30), 10, this.#below(200));
      if (terms && this.#below(3) === 0) field(18, this.#below(60));
      this.#runes.push(`${height}:${index}`);
      const old = this.#unspent.findIndex((each) => each.height <= height - 5 + this.#below(2) && each.script.startsWith('5120'));
      if (old >= 0 && this.#below(2) === 0) {
        const name = this.#names++;
        field(4, name);
        const [spent] = this.#unspent.splice(old, 1);
        if (spent !== undefined) inputs.push({ outpoint: spent.outpoint, witness: [push(nameHex(name)), 'c0'] });
      }
    }
    const known = () => this.#runes[Math.max(this.#runes.length - 1 - this.#below(12), 0)] ?? '1:1';
    if (this.#below(2) === 0)
      field(
        ...known()
          .split(':')
          .flatMap((part) => [20, BigInt(part)]),
      );
    if (this.#below(4) === 0) field(22, this.#below(count));
    if (this.#below(12) === 0) field(126, 0);
    if (this.#below(3) > 0) {
      field(0);
      const ids = Array.from({ length: this.#below(5) }, () => (this.#below(4) === 0 ? '0:0' : known()).split(':').map(Number));
      ids.sort(([a = 0, b = 0], [c = 0, d = 0]) => a - c || b - d);
      let [block, tx] = [0, 0];
      for (const [b = 0, t = 0] of ids) {
        field(b - block, b === block ? t - tx : t, this.#below(3) * this.#below(400), this.#below(count + 1));
        [block, tx] = [b, t];
      }
    }
    outputs.splice(this.#below(count), 0, message(...integers));
    return { inputs, outputs };
  }

  /** Returns a random integer below `limit`. */
  #below(limit: number): number {
    this.#random = (Math.imul(this.#random, 1664525) + 1013904223) >>> 0;
    return Math.floor((this.#random / 2 ** 32) * limit);
  }
}
