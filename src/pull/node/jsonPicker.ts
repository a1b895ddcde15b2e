/**
 * Picks a few values from JSON of any size, which it reads in parts. The complete JSON may be too large for memory: a
 * gigabyte for a block whose transactions spend long scripts.
 */
import { PassingError } from '../httpConnections.ts';

/** Maximum bytes of a picked value: the hex of the longest script that can be spent. A longer value is an error. */
const LONGEST_VALUE = 20_000;

/** Maximum depth of nesting. Answers of Bitcoin Core have less than 10 levels, so deeper JSON counts as damaged. */
const DEEPEST = 50;

/** Node of the tree of wanted paths. Its children are the wanted keys or indexes of a value. */
interface Node {
  readonly children: Map<string, Node>;
  /** Indexes of the paths that end at this node. */
  readonly paths: number[];
}

/** Open object or array: its end was not read yet. */
interface Frame {
  readonly node: Node | undefined;
  readonly isArray: boolean;
  index: number;
  /** Node of the wanted paths for the value that is being read. Undefined if no wanted path leads to this value. */
  current: Node | undefined;
  /** True in an object while a key is expected or read: from `{` or a comma to the colon. */
  isKey: boolean;
}

const byteOf = (character: string): number => character.charCodeAt(0);
const [QUOTE, COMMA, COLON, BACKSLASH] = [byteOf('"'), byteOf(','), byteOf(':'), byteOf('\\')];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [byteOf('['), byteOf(']'), byteOf('{'), byteOf('}')];

/** Returns the offset of the next `byte`, or the length of the chunk if there is none. */
function placeOf(byte: number, chunk: Uint8Array, from: number): number {
  const at = chunk.indexOf(byte, from);
  return at < 0 ? chunk.length : at;
}

const newNode = (): Node => ({ children: new Map(), paths: [] });
const damaged = (): PassingError => new PassingError('has an unexpected answer: not valid JSON');

export class JsonPicker {
  /**
   * Values in the order of the paths: a string without quotes, a number as written, `{` or `[` for an object or an
   * array. Undefined if the JSON lacks the value.
   */
  readonly values: (string | undefined)[];
  readonly #root: Frame;
  readonly #open: Frame[];
  #inString = false;
  #isEscaped = false;
  /** Text of the current string, number or literal. Undefined if this text is not wanted. */
  #text: string | undefined;

  /** A path is a list of object keys and array indexes that lead to a value. */
  constructor(paths: readonly (readonly (string | number)[])[]) {
    const root = newNode();
    for (const [i, path] of paths.entries()) {
      let node = root;
      for (const step of path) {
        const child = node.children.get(String(step)) ?? newNode();
        node.children.set(String(step), child);
        node = child;
      }
      node.paths.push(i);
    }
    this.values = paths.map(() => undefined);
    this.#root = { node: undefined, isArray: true, index: 0, current: root, isKey: false };
    this.#open = [this.#root];
  }

  /** Reads the next bytes. Throws a PassingError for text that cannot be an answer of Bitcoin Core. */
  readonly feed = (chunk: Uint8Array): void => {
    let from = 0;
    let backslash = -1;
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i] ?? 0;
      if (this.#inString) {
        if (this.#isEscaped) {
          this.#isEscaped = false;
          continue;
        }
        // Skips to the next quote or backslash with indexOf(), because most bytes are in long strings of hex.
        if (backslash < i) backslash = placeOf(BACKSLASH, chunk, i);
        const quote = placeOf(QUOTE, chunk, i);
        i = Math.min(quote, backslash);
        if (backslash < quote) this.#isEscaped = true;
        else if (quote < chunk.length) {
          this.#add(chunk, from, quote);
          this.#inString = false;
        }
      } else if (byte === QUOTE) {
        this.#inString = true;
        this.#text = this.#isWanted ? '' : undefined;
        from = i + 1;
      } else this.#punctuate(byte);
    }
    if (this.#inString) this.#add(chunk, from, chunk.length);
  };

  /** Must be called after the last bytes. Throws a PassingError if the JSON was cut off. */
  end(): void {
    if (this.#inString || this.#open.length > 1 || this.#root.index === 0) throw damaged();
  }

  get #frame(): Frame {
    const frame = this.#open.at(-1);
    if (frame === undefined) throw damaged();
    return frame;
  }

  /**
   * True if the text that begins here must be kept: a wanted value, or a key in an object that may have wanted values.
   */
  get #isWanted(): boolean {
    const { node, current, isKey } = this.#frame;
    return isKey ? node !== undefined : (current?.paths.length ?? 0) > 0;
  }

  #add(chunk: Uint8Array, from: number, to: number): void {
    if (this.#text === undefined || from === to) return;
    if (this.#text.length + to - from > LONGEST_VALUE) throw new PassingError(`has a value of more than ${LONGEST_VALUE} bytes`);
    this.#text += Buffer.from(chunk.buffer, chunk.byteOffset + from, to - from).toString('latin1');
  }

  #punctuate(byte: number): void {
    const frame = this.#frame;
    switch (byte) {
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        this.#begin(byte === OPEN_ARRAY);
        break;
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        if (frame === this.#root || frame.isArray !== (byte === CLOSE_ARRAY)) throw damaged();
        this.#endValue();
        this.#open.pop();
        if (this.#open.length === 1) this.#root.index = 1;
        break;
      case COLON:
        frame.current = this.#text === undefined ? undefined : frame.node?.children.get(this.#text);
        frame.isKey = false;
        this.#text = undefined;
        break;
      case COMMA:
        this.#endValue();
        frame.index += 1;
        frame.isKey = !frame.isArray;
        frame.current = frame.isArray ? frame.node?.children.get(String(frame.index)) : undefined;
        break;
      default:
        // White space, or a character of a number, `true`, `false` or `null`.
        if (byte > 0x20 && this.#isWanted) this.#text = (this.#text ?? '') + String.fromCharCode(byte);
    }
  }

  #begin(isArray: boolean): void {
    if (this.#open.length > DEEPEST) throw damaged();
    const { current: node } = this.#frame;
    for (const i of node?.paths ?? []) this.values[i] = isArray ? '[' : '{';
    const current = isArray ? node?.children.get('0') : undefined;
    this.#open.push({ node, isArray, index: 0, current, isKey: !isArray });
    this.#text = undefined;
  }

  /** Stores the current string, number or literal if it is a wanted value. */
  #endValue(): void {
    const { current, isKey } = this.#frame;
    if (this.#text !== undefined && !isKey) for (const i of current?.paths ?? []) this.values[i] = this.#text;
    this.#text = undefined;
  }
}
