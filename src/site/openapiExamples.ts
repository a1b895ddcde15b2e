/** Examples for openapi.json: a real transaction, an invented block from the tests' data, and errors from the parser of requests. */
import type { BuiltSite, Dialect, Site } from '../pages/mirrorOptions.ts';
import { spellHex } from '../pages/parseIds.ts';
import { parseTarget } from '../pages/parseRequest.ts';
import { errorBody } from '../serve/http/errorBodies.ts';

/** Transaction that etched DOG•GO•TO•THE•MOON, the third rune. */
export const EXAMPLE_TX = 'e79134080a83fe3e0e06ed6990c5a9b63b362313341745707a2bff7d788a1375';

/** Address that received the premine in this transaction. */
export const EXAMPLE_ADDRESS = 'bc1pry0ne0yf5pkgqsszmytmqkpzs4aflhr8tfptz9sydqrhxexgujcqqler2t';

/** The newer one of the two records of the transaction EXAMPLE_TX. */
const PREMINE = {
  rune: { id: '840000:3', number: 3, name: 'DOGGOTOTHEMOON', spaced_name: 'DOG•GO•TO•THE•MOON' },
  address: EXAMPLE_ADDRESS,
  amount: '100000000000.00000',
  operation: 'receive',
  location: {
    block_hash: '0000000000000000000320283a032748cef8227873ff4872689bf23f1cda83a5',
    block_height: 840000,
    tx_id: EXAMPLE_TX,
    tx_index: 3,
    vout: 1,
    timestamp: 1713571767,
  },
};

/** The only record of a block in the recorded test data (test/fixtures/conformance). */
const RECORDED = {
  rune: { id: '840000:11', number: 11, name: 'PREKLJSXWMBQMMMGEF', spaced_name: 'PREKLJS•XWMBQM•M•MGEF' },
  address: 'bc1qmhsd5hsd0jfr72vr94spak3329nf4jqyh3pg05',
  amount: '1000000000000000.000000000000000000',
  operation: 'receive',
  location: {
    block_hash: '000000000000000d827e3f76ac4dcec2f16b3711a417616ae2d552884477d993',
    block_height: 840012,
    tx_id: '5c29a3427ca084d02902bfe4849a3e48d3ddc88a4faad0c9c51865f0cc02b811',
    tx_index: 1,
    vout: 1,
    timestamp: 1713580211,
  },
};

/** Formats a record in a dialect, with the dialect's order of keys. Only `receiver_address` may be missing. */
function spelled({ rune, address, amount, operation, location }: typeof PREMINE, dialect: Dialect): object {
  const { block_height, tx_index, vout, timestamp } = location;
  const [block_hash, tx_id] = [spellHex(location.block_hash, dialect), spellHex(location.tx_id, dialect)];
  if (dialect === 'contract') {
    return { rune, address, amount, operation, location: { block_hash, block_height, tx_id, tx_index, vout, output: tx_id, timestamp } };
  }
  const output = `${tx_id}:${vout}`;
  return { rune, operation, location: { block_hash, block_height, tx_id, tx_index, timestamp, vout, output }, address, amount };
}

type Examples = Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;

const windowOf = (summary: string, total: number, results: readonly object[]): Examples[string] => ({
  summary,
  value: { limit: 1, offset: 0, total, results },
});

export const transactionExamples = ({ dialect }: Site): Examples => ({
  etching: windowOf('A real etching, limit=1: the newer of its two records', 2, [spelled(PREMINE, dialect)]),
  unknown: windowOf('An unknown transaction, limit=1', 0, []),
});

export const blockExamples = ({ dialect }: Site): Examples => ({
  recorded: windowOf('A block with one record, limit=1 (invented data, recorded from a server of this API)', 1, [
    spelled(RECORDED, dialect),
  ]),
  unknown: windowOf('An unknown block, or one without activity, limit=1', 0, []),
});

/** Returns the 400 answers to these targets. Throws if the API accepts a target. */
export function refusals(targets: Readonly<Record<string, string>>, site: BuiltSite): Examples {
  return Object.fromEntries(
    Object.entries(targets).map(([name, target]) => {
      const route = parseTarget(target, site);
      if (route.kind !== 'refusal') throw new Error(`${target} gets no 400`);
      return [name, { summary: `GET ${target}`, value: JSON.parse(errorBody(400, route.message).body) }];
    }),
  );
}
