/** Tests writing of rows of all lengths. A buffer collects short rows, and longer rows do not fit into it. */
import { mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, it } from 'vitest';
import { CsvFile } from '../../src/pull/csvFile.ts';
import { workFile } from '../../src/pull/writePulled.ts';
import { temporaryFolder } from '../support/build.ts';

it('writes all rows in their order, with characters of one to four bytes', () => {
  const folder = temporaryFolder();
  mkdirSync(dirname(workFile(folder, '.csv')), { recursive: true });
  const csv = new CsvFile(folder, ['a']);
  // The buffer has 262,144 bytes. A few rows of medium length fill it.
  const lengths = [0, 1, 50_000, 87_380, 87_381, 3, 300_000, 2, 60_000, 43_690, 43_691, 262_143, 262_144, 7];
  const lines = ['x', 'é', '•', '😀'].flatMap((letter) => lengths.map((length) => letter.repeat(length / letter.length)));
  for (const line of lines) csv.addLine(line);
  csv.addRows(Buffer.from('y\nz\n'), 2);
  csv.addLine('last');
  const path = csv.end();
  expect(csv.rows).toBe(lines.length + 3);
  expect(readFileSync(path ?? '', 'utf8')).toBe(`${[...lines, 'y', 'z', 'last'].join('\n')}\n`);
  csv.drop();
});
