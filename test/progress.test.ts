/** The line that tells how far a command is, and what goes with it on a terminal: help, colours, the table at the end. */
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createLog } from '../src/cli/log.ts';
import { Progress } from '../src/cli/progress.ts';
import { ReadMeasure } from '../src/input/readMeasure.ts';
import { RecordingLog, temporaryFolder, writeFiles } from './support/build.ts';
import { ROOT, run } from './support/cli.ts';
import { ndjson, record } from './support/records.ts';

const CLEAR = '\r\x1b[K';

describe('progress', () => {
  let screen: string;
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] });
    screen = '';
    for (const stream of [process.stderr, process.stdout]) {
      vi.spyOn(stream, 'write').mockImplementation((text) => {
        screen += String(text);
        return true;
      });
    }
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  it('is a line now and then where there is no terminal', () => {
    const log = new RecordingLog();
    const progress = new Progress(log, false);
    for (let second = 1; second <= 25; second += 1) {
      vi.advanceTimersByTime(1000);
      progress.show(second * 4, 1000, 'blocks');
    }
    progress.end();
    expect(log.infos.map(({ message }) => message)).toEqual(['40 of 1,000 blocks, 4/s, 4 min left', '80 of 1,000 blocks, 4/s, 4 min left']);
    expect(log.infos[0]).toMatchObject({ event: 'progress', figures: { done: 40, all: 1000, rate: 4, seconds_left: 240 } });
    expect(screen).toBe('');
  });

  it('does not guess how long it takes from the first hundredth', () => {
    const log = new RecordingLog();
    const progress = new Progress(log, false);
    vi.advanceTimersByTime(10_000);
    progress.show(9, 1000, 'blocks');
    expect(log.infos.map(({ message }) => message)).toEqual(['9 of 1,000 blocks, 0.9/s']);
  });

  it('is one line that is written over on a terminal, and gone at the end', () => {
    const progress = new Progress(new RecordingLog(), true);
    for (const done of [0, 3]) {
      vi.advanceTimersByTime(1000);
      progress.show(done, 9, 'blocks');
    }
    progress.end();
    progress.end();
    expect(screen.split(CLEAR)).toEqual(['', '0 of 9 blocks', '3 of 9 blocks, 1.5/s, 4 s left', '']);
  });

  it('asks for the measure of a stage when it is time to, and counts each stage from its beginning', () => {
    const log = new RecordingLog();
    const progress = new Progress(log, false);
    let asked = 0;
    progress.watch('load', () => {
      asked += 1;
      return 'finding files';
    });
    vi.advanceTimersByTime(10_500);
    expect(asked).toBe(1);
    progress.watch('write', () => ({ done: 100, all: 10_000, what: 'records' }));
    vi.advanceTimersByTime(10_000);
    progress.watch('finish', () => ({ done: 30, what: 'files' }));
    vi.advanceTimersByTime(10_000);
    progress.end();
    vi.advanceTimersByTime(60_000);
    expect(log.infos.map(({ message }) => message)).toEqual([
      'load: finding files, 10 s',
      'write: 100 of 10,000 records, 10/s, 17 min left',
      'finish: 30 files, 3/s',
    ]);
    expect(log.infos.map(({ figures }) => figures)).toEqual([
      { stage: 'load', doing: 'finding files', seconds: 10 },
      { stage: 'write', done: 100, all: 10_000, what: 'records', rate: 10, seconds_left: 990 },
      { stage: 'finish', done: 30, what: 'files', rate: 3 },
    ]);
    expect(asked).toBe(1);
  });

  it.each([
    ['a line on standard output', (log: ReturnType<typeof createLog>) => log.info('x', 'a line'), 'a line\n'],
    ['a notice', (log: ReturnType<typeof createLog>) => log.notice('mind'), 'Note: mind\n'],
    ['an error', (log: ReturnType<typeof createLog>) => log.error('bad', ['do this'], 1), 'Error: bad\n  do this\n'],
    ['a table', (log: ReturnType<typeof createLog>) => log.summary([['a', '1']]), '  a  1\n'],
  ])('makes way for %s, and comes back', (_what, say, text) => {
    const progress = new Progress(new RecordingLog(), true);
    progress.watch('write', () => ({ done: 1, what: 'files' }));
    vi.advanceTimersByTime(200);
    say(createLog('text'));
    vi.advanceTimersByTime(200);
    progress.end();
    expect(screen).toBe(`${CLEAR}write: 1 files, 5/s${CLEAR}${text}${CLEAR}write: 1 files, 2.5/s${CLEAR}`);
  });

  it('is cut where the terminal ends, so that it can be written over', () => {
    const columns = Object.getOwnPropertyDescriptor(process.stderr, 'columns');
    Object.defineProperty(process.stderr, 'columns', { value: 12, configurable: true });
    try {
      const progress = new Progress(new RecordingLog(), true);
      progress.watch('write', () => ({ done: 1, what: 'files' }));
      vi.advanceTimersByTime(200);
      progress.end();
    } finally {
      if (columns === undefined) Reflect.deleteProperty(process.stderr, 'columns');
      else Object.defineProperty(process.stderr, 'columns', columns);
    }
    expect(screen).toBe(`${CLEAR}write: 1 fi${CLEAR}`);
  });
});

