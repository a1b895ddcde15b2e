/**
 * Measures how fast the real blocks in test/fixtures/indexing are parsed and indexed, on one core: `npx tsx
 * bench/runes.ts [rounds]`. In the ledger, the first spent output of each transaction with a message has a rune. So
 * transactions move runes and make rows.
 */
import { readFileSync } from 'node:fs';
import { decompress } from 'fzstd';
import { hash256 } from '../src/pull/node/hash256.ts';
import { uint32At } from '../src/runes/bytes.ts';
import { commitmentsOf, indexBlock } from '../src/runes/indexBlock.ts';
import { NETWORKS } from '../src/runes/networks.ts';
import { type Block, readBlock, type TransactionPlace } from '../src/runes/parseBlock.ts';
import { runeId } from '../src/runes/runeId.ts';
import type { Ledger, RuneOutput } from '../src/runes/unspentLedger.ts';

const rounds = Number(process.argv[2] ?? 40);

/** Returns the CPU seconds that `work` takes, and its result. */
function timed<T>(work: () => T): [number, T] {
  const start = process.cpuUsage();
  const result = work();
  const { user, system } = process.cpuUsage(start);
  return [(user + system) / 1e6, result];
}

/** Returns a ledger in which the first spent output of each transaction with a message has one rune. */
function ledgerFor(block: Block): Ledger {
  const outputs = new Map<number, { at: number; output: RuneOutput }>();
  const script = Uint8Array.from([0x51, 32, ...new Uint8Array(32).fill(7)]);
  const hasMessage = ({ message }: TransactionPlace) => message !== undefined;
  for (const { firstInput } of block.transactions.filter(hasMessage)) {
    const at = block.inputs[firstInput] ?? 0;
    outputs.set(uint32At(block.bytes, at), { at, output: { script, balances: [{ rune: runeId(840_000, 3), amount: 10n ** 15n }] } });
  }
  return {
    output: (bytes, at) => {
      const found = outputs.get(uint32At(bytes, at));
      return found?.at === at ? found.output : undefined;
    },
    rune: () => undefined,
    nameTaken: () => false,
    runes: 100_000,
  };
}

for (const height of [849_236, 866_342]) {
  const bytes = decompress(readFileSync(new URL(`../test/fixtures/indexing/blocks/${height}.bin.zst`, import.meta.url)));
  const ledger = ledgerFor(readBlock(bytes, hash256));
  const times: { read: number[]; index: number[] } = { read: [], index: [] };
  let [rows, messages, transactions] = [0, 0, 0];
  for (let round = -3; round < rounds; round++) {
    const [read, block] = timed(() => readBlock(bytes, hash256));
    const [index] = timed(() => {
      rows = 0;
      commitmentsOf(block, { height, network: NETWORKS.main, ledger });
      const previousOutput = () => ({ script: new Uint8Array(), height });
      return indexBlock(block, { height, network: NETWORKS.main, ledger, hash256, previousOutput, emit: () => rows++ });
    });
    // Rounds below 0 only let the compiler optimise the code.
    if (round >= 0) {
      times.read.push(read);
      times.index.push(index);
    }
    transactions = block.transactions.length;
    messages = block.transactions.filter(({ message }) => message).length;
  }
  // Takes the minimum, because other programs on the machine can only add time.
  const [read, index] = [1000 * Math.min(...times.read), 1000 * Math.min(...times.index)];
  const megabytes = bytes.length / 1e6;
  console.log(
    `block ${height}: ${megabytes.toFixed(2)} MB, ${transactions} transactions, ${messages} messages, ${rows} rows: ` +
      `read ${read.toFixed(1)} ms, index ${index.toFixed(1)} ms of CPU, ` +
      `${(1000 / (read + index)).toFixed(0)} blocks/s, ${((1000 * megabytes) / (read + index)).toFixed(0)} MB/s`,
  );
}
