/**
 * The charts of the overview, in a bundle that loads after the page. They use no charting library, which would be much
 * larger than this code.
 */
import type { RuneStats, Stats } from '../../contract/stats.ts';
import { OPERATIONS } from '../../pages/lists.ts';
import { count, groupDigits, utc } from '../format.ts';
import { el, svg } from './dom.ts';
import { blockLink, linkTo, runeLink } from './parts.ts';
import { type Column, columnsOf, linear } from './scales.ts';

const HEIGHT = 236;
const MARGIN = { top: 10, right: 1, bottom: 26, left: 44 } as const;
/** Minimum width of a column in pixels; narrower columns are merged. */
const LEAST_STEP = 4;
const WIDEST_BAR = 44;
const SHOWN_RUNES = 12;

/** Operations of a stack from bottom to top. The most frequent ones come first. */
const FROM_BELOW = [...OPERATIONS].reverse();

/** Draws records by height, stacked by operation. Redraws when the width changes. */
export function drawActivity(content: Element, stats: Stats): void {
  if (stats.activity.length === 0) return;
  const place = el('div', { class: 'plot' });
  const readout = el('div', { class: 'readout', 'aria-hidden': 'true' });
  const unit = stats.bucket === 1 ? 'block' : `${groupDigits(stats.bucket)} heights`;
  content.replaceChildren(
    el(
      'figure',
      {},
      el('figcaption', {}, legend(stats), el('span', { class: 'quiet' }, `Records per ${unit}; heights without activity are omitted`)),
      place,
      asTable(stats),
    ),
  );
  let drawn = 0;
  new ResizeObserver(() => {
    const width = Math.floor(place.clientWidth);
    if (width === drawn || width === 0) return;
    drawn = width;
    place.replaceChildren(columnChart(stats, width, readout), readout);
  }).observe(place);
}

const legend = (stats: Stats): HTMLElement =>
  el(
    'ul',
    { class: 'legend' },
    ...OPERATIONS.map((name) =>
      el(
        'li',
        { class: 'operation', 'data-operation': name },
        name,
        ' ',
        el('span', { class: 'quiet' }, groupDigits(stats.operations[name])),
      ),
    ),
  );

function columnChart(stats: Stats, width: number, readout: HTMLElement): SVGElement {
  const room = width - MARGIN.left - MARGIN.right;
  const columns = columnsOf(stats, Math.max(1, Math.floor(room / LEAST_STEP)));
  const step = room / columns.length;
  const bar = Math.min(WIDEST_BAR, step > 6 ? step * 0.78 : step - 1);
  const scale = linear(columns.reduce((most, { total }) => Math.max(most, total), 0));
  const y = (value: number) => MARGIN.top + (HEIGHT - MARGIN.top - MARGIN.bottom) * (1 - value / scale.top);
  const middle = (i: number) => MARGIN.left + step * (i + 0.5);

  const chart = svg('svg', {
    role: 'img',
    width: String(width),
    height: String(HEIGHT),
    'aria-label': `Records of rune activity from block ${groupDigits(columns[0]?.first ?? 0)} to ${groupDigits(columns.at(-1)?.last ?? 0)}, stacked by operation. The table below has the same numbers.`,
  });
  for (const tick of scale.ticks) {
    chart.append(
      svg('line', { class: 'grid', x1: String(MARGIN.left), x2: String(width), y1: line(y(tick)), y2: line(y(tick)) }),
      svg('text', { class: 'tick', x: String(MARGIN.left - 8), y: String(y(tick)), dy: '.32em', 'text-anchor': 'end' }, groupDigits(tick)),
    );
  }
  const light = svg('rect', {
    class: 'light',
    y: String(MARGIN.top),
    height: String(HEIGHT - MARGIN.top - MARGIN.bottom),
    width: String(step),
    visibility: 'hidden',
  });
  chart.append(light);
  for (const [i, column] of columns.entries()) {
    chart.append(...stack(column, middle(i) - bar / 2, bar, y));
    if (column.follows === 'gap') chart.append(breakAt(MARGIN.left + step * i));
  }
  chart.append(...ticksOf(columns, middle, width));
  chart.addEventListener('pointermove', (event) => {
    const i = Math.min(columns.length - 1, Math.max(0, Math.floor((event.offsetX - MARGIN.left) / step)));
    const column = columns[i];
    if (column === undefined) return;
    light.setAttribute('x', String(MARGIN.left + step * i));
    light.setAttribute('visibility', 'visible');
    readout.replaceChildren(...describe(column));
    readout.hidden = false;
    const left = middle(i);
    readout.style.left = `${Math.min(Math.max(left - 90, 0), width - 180)}px`;
  });
  chart.addEventListener('pointerleave', () => {
    light.setAttribute('visibility', 'hidden');
    readout.hidden = true;
  });
  readout.hidden = true;
  return chart;
}

/** Aligns a line of one pixel to the pixel grid, so that it is not blurred. */
const line = (value: number): string => String(Math.round(value) + 0.5);

