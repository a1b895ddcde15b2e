/** Tests the report at the end of a build. */
import { expect, it } from 'vitest';
import { Stopwatch } from '../../src/cli/stopwatch.ts';
import type { Manifest } from '../../src/contract/schemas.ts';
import type { BuildOptions } from '../../src/engine/buildOptions.ts';
import { reportBuilt } from '../../src/engine/buildReport.ts';

/** Returns the notices after a build with this layout and number of files. */
function noticesOf(layout: 'files' | 'archive', files: number): readonly string[] {
  const notices: string[] = [];
  const none = () => undefined;
  const manifest = { dialect: 'hiro', records: 1, transactions: 1, blocks: 1, bytes: 1, files } as unknown as Manifest;
  const result = { manifest, kept: 0, othersWritten: 0, removed: 0, blocks: { written: 1, gone: 0 }, wasFull: true };
  const options = { out: 'dist', dryRun: false, site: { layout } } as unknown as BuildOptions;
  reportBuilt(options, result, new Stopwatch(), {
    info: none,
    summary: none,
    failure: none,
    error: none,
    notice: (text) => notices.push(text),
  });
  return notices;
}

it('a build of layout files above 100,000 files recommends the layout with few files', () => {
  expect(noticesOf('files', 100_001)).toEqual([
    '100,001 files are more than many hosts accept; --layout archive gives the same answers in few files',
  ]);
  expect([...noticesOf('files', 100_000), ...noticesOf('archive', 100_001)]).toEqual([]);
});
