/**
 * The charts of the overview, in a bundle that loads after the page. Uses no charting library, because a library would
 * be much larger.
 */
import type { ActivityEntry, RuneStats, Stats } from '../../contract/statsSchemas.ts';
import { OPERATIONS } from '../../pages/blockAndTransactionLists.ts';
import { count, groupDigits, utc } from '../formatValues.ts';
import { type Column, columnsOf, linear } from './chartColumns.ts';
import { type Child, el, svg } from './dom.ts';
import { announce, blockLink, linkTo, runeLink } from './parts.ts';
import { barOf } from './shares.ts';
import { numbersOf, type Column as TableColumn, tableOf } from './tableOf.ts';

const HEIGHT = 236;
const MARGIN = { top: 10, right: 1, bottom: 26, left: 44 } as const;
/** Minimum width of a column, in pixels. Narrower columns are merged. */
const LEAST_STEP = 4;
const WIDEST_BAR = 44;
const SHOWN_RUNES = 12;

/** Operations in the order of a stacked column, from bottom to top: the most frequent operations are at the bottom. */
const FROM_BELOW = [...OPERATIONS].reverse();

/**
 * Draws records by height, stacked by operation. Redraws the chart if its width changes. One link lies over the column
 * under the pointer, and leads to the column's first block. Arrow keys move this link, so the Tab key stops only once
 * in the chart.
 */
export function drawActivity(content: Element, stats: Stats): void {
  if (stats.activity.length === 0) return;
  const place = el('div', { class: 'plot' });
  const caption = el('span', { class: 'quiet' });
  const table = asTable(stats);
  table.open = content.querySelector('details')?.open === true;
  content.replaceChildren(el('figure', {}, el('figcaption', {}, legend(stats), caption), place, table));
  let drawn = 0;
  new ResizeObserver(() => {
    const width = Math.floor(place.clientWidth);
    if (width === drawn || width === 0) return;
    drawn = width;
    const room = width - MARGIN.left - MARGIN.right;
    const columns = columnsOf(stats, Math.max(1, Math.floor(room / LEAST_STEP)));
    caption.textContent = captionOf(columns, stats);
    const { chart, light } = columnChart(columns, width);
    place.replaceChildren(chart, ...pointerOf(place, columns, width, light));
  }).observe(place);
}

/** Returns a text that says how many blocks a column has, because this number depends on the width of the chart. */
function captionOf(columns: readonly Column[], { bucket }: Stats): string {
  const last = columns.at(-1);
  if (last === undefined) return '';
  const unit = last.of === 1 ? 'a block' : `${groupDigits(last.of)} blocks`;
  const sofar = last.blocks < last.of ? `; the last one has ${groupDigits(last.blocks)} so far` : '';
  return `Each column is ${unit}${bucket === 1 ? ' with activity' : ''}${sofar}`;
}

