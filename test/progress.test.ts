/** The line that tells how far a command is. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Progress } from '../src/cli/progress.ts';
import { RecordingLog } from './support/build.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe('progress', () => {
  it('is a line now and then where there is no terminal', () => {
    const log = new RecordingLog();
    const progress = new Progress(log, false);
    for (let second = 1; second <= 25; second += 1) {
      vi.advanceTimersByTime(1000);
      progress.show(second * 4, 1000, 'blocks');
    }
    progress.end();
    expect(log.infos.map(({ message }) => message)).toEqual(['40 of 1,000 blocks, 4/s, 240 s left', '80 of 1,000 blocks, 4/s, 230 s left']);
    expect(log.infos[0]).toMatchObject({ event: 'progress', figures: { done: 40, all: 1000 } });
  });

  it('is one line that is written over on a terminal, and gone at the end', () => {
    let screen = '';
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
      screen += String(text);
      return true;
    });
    const progress = new Progress(new RecordingLog(), true);
    for (const done of [0, 3]) {
      vi.advanceTimersByTime(1000);
      progress.show(done, 9, 'blocks');
    }
    progress.end();
    expect(screen.split('\r\x1b[K')).toEqual(['', '0 of 9 blocks', '3 of 9 blocks, 1.5/s, 4 s left', '']);
  });
});
