import { ENVELOPE_TAIL } from '../../pages/envelope.ts';

/** Joins the parts of a page in one buffer, because allocating memory for each page costs more than copying. */
export class PageBuffer {
  #bytes = Buffer.allocUnsafeSlow(1 << 16);

  /** Returns a page: `head`, `records` (joined by commas) and the envelope's tail. The next call overwrites it. */
  join(head: string, records: Uint8Array): Buffer {
    const length = head.length + records.length + ENVELOPE_TAIL.length;
    if (length > this.#bytes.length) this.#bytes = Buffer.allocUnsafeSlow(length * 2);
    this.#bytes.write(head, 0, 'latin1');
    this.#bytes.set(records, head.length);
    this.#bytes.write(ENVELOPE_TAIL, length - ENVELOPE_TAIL.length, 'latin1');
    return this.#bytes.subarray(0, length);
  }
}
