/** The overview: adds charts and newest blocks to the page's HTML. Omits a part that fails to load. */
import { OPERATIONS } from '../../pages/blockAndTransactionLists.ts';
import { groupDigits } from '../formatValues.ts';
import { isAnswered } from './apiHost.ts';
import { byId, el } from './dom.ts';
import { blockLink, onlyFiles, timeOf } from './parts.ts';
import { fetchBlocks, fetchStats, MissingStats, type NewBlock } from './requestMirror.ts';
import { type Column, numbersOf, tableOf } from './tableOf.ts';

let isShown = false;

/** Fills the overview. Does nothing after the first call. */
export async function showOverview(): Promise<void> {
  if (isShown) return;
  isShown = true;
  await Promise.all([part('newest', fillNewest), charts(part)]);
  const example = byId('example');
  if (!(await isAnswered(example.querySelector('code')?.textContent ?? ''))) example.replaceWith(onlyFiles());
}

/** Fills a section. Hides it if its statistics fail to load. */
async function part(id: string, fill: (content: Element) => Promise<void>): Promise<void> {
  const section = byId(id);
  try {
    await fill(section.querySelector('.content') ?? section);
  } catch (error) {
    section.hidden = true;
    if (!(error instanceof MissingStats)) throw error;
  }
}

/** Fills a part that is shown already. Rejects if its statistics fail to load. */
const refill: typeof part = (id, fill) => fill(byId(id).querySelector('.content') ?? byId(id));

/** Shows new data. Rejects with MissingStats if a request fails. */
export const refreshOverview = (): Promise<unknown> => Promise.all([refill('newest', fillNewest), charts(refill)]);

async function charts(part: typeof refill): Promise<void> {
  // Names the bundle in the output (`.js`), because esbuild leaves this import unchanged (src/site/assets.ts).
  const drawing = import('./charts.js').catch((error: unknown) => {
    throw new MissingStats('charts.js', { cause: error });
  });
  const both = Promise.all([drawing, fetchStats()]);
  await Promise.all([
    part('activity', async (content) => {
      const [{ drawActivity }, stats] = await both;
      drawActivity(content, stats);
    }),
    part('runes', async (content) => {
      const [{ drawRunes }, stats] = await both;
      drawRunes(content, stats);
    }),
  ]);
}

async function fillNewest(content: Element): Promise<void> {
  content.replaceChildren(tableOf('blocks', 'Newest blocks', COLUMNS, [(await fetchBlocks()).slice(0, 12)]));
}

const COLUMNS: readonly Column<NewBlock>[] = [
  { name: 'Block', cell: ({ height }) => [blockLink(height)] },
  { name: 'Time', cell: ({ timestamp }) => [timeOf(timestamp)] },
  { name: 'Records', isNumber: true, cell: (block) => [el('span', { title: operationsOf(block) }, groupDigits(block.records))] },
  numbersOf('Transactions', ({ transactions }) => transactions),
];

const operationsOf = ({ operations }: NewBlock): string =>
  OPERATIONS.filter((name) => operations[name] > 0)
    .map((name) => `${groupDigits(operations[name])} ${name}`)
    .join(', ');