function stack(column: Column, x: number, width: number, y: (value: number) => number): SVGElement[] {
  let below = 0;
  return FROM_BELOW.flatMap((name) => {
    const value = column.operations[name];
    if (value === 0) return [];
    const [bottom, top] = [y(below), y(below + value)];
    below += value;
    // Keeps a single record visible beside many others.
    const height = Math.max(bottom - top, 0.75);
    return [
      svg('rect', {
        'data-operation': name,
        x: x.toFixed(2),
        width: width.toFixed(2),
        y: (bottom - height).toFixed(2),
        height: height.toFixed(2),
      }),
    ];
  });
}

/** Draws a break of the axis (two slanted strokes), where many heights have no activity. */
function breakAt(x: number): SVGElement {
  const foot = HEIGHT - MARGIN.bottom;
  return svg(
    'g',
    { class: 'break' },
    svg('line', { x1: String(x), x2: String(x), y1: String(MARGIN.top), y2: String(foot) }),
    svg('path', { d: `M${x - 4} ${foot + 5}l4-10M${x} ${foot + 5}l4-10` }),
  );
}

/** Labels columns with heights where there is room: first at the ends and breaks, then in between. */
function ticksOf(columns: readonly Column[], middle: (i: number) => number, width: number): SVGElement[] {
  const wanted = [
    columns.length - 1,
    ...columns.flatMap(({ follows }, i) => (follows === 'gap' || i === 0 ? [i] : [])),
    ...[1, 2, 3, 4].map((part) => Math.round((part * columns.length) / 5)),
  ];
  const taken: { from: number; to: number }[] = [];
  return wanted.flatMap((i) => {
    const column = columns[i];
    if (column === undefined) return [];
    const text = groupDigits(column.first);
    const half = text.length * 3.7;
    const x = Math.min(Math.max(middle(i), half), width - half);
    const [from, to] = [x - half - 8, x + half + 8];
    if (taken.some((each) => from < each.to && to > each.from)) return [];
    taken.push({ from, to });
    return [svg('text', { class: 'tick', x: String(x), y: String(HEIGHT - 6), 'text-anchor': 'middle' }, text)];
  });
}

function describe(column: Column): Node[] {
  const heights = column.first === column.last ? groupDigits(column.first) : `${groupDigits(column.first)} to ${groupDigits(column.last)}`;
  return [
    el('strong', {}, heights),
    el('span', { class: 'quiet' }, utc(column.timestamp).slice(0, 10)),
    ...OPERATIONS.filter((name) => column.operations[name] > 0).map((name) =>
      el('span', { class: 'operation', 'data-operation': name }, name, ' ', el('b', {}, groupDigits(column.operations[name]))),
    ),
  ];
}

function asTable(stats: Stats): HTMLElement {
  const head = [stats.bucket === 1 ? 'Block' : 'From height', 'Time', ...OPERATIONS].map((name, i) =>
    el('th', { scope: 'col', class: i > 1 ? 'number' : undefined }, name),
  );
  const rows = stats.activity.map((entry) =>
    el(
      'tr',
      {},
      el('td', {}, stats.bucket === 1 ? blockLink(entry.height) : groupDigits(entry.height)),
      el('td', {}, utc(entry.timestamp)),
      ...OPERATIONS.map((name) => el('td', { class: 'number' }, groupDigits(entry[name]))),
    ),
  );
  return el(
    'details',
    {},
    el('summary', {}, 'As a table'),
    el(
      'div',
      { class: 'scrolls', tabindex: '0', role: 'region', 'aria-label': 'Activity as a table' },
      el('table', { 'aria-label': 'Records by operation' }, el('thead', {}, el('tr', {}, ...head)), el('tbody', {}, ...rows)),
    ),
  );
}

/** Lists the runes with the most records, as a table with bars, so that screen readers can read it. */
export function drawRunes(content: Element, stats: Stats): void {
  const runes = stats.runes.slice(0, SHOWN_RUNES);
  const most = runes.reduce((top, { records }) => Math.max(top, records), 0);
  content.replaceChildren(
    el(
      'table',
      { class: 'bars', 'aria-labelledby': 'runes-title' },
      el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'Rune'), el('th', { scope: 'col', class: 'number' }, 'Records'))),
      el('tbody', {}, ...runes.map((rune) => runeRow(rune, most, stats))),
    ),
  );
}

function runeRow(rune: RuneStats, most: number, { first, last }: Stats): HTMLElement {
  const parts = FROM_BELOW.filter((name) => rune[name] > 0);
  const bar = el(
    'span',
    { class: 'bar-of', 'aria-hidden': 'true', title: parts.map((name) => `${groupDigits(rune[name])} ${name}`).join(', ') },
    ...parts.map((name) => el('span', { 'data-operation': name, style: `width:${((rune[name] / most) * 100).toFixed(2)}%` })),
  );
  const [block = ''] = rune.id.split(':');
  // Many mirrors have only a window of blocks, and most of their runes were etched earlier.
  const isInMirror = /^[0-9]{1,16}$/.test(block) && first !== null && last !== null && Number(block) >= first && Number(block) <= last;
  const id = isInMirror
    ? linkTo({ kind: 'block', id: block, operation: undefined, offset: 0 }, rune.id, `Etched in block ${groupDigits(block)}`)
    : el('span', {}, rune.id);
  id.classList.add('rune-id');
  return el(
    'tr',
    {},
    el('td', {}, runeLink(rune), ' ', id, bar),
    el('td', { class: 'number', title: count(rune.records, 'record') }, groupDigits(rune.records)),
  );
}