describe('how far the input is read', () => {
  it('goes from files to look at, by bytes, to what cannot be counted', async () => {
    const measure = new ReadMeasure();
    expect(measure.at(0)).toBe('finding files');
    measure.expect(2);
    expect(measure.at(0)).toBe('2 files to look at');
    measure.found(30e6);
    expect(measure.at(0)).toBe('1 files to look at');
    measure.found(10e6);
    expect(measure.at(0.5)).toEqual({ done: 0, all: 40, what: 'MB' });
    await measure.scan(30e6, async () => {
      expect(measure.at(0.5)).toEqual({ done: 15, all: 40, what: 'MB' });
    });
    expect(measure.at(0.5)).toEqual({ done: 30, all: 40, what: 'MB' });
    measure.finish();
    expect(measure.at(0.5)).toBe('40 MB read, checking');
  });
});

/** util-linux's script, which gives a program a terminal; that of other systems has other flags. */
const hasScript = /util-linux/.test(spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout ?? '');
if (!hasScript) console.warn('script of util-linux is missing: what commands do on a terminal is not tested');

describe.skipIf(!hasScript)('on a terminal', () => {
  /** What a command writes to a terminal of so many columns that standard output and standard error both are. */
  function onTerminal(command: string, cwd: string, { columns = 80, env = {} }: { columns?: number; env?: Record<string, string> } = {}) {
    const line = `stty cols ${columns}; ${process.execPath} ${join(ROOT, 'scripts/run.cjs')} ${command}`;
    const { NO_COLOR: _, ...inherited } = process.env;
    return execFileSync('script', ['-qec', line, '/dev/null'], {
      cwd,
      env: { ...inherited, TERM: 'xterm', ...env },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }).replaceAll('\r\n', '\n');
  }

  /** What is to be seen in the end: of each line what came after it was cleared, without colours. */
  const seen = (written: string) =>
    written
      .split('\n')
      .map((line) => line.split(CLEAR).at(-1))
      .join('\n')
      .replace(/\x1b\[\d+m/g, '');
  const withoutFigures = (text: string) => text.replace(/[\d.]+ s\b|(?<=seconds +)[\d.].*|(?<=memory +)[\d,]+/g, '#');

  const records = Array.from({ length: 30_000 }, (_, i) => record(1 + (i % 300), 1 + Math.floor(i / 300)));

  it('a build shows how far it is in one line, and leaves nothing of it behind', async () => {
    const work = temporaryFolder();
    // Two files with the same block make a notice.
    writeFiles(work, {
      'input/a.ndjson': ndjson(records),
      'input/b.ndjson': ndjson([record(999, 1)]),
      'input/c.ndjson': ndjson([record(999, 1)]),
    });
    const written = onTerminal('build --out terminal', work);
    const shown = written.split(CLEAR).slice(1, -1);
    expect(shown.filter((text) => /^write: [\d,]+ of 30,001 records/.test(text))).not.toEqual([]);
    expect(
      shown.filter((text) => !/^(load|write|finish): /.test(text) && !/^\x1b\[33mNote:|^(Read|Wrote) /.test(text) && text !== ''),
    ).toEqual([]);
    const plain = await run('build', ['--out', 'plain', '--cache', 'cache'], work);
    expect(plain.stderr).toMatch(/^Note: 1 block\(s\) are in several files/);
    expect(plain.stdout + plain.stderr).not.toContain('\x1b');
    // Where there is no terminal, a slow machine makes lines of it.
    const lines = (plain.stderr + plain.stdout).replace(/^(?:load|write|finish): .*\n/gm, '');
    expect(withoutFigures(seen(written))).toBe(withoutFigures(lines).replaceAll('plain', 'terminal'));
    const again = onTerminal('verify --dir terminal', work);
    expect(withoutFigures(seen(again))).toMatch(/^terminal is whole: .*\n {2}records +30,001\n/);
  });

  it('with --log json, or where TERM is dumb, there is no such line and no colour', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'input/a.ndjson': ndjson(records) });
    for (const line of onTerminal('build --log json', work).trim().split('\n')) expect(JSON.parse(line)).toMatchObject({ level: 'info' });
    expect(onTerminal('build --full', work, { env: { TERM: 'dumb' } })).not.toContain('\x1b');
  });

  it('colours are sparing, and none with NO_COLOR', () => {
    const work = temporaryFolder();
    const failed = (env: Record<string, string>) => {
      const command = `build --inptu x || true`;
      return onTerminal(command, work, { env });
    };
    expect(failed({})).toMatch(/^\x1b\[31mError:\x1b\[39m there is no flag --inptu; did you mean --input\?\n/);
    expect(failed({ NO_COLOR: '1' })).toMatch(/^Error: there is no flag --inptu/);
    expect(failed({ NO_COLOR: '' })).toMatch(/^\x1b\[31mError:/);
  });

  it.each([
    [60, 60],
    [44, 44],
    [400, 100],
  ])('help in a terminal of %i columns has lines of %i at most', (columns, most) => {
    const help = seen(onTerminal('verify --help', ROOT, { columns }));
    // An example and the name of a command are not broken, so that they can be copied.
    const lines = help.split('\n').filter((line) => !line.includes('npm run'));
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(most);
    expect(Math.max(...lines.map((line) => line.length))).toBeGreaterThan(most - 20);
    expect(help.replace(/\s+/g, ' ')).toContain('Reads a whole output again, and says what in it is not as it should be.');
  });
});
