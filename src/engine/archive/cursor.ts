/** Reads a sequence item by item. `current` stays available until the next item is read. */
export class Cursor<Item> {
  /** Current item. Undefined before the first call of `next`, and after the last item. */
  current: Item | undefined;

  constructor(private readonly items: Iterator<Item>) {}

  next(): void {
    const { value, done } = this.items.next();
    this.current = done === true ? undefined : value;
  }

  close(): void {
    this.items.return?.();
  }
}
