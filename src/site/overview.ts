/** The statistics on the start page: a chart, the newest blocks and the most active runes. Names of runes are data, so they are escaped. */
import type { LatestBlocks, RuneStats, Stats } from '../contract/statsSchemas.ts';
import { OPERATIONS } from '../pages/blockAndTransactionLists.ts';
import { activityChart, byOperation, FROM_BELOW } from './activityChart.ts';
import { searchOf, viewOfRune } from './explorer/views.ts';
import { groupDigits, isoTime, utc } from './formatValues.ts';
import { escaped } from './html.ts';

/** Statistics of a build: the contents of `stats.json` and `blocks.json`. */
export interface Statistics {
  readonly stats: Stats;
  readonly latest: LatestBlocks;
}

/** Maximum length of a name that is shown in full. Bitcoin's have at most 28 letters and 27 spacers, but those of a file any length. */
const LONGEST_NAME = 100;

const [SHOWN_BLOCKS, SHOWN_RUNES] = [12, 12];

/** Returns the HTML of the statistics. Empty if the mirror has no activity. */
export function overviewOf({ stats, latest }: Statistics): string {
  if (stats.activity.length === 0) return '';
  const legend = OPERATIONS.map(
    (name) =>
      `<li class="operation" data-operation="${name}">${name} <span class="quiet">${groupDigits(stats.operations[name])}</span></li>`,
  );
  const unit = stats.bucket === 1 ? 'a block with activity' : `${groupDigits(stats.bucket)} blocks`;
  const blocks = latest.blocks.slice(0, SHOWN_BLOCKS).map(({ height, timestamp, records, transactions, operations }) => {
    const iso = isoTime(timestamp);
    const time = iso === '' ? utc(timestamp) : `<time datetime="${iso}">${utc(timestamp)}</time>`;
    return [blockLink(height), time, `<span title="${byOperation(operations)}">${groupDigits(records)}</span>`, groupDigits(transactions)];
  });
  const shown = stats.runes.slice(0, SHOWN_RUNES);
  const runes = shown.map((rune) => [runeWithBar(rune, shown[0]?.records ?? 1, stats), groupDigits(rune.records)]);
  return `<section id="activity" aria-labelledby="activity-title">
<h2 id="activity-title">Activity</h2>
<figure>
<figcaption><ul class="legend">${legend.join('')}</ul><span class="quiet">Each column is ${unit}</span></figcaption>
${activityChart(stats)}
</figure>
</section>
<div class="columns">
<section id="newest" aria-labelledby="newest-title">
<h2 id="newest-title">Newest blocks</h2>
${table('Newest blocks', ['Block', 'Time'], ['Records', 'Transactions'], blocks)}
</section>
<section id="runes" aria-labelledby="runes-title">
<h2 id="runes-title">Most active runes</h2>
${table('Most active runes', ['Rune'], ['Records'], runes)}
<p class="scripted"><a href="?runes">All runes</a></p>
</section>
</div>
`;
}

const blockLink = (height: number, text = groupDigits(height), title = ''): string =>
  `<a href="?block=${height}"${title === '' ? '' : ` title="${title}"`}>${text}</a>`;

/** Renders a table from the HTML of its cells. Columns of numbers are the last. */
function table(label: string, texts: readonly string[], numbers: readonly string[], rows: readonly (readonly string[])[]): string {
  const amount = (i: number) => (i < texts.length ? '' : ' class="amount"');
  const heads = [...texts, ...numbers].map((name, i) => `<th scope="col"${amount(i)}>${name}</th>`);
  const body = rows.map((cells) => `<tr>${cells.map((cell, i) => `<td${amount(i)}>${cell}</td>`).join('')}</tr>`);
  return `<div class="wide"><table aria-label="${label}">
<thead><tr>${heads.join('')}</tr></thead>
<tbody>
${body.join('\n')}
</tbody>
</table></div>`;
}

/** Shows a rune, its id, and a bar of its records, whose full width is `most`. */
function runeWithBar(rune: RuneStats, most: number, { first, last }: Stats): string {
  const parts = FROM_BELOW.filter((name) => rune[name] > 0).map(
    (name) => `<span data-operation="${name}" style="width:${((100 * rune[name]) / most).toFixed(2)}%"></span>`,
  );
  const [block = ''] = rune.id.split(':');
  // Links the block of the etching only if the mirror has it. In a mirror of a window of blocks, most runes are older.
  const isInMirror = /^[0-9]{1,15}$/.test(block) && first !== null && last !== null && Number(block) >= first && Number(block) <= last;
  const code = `<code>${escaped(rune.id)}</code>`;
  const id = isInMirror ? blockLink(Number(block), code, `Etched in block ${groupDigits(block)}`) : code;
  const isLong = rune.spaced_name.length > LONGEST_NAME;
  const cut = isLong ? `${rune.spaced_name.slice(0, LONGEST_NAME)}…` : rune.spaced_name;
  const name = escaped(cut).replaceAll('•', '•<wbr>');
  const bar = `<span class="bar-of" aria-hidden="true" title="${byOperation(rune)}">${parts.join('')}</span>`;
  return `<a class="rune" href="${escaped(searchOf(viewOfRune(isLong ? { ...rune, name: rune.id } : rune)))}">${name}</a> ${id}${bar}`;
}
