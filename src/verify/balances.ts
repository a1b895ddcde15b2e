/**
 * Verifies balances and holders: makes all their documents again from the records of the blocks and from the etchings, as
 * a full build does, and compares them with those of the archive.
 */

import { levelRanges } from '../archive/levels.ts';
import type { BalanceTables, ListTables } from '../archive/listTables.ts';
import { writeBalances } from '../archiver/balances.ts';
import type { StoredArchive } from '../archiver/storedArchive.ts';
import { listEtchings } from '../etchings/facts.ts';
import { archivePath } from '../pages/paths.ts';
import { State } from '../state/state.ts';
import { comparedLevels } from './comparedLevel.ts';
import type { EtchingsVerification } from './etchings.ts';
import { verifyOutputs } from './outputs.ts';
import type { Verification } from './verification.ts';

/** Compares all documents. `etchings` are those of the output. Needs the tables of `RecordTables`. */
export async function verifyBalances(
  verification: Verification,
  archive: StoredArchive,
  lists: ListTables,
  balances: BalanceTables,
  etchings: EtchingsVerification,
): Promise<void> {
  const { site, findings, scratch, store } = verification;
  const name = archivePath(archive.name.root);
  if (lists.tip !== site.tip) {
    findings.add(`${name} has lists up to block ${lists.tip}, expected ${site.tip}`);
    return;
  }
  await loadRunes(verification, etchings);
  const limits = { ...verification.limits, listPage: lists.page, listLevels: lists };
  const plans = levelRanges(lists.tip, lists, lists.lowest).map((range) => ({ ...range, reused: [], isSame: false }));
  const before = findings.count;
  try {
    const writer = comparedLevels(WHAT, balances, archive, findings);
    const expected = await writeBalances(plans, { tip: lists.tip, limits, old: undefined, scratch, writer }, store);
    if (findings.count === before && JSON.stringify(expected) !== JSON.stringify(balances))
      findings.add(`${name} has other levels of balances, or other unbalanced runes, than a build makes`);
    if (findings.count === before && lists.outputs !== undefined)
      await verifyOutputs(verification, archive, { ...lists, outputs: lists.outputs }, limits);
  } catch (error) {
    findings.addDamage(error);
  }
}

const WHAT = { addresses: 'balances of the address', holders: 'holders of the rune with the ordinal' } as const;

async function loadRunes({ site, store }: Verification, etchings: EtchingsVerification): Promise<void> {
  const state = await State.attach(store, undefined, {}, undefined);
  await state.begin();
  const rows: (string | number)[][] = [];
  for await (const one of etchings.all())
    rows.push([one.id, one.number, one.name, one.spaced_name, one.divisibility, one.block_height, one.tx_index]);
  await store.append(
    'read_runes',
    {
      id: 'VARCHAR',
      number: 'BIGINT',
      name: 'VARCHAR',
      spaced_name: 'VARCHAR',
      divisibility: 'BIGINT',
      block_height: 'BIGINT',
      tx_index: 'BIGINT',
    },
    rows,
  );
  await store.run(`INSERT INTO state.runes (id, number, name, spaced_name, divisibility, block_height, tx_index) FROM read_runes;
    INSERT INTO state.tip (block_height) VALUES (${site.tip})`);
  await listEtchings('etchings', store);
}
