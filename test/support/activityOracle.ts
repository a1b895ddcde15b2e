/**
 * Computes the API's answers about activity by rune and by address, from the rows of a ledger and a runes table. Shares
 * no code with the program.
 */
export interface LedgerRow {
  readonly rune_id: string;
  readonly block_hash: string;
  readonly block_height: number;
  readonly tx_index: number;
  readonly event_index: number;
  readonly tx_id: string;
  readonly output: string;
  readonly address: string;
  readonly receiver_address: string;
  readonly amount: string;
  readonly operation: string;
  readonly timestamp: number;
}
export interface RuneRow {
  readonly id: string;
  readonly number: number;
  readonly name: string;
  readonly spaced_name: string;
  readonly divisibility: number;
}

/** Parses a CSV file. Does not support quotes, because the columns that are used have none. */
function tableOf(csv: string): Record<string, string>[] {
  const [head = '', ...lines] = csv.trimEnd().split('\n');
  const names = head.split(',');
  return lines.map((line) => Object.fromEntries(line.split(',').map((cell, i) => [names[i] ?? '', cell])));
}

const whole = ['block_height', 'tx_index', 'event_index', 'timestamp', 'number', 'divisibility'];
const typed = (row: Record<string, string>) =>
  Object.fromEntries(Object.entries(row).map(([name, cell]) => [name, whole.includes(name) ? Number(cell) : cell]));

export interface Asked {
  /** Id, number, or name without spacers in upper case. */
  readonly rune?: string | undefined;
  readonly address?: string | undefined;
  readonly limit: number;
  readonly offset: number;
}

export class ActivityOracle {
  readonly runes: ReadonlyMap<string, RuneRow>;
  /** Rows from newest to oldest, without the rows of unknown runes. */
  readonly rows: readonly LedgerRow[];

  constructor(rows: readonly LedgerRow[], runes: readonly RuneRow[]) {
    this.runes = new Map(runes.map((rune) => [rune.id, rune]));
    this.rows = rows
      .filter((row) => this.runes.has(row.rune_id))
      .sort((a, b) => b.block_height - a.block_height || b.tx_index - a.tx_index || b.event_index - a.event_index);
  }

  static of(ledger: string, runes: string): ActivityOracle {
    return new ActivityOracle(
      tableOf(ledger).map((row) => typed(row) as unknown as LedgerRow),
      tableOf(runes).map((row) => typed(row) as unknown as RuneRow),
    );
  }

  /** Returns the body of the API's answer in dialect `hiro`. */
  answer({ rune, address, limit, offset }: Asked): string {
    const known = [...this.runes.values()].find(({ id, number, name }) => id === rune || String(number) === rune || name === rune);
    const all = this.rows.filter(
      (row) => (rune === undefined || row.rune_id === known?.id) && (address === undefined || row.address === address),
    );
    const results = all.slice(offset, offset + limit).map((row) => this.#record(row, rune === undefined));
    return JSON.stringify({ limit, offset, total: all.length, results });
  }

  #record(row: LedgerRow, hasRune: boolean): object {
    const { id = '', number, name, spaced_name, divisibility = 0 } = this.runes.get(row.rune_id) ?? {};
    const { block_hash, block_height, tx_id, tx_index, timestamp, output, address, receiver_address, amount, operation } = row;
    const digits = amount.padStart(divisibility + 1, '0');
    const shown = divisibility === 0 ? digits : `${digits.slice(0, -divisibility)}.${digits.slice(-divisibility)}`;
    return {
      ...(hasRune ? { rune: { id, number, name, spaced_name } } : {}),
      operation,
      location: {
        block_hash,
        block_height,
        tx_id,
        tx_index,
        timestamp,
        ...(output === '' ? {} : { vout: Number(output), output: `${tx_id}:${output}` }),
      },
      ...(address === '' ? {} : { address }),
      ...(receiver_address === '' ? {} : { receiver_address }),
      ...(amount === '' ? {} : { amount: shown }),
    };
  }
}
