/**
 * Verifies that records add up. In rows from a node, every transaction conserves every rune, no address sends more than it received, and
 * what an address did not send is in its unspent outputs. A record with a wrong sender is found only by the check of addresses, because the
 * sums of its transaction are right. Records of other sources have known faults (docs/files.md), so their runes cause no finding.
 */
import { isWithin } from '../duckdb/blockRanges.ts';
import { rowParts } from '../duckdb/sortedRows.ts';
import { flag, int, text } from '../duckdb/store.ts';
import type { TableWith } from '../duckdb/table.ts';
import type { KeptBlocks } from '../input/checkConsistency.ts';
import { MOST_DIGITS, summedChanges } from '../lists/balanceChanges.sql.ts';
import { movesOf } from '../rows/firstUnbalanced.ts';
import { PULL_ANEW } from './findings.ts';
import type { Outputs } from './spentOutputs.ts';
import type { Verification } from './verification.ts';

/** Maximum number of runes or transactions that get a finding of their own. */
const MOST_NAMED = 20;

/** Advice for outputs that do not add up: the input may lack spent outputs. */
const BUILD_OR_PULL = `Build again with the same flags and --full. If that does not help: ${PULL_ANEW}`;

const UNITS = `replace(coalesce(amount, '0'), '.', '')`;

/**
 * Adds findings for balances below zero, and for addresses whose unspent outputs do not add up to their balances. Only for records from a
 * node that begin at the first block with runes.
 */
export async function checkBalances(
  records: TableWith<'block_height' | 'rune_id' | 'address' | 'operation' | 'amount'>,
  outputs: Outputs | undefined,
  { findings, limits, store }: Verification,
): Promise<void> {
  // Amounts of more digits than a rune can have, which only wrong data has, count as 0, as in builds.
  const units = `CASE WHEN strlen(${UNITS}) <= ${MOST_DIGITS} THEN ${UNITS} ELSE '0' END AS units`;
  const moved = `SELECT rune_id, address, true AS moves, ${units}, CASE operation WHEN 'receive' THEN 1 ELSE -1 END AS sign
    FROM ${records} WHERE address IS NOT NULL AND operation IN ('receive', 'send', 'burn')`;
  const held = outputs && `UNION ALL SELECT rune_id, address, false, ${units}, -1 FROM ${outputs.held} WHERE address IS NOT NULL`;
  const unbalanced = new Map<string, string>();
  let differing: { readonly rune: string; readonly address: string } | undefined;
  for await (const part of rowParts({ rows: `${moved} ${held ?? ''}`, key: 'address', rowBytes: 512 }, limits, store)) {
    // Sums are normalised, so those of what an address moved and of what it holds cancel out only if they are equal.
    const rows = await store.rows(
      `SELECT rune_id AS rune, min(address) AS address, below FROM (
         SELECT rune_id, address, bool_or(moves AND (upper < 0 OR lower < 0)) AS below, sum(upper) <> 0 OR sum(lower) <> 0 AS differs
         FROM (${summedChanges(part, 'rune_id, address, moves')}) GROUP BY rune_id, address)
       WHERE below OR (${outputs !== undefined} AND differs) GROUP BY rune_id, below ORDER BY rune, address`,
      { rune: text, address: text, below: flag },
    );
    for (const { rune, address, below } of rows) {
      if (below) unbalanced.set(rune, [unbalanced.get(rune) ?? address, address].sort()[0] ?? address);
      else differing ??= { rune, address };
    }
  }
  const found = [...unbalanced].sort();
  if (found.length === 0 && differing !== undefined)
    findings.add(
      `the outputs of the address ${differing.address} and the rune ${differing.rune} do not add up to its balance`,
      BUILD_OR_PULL,
    );
  for (const [rune, address] of found.slice(0, MOST_NAMED))
    findings.add(`rune ${rune}: the address ${address} sends more than it received`, PULL_ANEW);
  if (found.length > MOST_NAMED) findings.add(`${found.length - MOST_NAMED} more runes have addresses that send more than they received`);
}

/**
 * Checks that each transaction conserves each rune, and that scripts without an address hold what they did not send. Only for records from
 * a node, because records of other sources omit the runes of scripts without an address. `isComplete` is true if the mirror has all blocks
 * since the first rune.
 */
export async function checkTransactions(
  records: TableWith<'block_height' | 'tx_id' | 'rune_id' | 'operation' | 'address' | 'amount'>,
  ranges: KeptBlocks['ranges'],
  { runes, outputs, isComplete }: Readonly<{ runes: TableWith<'id' | 'premine'>; outputs: Outputs | undefined; isComplete: boolean }>,
  { findings, store }: Verification,
): Promise<void> {
  await store.run('CREATE OR REPLACE TEMP TABLE unaddressed (rune_id VARCHAR, units BIGNUM)');
  for (const range of ranges) {
    const rows = `SELECT block_height, tx_id, rune_id, operation, address, ${UNITS} AS units, premine
      FROM (FROM ${records} WHERE ${isWithin(range)}) LEFT JOIN (SELECT id, premine FROM ${runes}) ON id = rune_id`;
    await store.run(`CREATE OR REPLACE TEMP TABLE moves AS ${movesOf(rows, 'block_height, tx_id, rune_id')}`);
    const wrong = await store.rows(
      `SELECT block_height AS height, tx_id AS id, rune_id AS rune, received::VARCHAR AS received, made::VARCHAR AS made, burned::VARCHAR AS burned
       FROM moves WHERE is_unbalanced ORDER BY height, id, rune LIMIT ${MOST_NAMED}`,
      { height: int, id: text, rune: text, received: text, made: text, burned: text },
    );
    for (const { height, id, rune, received, made, burned } of wrong)
      findings.add(
        `block ${height}: transaction ${id} does not conserve rune ${rune}: outputs receive ${received} units, but ${made} are sent or made, and ${burned} burned without an address`,
        PULL_ANEW,
      );
    await store.run(
      `INSERT INTO unaddressed SELECT rune_id, sum(unaddressed) FROM moves WHERE NOT is_unknown GROUP BY rune_id; DROP TABLE moves`,
    );
  }
  if (!isComplete) return;
  // Without lists of outputs, what is held is taken to be what was received.
  const held = outputs && `SELECT rune_id, sum(${UNITS}::BIGNUM) AS units FROM ${outputs.held} WHERE address IS NULL GROUP BY rune_id`;
  const received = `SELECT rune_id, sum(units) AS units FROM unaddressed GROUP BY rune_id`;
  const rows = await store.rows(
    `SELECT rune_id AS rune, coalesce(r.units, 0::BIGNUM)::VARCHAR AS units, coalesce(h.units, 0::BIGNUM)::VARCHAR AS held
     FROM (${received}) AS r FULL JOIN (${held ?? received}) AS h USING (rune_id)
     WHERE r.units < 0::BIGNUM OR coalesce(r.units, 0::BIGNUM) <> coalesce(h.units, 0::BIGNUM) ORDER BY rune LIMIT ${MOST_NAMED}`,
    { rune: text, units: text, held: text },
  );
  for (const { rune, units, held: inOutputs } of rows)
    if (units.startsWith('-'))
      findings.add(`rune ${rune}: scripts without an address send ${units.slice(1)} units more than they received`, PULL_ANEW);
    else
      findings.add(
        `rune ${rune}: the outputs without an address do not add up: they hold ${inOutputs} units, but received ${units} more than they sent`,
        BUILD_OR_PULL,
      );
}
