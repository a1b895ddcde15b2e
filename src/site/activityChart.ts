/**
 * The chart of the overview: records by height, stacked by operation, as SVG. Positions along the axis are shares of the width, so one
 * drawing fits every screen. Uses no charting library, because a library would be much larger.
 */
import type { Stats } from '../contract/statsSchemas.ts';
import { runsOf } from '../groupBy.ts';
import { OPERATIONS } from '../pages/blockAndTransactionLists.ts';
import { count, groupDigits, utc } from './formatValues.ts';

/** Place of the columns in the drawing, in pixels from above. The labels of the axis are below them. */
const [TOP, FOOT] = [10, 210];

/** Width of a bar as a share of its column, and its greatest width as a share of the chart. */
const [BAR, WIDEST_BAR] = [0.78, 0.04];

/** Width of the columns on a narrow phone, on which the labels of the axis must have room, and of one of their digits. */
const [NARROW, DIGIT] = [290, 7.4];

/** Operations in the order of a stacked column, from bottom to top: the most frequent operations are at the bottom. */
export const FROM_BELOW = [...OPERATIONS].reverse();

/** A gap of more than this many buckets breaks the axis. */
const GAP_IN_BUCKETS = 20;

type Column = ReturnType<typeof columnsOf>[number];

/**
 * Returns a column for each entry: the first and the last of its heights that the mirror covers, its number of records, and whether many
 * heights without activity precede it.
 */
export function columnsOf({ activity, bucket, first, last }: Pick<Stats, 'activity' | 'bucket' | 'first' | 'last'>) {
  const runs = runsOf(activity, (before, after) => after.height - before.height > bucket * GAP_IN_BUCKETS);
  return runs.flatMap((run, i) =>
    run.map((entry, n) => {
      // An entry covers `bucket` heights. The mirror may lack some of them at its start and its end.
      const [from, to] = [Math.max(entry.height, first ?? 0), Math.min(entry.height + bucket - 1, last ?? Number.POSITIVE_INFINITY)];
      const total = OPERATIONS.reduce((sum, name) => sum + entry[name], 0);
      return { entry, first: from, last: to, total, followsGap: i > 0 && n === 0 };
    }),
  );
}

/** Returns a scale with two to six ticks, from 0 to a round number that is at least `most`. */
export function linear(most: number): { readonly top: number; readonly ticks: readonly number[] } {
  const least = Math.max(most, 1) / 4;
  const power = 10 ** Math.floor(Math.log10(least));
  // A tick is a number of records, so 2.5 is no step.
  const step = Math.max(1, power * ([1, 2, 2.5, 5, 10].find((each) => each * power >= least && (each !== 2.5 || power >= 10)) ?? 10));
  const steps = Math.ceil(most / step) || 1;
  return { top: steps * step, ticks: Array.from({ length: steps + 1 }, (_, i) => i * step) };
}

/** Formats numbers of records: `2 etching, 2 receive`. */
export const byOperation = (counts: Stats['operations']): string =>
  OPERATIONS.filter((name) => counts[name] > 0)
    .map((name) => `${groupDigits(counts[name])} ${name}`)
    .join(', ');

