/** Parses scripts: instructions, types of outputs, and the tapscript of a witness. */

const OP_RETURN = 0x6a;
const OP_13 = 0x5d;
const OP_PUSHDATA1 = 76;

/** Largest opcode that pushes data. */
export const LAST_PUSH = 78;

/** Instruction of a script. The data of a push goes from offset `from` to `to`. The next instruction begins at `to`. */
export interface Instruction {
  readonly opcode: number;
  readonly from: number;
  readonly to: number;
}

/** Reads the instruction at `at`. Returns undefined for a push that ends beyond the script. */
export function instructionAt(script: Uint8Array, at: number): Instruction | undefined {
  const opcode = script[at] ?? 0;
  let from = at + 1;
  let length = opcode < OP_PUSHDATA1 ? opcode : 0;
  if (opcode >= OP_PUSHDATA1 && opcode <= LAST_PUSH) {
    const size = 1 << (opcode - OP_PUSHDATA1);
    if (from + size > script.length) return undefined;
    for (let i = size - 1; i >= 0; i--) length = length * 256 + (script[from + i] ?? 0);
    from += size;
  }
  return from + length > script.length ? undefined : { opcode, from, to: from + length };
}

/** True for a script that begins with OP_RETURN. Nobody can spend its output, so runes that move there are burned. */
export const isOpReturn = (bytes: Uint8Array, at: number, length: number): boolean => length > 0 && bytes[at] === OP_RETURN;

/** True for a script with a runes message, valid or not. */
export const isMessage = (bytes: Uint8Array, at: number, length: number): boolean =>
  length >= 2 && bytes[at] === OP_RETURN && bytes[at + 1] === OP_13;

export const isTaproot = (script: Uint8Array): boolean => script.length === 34 && script[0] === 0x51 && script[1] === 32;

/** Returns the script of a taproot script-path spend: the last but one witness element, after removing an annex. */
export function tapscriptOf(witness: readonly Uint8Array[]): Uint8Array | undefined {
  const annex = witness.length >= 2 && witness.at(-1)?.[0] === 0x50;
  return witness.at(annex ? -3 : -2);
}

/** True if the script pushes exactly these bytes before its first damaged instruction. */
export function pushes(script: Uint8Array, data: Uint8Array): boolean {
  for (let at = 0; at < script.length; ) {
    const instruction = instructionAt(script, at);
    if (!instruction) return false;
    const { opcode, from, to } = instruction;
    if (opcode <= LAST_PUSH && to - from === data.length && data.every((byte, i) => byte === script[from + i])) return true;
    at = to;
  }
  return false;
}
