import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createLog } from '../../src/cli/log.ts';
import { Progress } from '../../src/cli/progress.ts';
import { ReadProgress } from '../../src/input/inputProgress.ts';
import { RecordingLog } from '../support/build.ts';

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

  it('without a terminal prints an occasional line', () => {
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

  it('shows no estimate before one percent is done', () => {
    const log = new RecordingLog();
    const progress = new Progress(log, false);
    vi.advanceTimersByTime(10_000);
    progress.show(9, 1000, 'blocks');
    expect(log.infos.map(({ message }) => message)).toEqual(['9 of 1,000 blocks, 0.9/s']);
  });

  it('on a terminal overwrites one line, and removes it at the end', () => {
    const progress = new Progress(new RecordingLog(), true);
    for (const done of [0, 3]) {
      vi.advanceTimersByTime(1000);
      progress.show(done, 9, 'blocks');
    }
    progress.end();
    progress.end();
    expect(screen.split(CLEAR)).toEqual([
      '',
      `[${' '.repeat(20)}]   0 %  0 of 9 blocks`,
      `[======${' '.repeat(14)}]  33 %  3 of 9 blocks, 1.5/s, 4 s left`,
      '',
    ]);
  });

  it('measures a stage only when it prints, and counts each stage from the start of the stage', () => {
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
  ])('is cleared for %s and drawn again', (_what, say, text) => {
    const progress = new Progress(new RecordingLog(), true);
    progress.watch('write', () => ({ done: 1, what: 'files' }));
    vi.advanceTimersByTime(200);
    say(createLog('text'));
    vi.advanceTimersByTime(200);
    progress.end();
    expect(screen).toBe(`${CLEAR}write: 1 files, 5/s${CLEAR}${text}${CLEAR}write: 1 files, 2.5/s${CLEAR}`);
  });

  it('is cut at the width of the terminal', () => {
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

describe('progress of reading input', () => {
  it('shows files, then bytes, then stages without a percentage', async () => {
    const measure = new ReadProgress();
    expect(measure.at(0)).toBe('finding files');
    measure.expect(2);
    expect(measure.at(0)).toBe('2 files to open');
    measure.found(30e6);
    expect(measure.at(0)).toBe('1 files to open');
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
