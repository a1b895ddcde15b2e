/**
 * Writes the etchings of an archive (archive/etchings.ts). A level has the etchings that changed in its blocks, as they
 * are after the last of these. So it depends on the blocks up to its end only: a new block writes the newest level, and
 * an incremental build produces the files of a full one.
 */
import type { DocumentLevel } from '../archive/levels.ts';
import { HAS_COUNTS, windowMoves } from '../etchings/changes.ts';
import type { Etchings } from '../etchings/facts.ts';
import { type EtchingForm, renderEtchings } from '../etchings/rows.ts';
import type { Store } from '../store/duckdb.ts';
import { makeLevels, writeDocuments } from './changes.ts';
import type { DocumentWriter } from './documents.ts';
import type { LevelPlan } from './listedRecords.ts';

/** The etchings of the last build and of this one; undefined without etchings. */
export interface EtchingChange {
  readonly before: Etchings | undefined;
  readonly now: Etchings | undefined;
}

/** Writes the levels that the last build, whose levels are `old`, does not have. */
export const writeEtchings = (
  plans: readonly LevelPlan[],
  old: readonly DocumentLevel[],
  form: EtchingForm,
  writer: () => DocumentWriter,
  store: Store,
): Promise<DocumentLevel[]> =>
  makeLevels(plans, old, (plan) => writeDocuments(writer(), plan, renderEtchings(changedIn(plan, form), plan.last, form, store)));

/** Returns SQL of the ordinals of etchings that changed in a range of heights. */
function changedIn({ first, last }: LevelPlan, { etchings, state, hasCounts }: EtchingForm): string {
  const isIn = `block_height BETWEEN ${first} AND ${last}`;
  const moved = `SELECT rune_id FROM ${state.blockRunes} WHERE ${isIn} AND ${HAS_COUNTS} UNION SELECT id FROM ${state.runes} WHERE ${windowMoves(first, last)}`;
  return `SELECT ordinal FROM ${etchings} WHERE ${isIn} OR (${hasCounts} AND block_height <= ${last} AND id IN (${moved}))`;
}