/** Creates the link that lies over a column, and the readout of this column. Pointer and arrow keys move both. */
function pointerOf(place: HTMLElement, columns: readonly Column[], width: number, light: SVGElement): readonly HTMLElement[] {
  const step = (width - MARGIN.left - MARGIN.right) / columns.length;
  const readout = el('div', { class: 'readout', 'aria-hidden': 'true' });
  const link = el('a', { class: 'column' });
  link.style.width = `${step}px`;
  let at = columns.length - 1;
  const select = (i: number) => {
    at = Math.min(columns.length - 1, Math.max(0, i));
    const column = columns[at];
    if (column === undefined) return;
    const left = MARGIN.left + step * at;
    link.style.left = `${left}px`;
    link.href = `?block=${column.first}`;
    link.setAttribute('aria-label', `Block ${heightsOf(column)}: ${count(column.total, 'record')}`);
    light.setAttribute('x', String(left));
    readout.replaceChildren(...describe(column));
    readout.style.left = `${Math.min(Math.max(left + step / 2 - 90, 0), width - 180)}px`;
  };
  const show = (isShown: boolean) => {
    light.setAttribute('visibility', isShown ? 'visible' : 'hidden');
    readout.hidden = !isShown;
  };
  const point = (event: PointerEvent) => {
    select(Math.floor((event.clientX - place.getBoundingClientRect().left - MARGIN.left) / step));
    show(true);
  };
  // A finger cannot hover, so its first tap on a column only shows the readout, and the second tap follows the link.
  let isFirstTap = false;
  place.onpointerdown = (event) => {
    const shown = readout.hidden ? undefined : at;
    point(event);
    isFirstTap = event.pointerType !== 'mouse' && shown !== at;
  };
  place.onpointermove = point;
  link.addEventListener('click', (event) => {
    if (isFirstTap) event.preventDefault();
    isFirstTap = false;
  });
  // Keeps the readout if a finger leaves, because `pointerleave` then only means that the finger was lifted.
  place.onpointerleave = ({ pointerType }) => show(pointerType !== 'mouse');
  link.addEventListener('focus', () => show(true));
  link.addEventListener('blur', () => show(false));
  link.addEventListener('keydown', (event) => {
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: columns.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    select(to);
    announce(link.getAttribute('aria-label') ?? '');
  });
  select(at);
  show(false);
  return [link, readout];
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

function columnChart(columns: readonly Column[], width: number): { readonly chart: SVGElement; readonly light: SVGElement } {
  const step = (width - MARGIN.left - MARGIN.right) / columns.length;
  const bar = Math.min(WIDEST_BAR, step > 6 ? step * 0.78 : step - 1);
  const scale = linear(columns.reduce((most, { total }) => Math.max(most, total), 0));
  const y = (value: number) => MARGIN.top + (HEIGHT - MARGIN.top - MARGIN.bottom) * (1 - value / scale.top);
  const middle = (i: number) => MARGIN.left + step * (i + 0.5);

  const chart = svg('svg', {
    role: 'img',
    width,
    height: HEIGHT,
    'aria-label': `Records of rune activity from block ${groupDigits(columns[0]?.first ?? 0)} to ${groupDigits(columns.at(-1)?.last ?? 0)}, stacked by operation. The table below has the same numbers.`,
  });
  for (const tick of scale.ticks) {
    chart.append(
      svg('line', { stroke: 'var(--line)', x1: MARGIN.left, x2: width, y1: line(y(tick)), y2: line(y(tick)) }),
      svg('text', { fill: 'var(--quiet)', x: MARGIN.left - 8, y: y(tick), dy: '.32em', 'text-anchor': 'end' }, groupDigits(tick)),
    );
  }
  const light = svg('rect', {
    fill: 'var(--raised)',
    y: MARGIN.top,
    height: HEIGHT - MARGIN.top - MARGIN.bottom,
    width: step,
    visibility: 'hidden',
  });
  chart.append(light);
  for (const [i, column] of columns.entries()) {
    const isPartial = column.blocks < column.of;
    const group = svg('g', isPartial ? { class: 'partial', opacity: 0.5 } : {});
    group.append(...stack(column, middle(i) - bar / 2, bar, y));
    chart.append(group);
    if (column.follows === 'gap') chart.append(breakAt(MARGIN.left + step * i));
  }
  chart.append(...ticksOf(columns, middle, width));
  return { chart, light };
}

/** Aligns a line of one pixel to the pixel grid, so that it is not blurred. */
const line = (value: number): number => Math.round(value) + 0.5;

function stack(column: Column, x: number, width: number, y: (value: number) => number): SVGElement[] {
  let below = 0;
  return FROM_BELOW.flatMap((name) => {
    const value = column.operations[name];
    if (value === 0) return [];
    const [bottom, top] = [y(below), y(below + value)];
    below += value;
    // A minimum height keeps a single record visible beside many others.
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

/** Draws a break of the axis (two slanted strokes) where many heights have no activity. */
function breakAt(x: number): SVGElement {
  const foot = HEIGHT - MARGIN.bottom;
  return svg(
    'g',
    { class: 'break', stroke: 'var(--edge)' },
    svg('line', { 'stroke-dasharray': '2 3', x1: x, x2: x, y1: MARGIN.top, y2: foot }),
    svg('path', { 'stroke-width': 1.4, d: `M${x - 4} ${foot + 5}l4-10M${x} ${foot + 5}l4-10` }),
  );
}

/** Labels columns with heights if there is room: first at the ends and breaks, then in between. */
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
    return [svg('text', { fill: 'var(--quiet)', x, y: HEIGHT - 6, 'text-anchor': 'middle' }, text)];
  });
}

function describe(column: Column): Node[] {
  const isPartial = column.blocks < column.of;
  return [
    el('strong', {}, heightsOf(column)),
    isPartial ? el('span', {}, `${groupDigits(column.blocks)} of ${count(column.of, 'block')}`) : undefined,
    el('span', { class: 'quiet' }, utc(column.timestamp).slice(0, 10)),
    ...OPERATIONS.filter((name) => column.operations[name] > 0).map((name) =>
      el('span', { class: 'operation', 'data-operation': name }, name, ' ', el('b', {}, groupDigits(column.operations[name]))),
    ),
  ].filter((node) => node !== undefined);
}

const heightsOf = ({ first, last }: Column): string =>
  first === last ? groupDigits(first) : `${groupDigits(first)} to ${groupDigits(last)}`;

function asTable({ bucket, activity }: Stats): HTMLDetailsElement {
  const columns: readonly TableColumn<ActivityEntry>[] = [
    bucket === 1
      ? { name: 'Block', cell: ({ height }) => [blockLink(height)] }
      : { name: 'From height', cell: ({ height }) => [groupDigits(height)] },
    { name: 'Time', cell: ({ timestamp }) => [utc(timestamp)] },
    ...OPERATIONS.map((name) => numbersOf<ActivityEntry>(name, (entry) => entry[name])),
  ];
  return el(
    'details',
    {},
    el('summary', {}, 'As a table'),
    el(
      'div',
      { class: 'scrolls', tabindex: '0', role: 'region', 'aria-label': 'Activity as a table' },
      tableOf('operations', 'Records by operation', columns, [activity]),
    ),
  );
}

/** Lists the runes with the most records, in a table with bars, which screen readers can read unlike a chart. */
export function drawRunes(content: Element, stats: Stats): void {
  const runes = stats.runes.slice(0, SHOWN_RUNES);
  const most = runes.reduce((top, { records }) => Math.max(top, records), 0);
  const columns: readonly TableColumn<RuneStats>[] = [
    { name: 'Rune', cell: (rune) => runeWithBar(rune, most, stats) },
    { name: 'Records', isNumber: true, cell: ({ records }) => [el('span', { title: count(records, 'record') }, groupDigits(records))] },
  ];
  content.replaceChildren(tableOf('bars', 'Most active runes', columns, [runes]));
}

function runeWithBar(rune: RuneStats, most: number, { first, last }: Stats): Child[] {
  const parts = FROM_BELOW.filter((name) => rune[name] > 0);
  const title = parts.map((name) => `${groupDigits(rune[name])} ${name}`).join(', ');
  const bar = barOf(
    parts.map((name) => [name, rune[name] / most]),
    { title },
  );
  const [block = ''] = rune.id.split(':');
  // Links the block of the etching only if the mirror has it. In a mirror of a window of blocks, most runes are older.
  const isInMirror = /^[0-9]{1,16}$/.test(block) && first !== null && last !== null && Number(block) >= first && Number(block) <= last;
  const code = el('code', {}, rune.id);
  const id = isInMirror
    ? linkTo({ kind: 'block', id: block, offset: 0 }, [code], { title: `Etched in block ${groupDigits(block)}` })
    : code;
  return [runeLink(rune), ' ', id, bar];
}
