/** Formats the help of a command from its table of flags. */
import { EXIT, EXIT_MEANINGS } from '../errors.ts';
import type { Command, Flag } from './flags.ts';
import type { Paint } from './terminal.ts';

/** Columns before a flag, and between it and its description. */
const [INDENT, GAP] = [2, 2];
/** Non-breaking space. wrap() does not break a line at it, and replaces it by a normal space. */
const GLUE = '\u00a0';
/** If the column of descriptions is narrower, each description goes below its flag, indented by BELOW. */
const [LEAST_TEXT, BELOW] = [30, 6];

/** Returns a command line with arguments. Without arguments, drops the `--` that npm needs before them. */
const callOf = ({ call }: Command, args: string): string => (args === '' ? call.replace(/ --$/, '') : `${call} ${args}`);

/** Returns the help. Lines have at most `width` columns, unless a word is longer. */
export function helpOf(command: Command, width: number, paint: Paint): string {
  const { about, flags, positionals, examples, exits } = command;
  const usage = `Usage: ${callOf(command, `[flags]${positionals === undefined ? '' : ` ${positionals.name}`}`)}`;
  const left = leftWidth(flags.map(rowOf));
  const sections: string[][] = [[usage], wrap(about, width)];
  for (const [i, flag] of flags.entries()) {
    if (i === 0 || flag.heading !== undefined) sections.push([paint('bold', flag.heading ?? 'Flags')]);
    for (const line of layOut([rowOf(flag)], left, width)) sections.at(-1)?.push(line);
  }
  const shown = examples.map((example): string[] => [
    `${' '.repeat(INDENT)}${callOf(command, example.args)}`,
    ...wrap(example.about, width - BELOW).map((line) => `${' '.repeat(BELOW)}${line}`),
  ]);
  sections.push([paint('bold', examples.length === 1 ? 'Example' : 'Examples'), ...shown.flat()]);
  const codes = exits.map((exit): Row => [String(EXIT[exit]), EXIT_MEANINGS[exit]]);
  sections.push([paint('bold', 'Exit codes'), ...layOut(codes, leftWidth(codes), width)]);
  return `${sections.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

type Row = readonly [left: string, about: string];

const rowOf = ({ name, value, about, repeatable, byDefault }: Flag): Row => [
  `--${name}${value === undefined ? '' : ` ${value}`}`,
  `${about}${repeatable === true ? ' Repeatable.' : ''}${byDefault === undefined ? '' : ` (default:${GLUE}${byDefault === '' ? 'none' : byDefault})`}`,
];

const leftWidth = (rows: readonly Row[]): number => INDENT + GAP + rows.reduce((most, [left]) => Math.max(most, left.length), 0);

/** Arranges rows in two columns. If the second column would be too narrow, its text goes below the first. */
function layOut(rows: readonly Row[], left: number, width: number): string[] {
  const isNarrow = width - left < LEAST_TEXT;
  const indent = isNarrow ? BELOW : left;
  return rows.flatMap(([name, about]) => {
    const lines = wrap(about, width - indent).map((line) => `${' '.repeat(indent)}${line}`);
    const head = `${' '.repeat(INDENT)}${name}`;
    return isNarrow ? [head, ...lines] : [`${head.padEnd(left)}${lines[0]?.slice(left) ?? ''}`, ...lines.slice(1)];
  });
}

/** Wraps text into lines of at most `width` columns, unless a word is longer. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].map((one) => one.replaceAll(GLUE, ' '));
}