/** Returns the HTML of the chart, with a link for each column. The statistics must have activity. */
export function activityChart(stats: Stats): string {
  const columns = columnsOf(stats);
  const scale = linear(columns.reduce((most, { total }) => Math.max(most, total), 0));
  const y = (value: number) => TOP + (FOOT - TOP) * (1 - value / scale.top);
  const at = (i: number) => `${((100 * i) / columns.length).toFixed(3)}%`;
  const ticks = scale.ticks.map((tick) => {
    // A line of one pixel between two pixels would be blurred.
    const height = Math.round(y(tick)) + 0.5;
    return `<line x2="100%" y1="${height}" y2="${height}"/><text x="-8" y="${height}" dy=".32em" text-anchor="end">${groupDigits(tick)}</text>`;
  });
  const gaps = columns.flatMap(({ followsGap }, i) => (followsGap ? [i] : []));
  const breaks = gaps.map(
    (i) => `<svg class="break" x="${at(i)}"><path d="M0 ${TOP}V${FOOT}"/><path d="M-4 ${FOOT + 5}l4-10M0 ${FOOT + 5}l4-10"/></svg>`,
  );
  const labels = labelled(columns, gaps).map(({ i, anchor }) => {
    const place = anchor === 'middle' ? i + 0.5 : anchor === 'end' ? i + 1 : i;
    return `<text x="${at(place)}" y="${FOOT + 20}" text-anchor="${anchor}">${groupDigits(columns[i]?.first ?? 0)}</text>`;
  });
  const links = columns.map((column, i) => {
    // The Tab key stops only at the last column. Arrow keys lead to the others.
    const tab = i === columns.length - 1 ? '' : ' tabindex="-1"';
    return `<a href="?block=${column.first}" aria-label="${describe(column, stats)}"${tab}></a>`;
  });
  return `<div class="plot">
<svg class="drawing" aria-hidden="true">${ticks.join('')}
<svg viewBox="0 0 ${columns.length} ${FOOT}" preserveAspectRatio="none" width="100%" height="${FOOT}">${bars(columns, y).join('')}</svg>
${breaks.join('')}${labels.join('')}</svg>
<div role="group" aria-label="Records by block">${links.join('')}</div>
</div>`;
}

function bars(columns: readonly Column[], y: (value: number) => number): string[] {
  const width = Math.min(BAR, WIDEST_BAR * columns.length);
  const below = columns.map(() => 0);
  return FROM_BELOW.map((name) => {
    const rectangles = columns.map(({ entry }, i) => {
      const [value, from] = [entry[name], below[i] ?? 0];
      if (value === 0) return '';
      below[i] = from + value;
      // A minimum height keeps a single record visible beside many others.
      const height = Math.max(y(from) - y(from + value), 0.75);
      return `M${(i + (1 - width) / 2).toFixed(2)} ${y(from).toFixed(2)}v${(-height).toFixed(2)}h${width.toFixed(2)}v${height.toFixed(2)}z`;
    });
    return `<path data-operation="${name}" d="${rectangles.join('')}"/>`;
  });
}

/**
 * Chooses columns whose heights label the axis, as far as they have room on a phone: the ends, then breaks, then others. A label is below
 * the middle of its column. At the ends of the chart, it begins or ends with the column if it is wider than the column.
 */
function labelled(columns: readonly Column[], gaps: readonly number[]) {
  const last = columns.length - 1;
  const wanted = new Set([last, 0, ...gaps, ...[1, 2, 3].map((part) => Math.round((part * last) / 4))]);
  const taken: (readonly [from: number, to: number])[] = [];
  return [...wanted].flatMap((i) => {
    const length = groupDigits(columns[i]?.first ?? 0).length * DIGIT;
    const isWide = NARROW / columns.length > length;
    const anchor = isWide ? 'middle' : i === last ? 'end' : i === 0 ? 'start' : 'middle';
    const end = { start: length, middle: ((i + 0.5) / columns.length) * NARROW + length / 2, end: NARROW }[anchor];
    const [from, to] = [end - length - 8, end + 8];
    if (taken.some((each) => from < each[1] && to > each[0])) return [];
    taken.push([from, to]);
    return [{ i, anchor } as const];
  });
}

/** Returns what a column shows, as text: `Block 840,000, 2024-04-20: 4 records (2 etching, 2 receive)`. */
function describe({ first, last, entry, total }: Column, { bucket }: Stats): string {
  const blocks = last - first + 1;
  const heights = first === last ? `Block ${groupDigits(first)}` : `Blocks ${groupDigits(first)} to ${groupDigits(last)}`;
  const part = blocks < bucket ? `, ${groupDigits(blocks)} of ${groupDigits(bucket)}` : '';
  return `${heights}${part}, ${utc(entry.timestamp).split(' ')[0]}: ${count(total, 'record')} (${byOperation(entry)})`;
}
