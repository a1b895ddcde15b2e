/**
 * The way of the input into the store: find, recognise, read, check every record, make canonical, check records against each other.
 * Nothing outside the scratch folder is touched; bad input ends here, with an InputError.
 */
import { join } from 'node:path';
import { InputError } from '../errors.ts';
import type { Store } from '../store/duckdb.ts';
import { checkConsistency, type Holdings } from './consistency.ts';
import { discover } from './discover.ts';
import { assembleEnvelopes } from './envelopes.ts';
import { reportBadRecords } from './explain.ts';
import { recognise } from './recognise.ts';
import { Report } from './report.ts';
import { loadRunes, reportUnknownRunes } from './runes.ts';
import {
  CANONICAL_COLUMNS,
  canonicalSelect,
  groupAlike,
  isClustered,
  isTableClustered,
  ledgerSelect,
  type Numbered,
  type RawSource,
  readSource,
  SERVED_ORDER,
  SHIFT_DECIMALS,
} from './sources.ts';

export interface Loaded extends Holdings {
  readonly files: number;
  /** What the user should know though it is no error. */
  readonly notices: readonly string[];
}

/**
 * Loads all inputs; `own` are the build's own folders, which are no input. Afterwards the store has the view `kept` and the tables `blocks`
 * and `transactions` (see consistency.ts).
 */
export async function loadInput(inputs: readonly string[], own: readonly string[], scratch: string, store: Store): Promise<Loaded> {
  const files = await discover(inputs, own);
  const notices: string[] = [];
  const recognised: Numbered[] = [];
  for (const [id, file] of files.entries()) {
    const found = await recognise(file, store, join(scratch, `${id}.plain`));
    if (found.form === 'no-records') notices.push(`${file.name} holds no records`);
    else recognised.push({ ...found, id });
  }
  const sources: RawSource[] = [];
  for (const group of groupAlike(recognised)) sources.push(await readSource(group, store));
  await store.run(SHIFT_DECIMALS);
  await checkRecords(sources, store);
  notices.push(...(await makeCanonical(sources, store)));

  const holdings = await checkConsistency(new Map(files.map((file, id) => [id, file.name])), store);
  if (holdings.records === 0) {
    throw new InputError('the input holds no activity records', [
      `Read: ${files
        .map((f) => f.name)
        .slice(0, 10)
        .join(', ')}.`,
      'A mirror of nothing would answer every request with an empty list, so none is built.',
    ]);
  }
  if (holdings.copiedBlocks > 0) {
    notices.push(`${holdings.copiedBlocks} block(s) are in several files with the same records; one copy of each was taken`);
  }
  return { ...holdings, files: files.length, notices };
}

async function checkRecords(sources: readonly RawSource[], store: Store): Promise<void> {
  const ledgers = sources.filter((s) => s.form === 'ledger');
  const runes = sources.filter((s) => s.form === 'runes');
  const report = new Report();
  for (const source of sources) await reportBadRecords(source, report, store);
  const summary = (count: number) => `the input has ${count} fault(s); nothing was written`;
  report.throwIfAny(summary);
  await loadRunes(runes, ledgers, store);
  for (const ledger of ledgers) await reportUnknownRunes(ledger, report, store);
  report.throwIfAny(summary);
}

/** Makes the view `activity`: the canonical records of all sources. Returns notices. */
async function makeCanonical(sources: readonly RawSource[], store: Store): Promise<string[]> {
  const relations: string[] = [];
  const notices: string[] = [];
  for (const source of sources) {
    if (source.form === 'runes' || source.form === 'envelope') continue;
    const select = source.form === 'ledger' ? ledgerSelect(source) : canonicalSelect(source);
    const relation = `canonical_${relations.length}`;
    relations.push(relation);
    if (source.isView && (await isClustered(source, store))) {
      await store.run(`CREATE TEMP VIEW ${relation} AS ${select}`);
      continue;
    }
    await store.run(`CREATE TEMP TABLE ${relation} AS ${select} ${source.isView ? `ORDER BY ${SERVED_ORDER}` : ''}`);
    if (source.isView) continue;
    await store.run(`DROP TABLE ${source.relation}`);
    if (await isTableClustered(relation, store)) continue;
    await store.run(`CREATE TEMP TABLE sorted AS SELECT * FROM ${relation} ORDER BY ${SERVED_ORDER}`);
    await store.run(`DROP TABLE ${relation}`);
    await store.run(`ALTER TABLE sorted RENAME TO ${relation}`);
  }
  const saved = sources.filter((s) => s.form === 'envelope');
  if (saved.length > 0) {
    const copies = await assembleEnvelopes(saved, 'canonical_saved', store);
    relations.push('canonical_saved');
    if (copies > 0) notices.push(`${copies} record(s) are in several saved responses; one copy of each was taken`);
  }
  const columns = CANONICAL_COLUMNS.map((c) => `"${c}"`).join(', ');
  if (relations.length === 0) {
    throw new InputError('the input holds no activity records', ['Found only runes tables and files without records.']);
  }
  await store.run(`CREATE TEMP VIEW activity AS ${relations.map((r) => `SELECT ${columns} FROM ${r}`).join(' UNION ALL ')}`);
  return notices;
}
