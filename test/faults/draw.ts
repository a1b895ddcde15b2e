/**
 * Proposes random faults for the list (list.ts): `npx tsx test/faults/draw.ts SEED ROOM [COUNT]`. Draws a file of the
 * room, weighted by its lines, a line of code, and one of the changes that fit this line.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../support/cli.ts';
import { filesOf } from './list.ts';

const CHANGES: readonly (readonly [RegExp, string | ((match: string) => string)])[] = [
  [/ < /g, ' <= '],
  [/ <= /g, ' < '],
  [/ > /g, ' >= '],
  [/ >= /g, ' > '],
  [/ === /g, ' !== '],
  [/ !== /g, ' === '],
  [/ && /g, ' || '],
  [/ \|\| /g, ' && '],
  [/ \+ /g, ' - '],
  [/ - /g, ' + '],
  [/ \?\? /g, ' && '],
  [/(?<![\w'.])\d+(?![\w'])/g, (number) => String(Number(number) + 1)],
  [/(?<=\bif \().*(?=\) |\)$)/g, 'false'],
  [/!(?=[a-z(])/g, ''],
  [/\bcopyOf\(/g, '('],
  [/(?<=^\s+)(?:await )?[\w.#?]+\(.*\);$/g, ''],
  [/\bMath\.(?:min|max)\b/g, (name) => (name === 'Math.min' ? 'Math.max' : 'Math.min')],
  [/\b(?:true|false)\b/g, (word) => String(word === 'false')],
  [/ ORDER BY .*?(?=[)`])/g, ''],
];

const [seed = '0', room = '', count = '10'] = process.argv.slice(2);
let state = Number(seed);
/** Draws an integer below a number. The generator has 31 bits, as in C. */
const below = (bound: number): number => {
  state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
  return Math.floor((state / 2 ** 31) * bound);
};
const lines = filesOf(room).flatMap((file) =>
  readFileSync(join(ROOT, file), 'utf8')
    .split('\n')
    .map((text, i) => ({ file, text, line: i + 1 })),
);
for (let found = 0; found < Number(count); ) {
  const drawn = lines[below(lines.length)];
  if (drawn === undefined || /^\s*(?:\/?\*|\/\/|import |throw )/.test(drawn.text)) continue;
  const possible = CHANGES.flatMap(([from, to]) => [...drawn.text.matchAll(from)].map((match) => ({ match, to })));
  const chosen = possible[below(possible.length)];
  if (chosen === undefined) continue;
  const { match, to } = chosen;
  const changed = typeof to === 'string' ? to : to(match[0]);
  console.log(
    `${drawn.file}:${drawn.line}\n- ${drawn.text}\n+ ${drawn.text.slice(0, match.index)}${changed}${drawn.text.slice(match.index + match[0].length)}`,
  );
  found += 1;
}
