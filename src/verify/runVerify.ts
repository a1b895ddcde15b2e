/** Runs the verify command, and reports the result. */
import type { Flags } from '../cli/flags.ts';
import { count, type Log } from '../cli/log.ts';
import { memoryLimitOf } from '../cli/memoryLimit.ts';
import { Progress } from '../cli/progress.ts';
import { costRows, peakMegabytes, Stopwatch } from '../cli/stopwatch.ts';
import { describeSources } from '../contract/sources.ts';
import { messageOf, UsageError } from '../errors.ts';
import { type NoteKey, parseKey } from '../format/signedNote.ts';
import { LIMITS } from '../limits.ts';
import { compareMirrors } from './compareMirrors.ts';
import { type Compared, filesIn, parseAgainst, readOther } from './otherMirror.ts';
import { verify } from './verify.ts';

function parseFlag(text: string): NoteKey {
  try {
    return parseKey(text);
  } catch (error) {
    throw new UsageError(`--key ${messageOf(error)}`);
  }
}

/** Rejects with a VerificationError if anything is wrong, or if blocks differ from those of a mirror given with `--against`. */
export async function runVerify(flags: Flags, log: Log): Promise<void> {
  const others = flags.all('against').map(parseAgainst);
  const keys = flags.all('key').map(parseFlag);
  const hasOwn = flags.has('dir') || others.length < 2;
  if (!hasOwn && keys.length > 0) throw new UsageError('--key needs --dir: it checks the signature of the folder that is verified');
  const own = hasOwn ? [await verifyFolder(flags.one('dir') ?? 'dist', keys, flags, log)] : [];
  if (others.length === 0) return;
  await compareMirrors([...own, ...(await Promise.all(others.map((other) => readOther(other, log))))], log);
}

async function verifyFolder(dir: string, keys: readonly NoteKey[], flags: Flags, log: Log): Promise<Compared> {
  const clock = new Stopwatch();
  const { manifest, blocks } = await verify(dir, Progress.of(flags, log), memoryLimitOf(flags), LIMITS, keys);
  const { files, bytes, transactions, records, digest, sources } = manifest;
  const number = (n: number) => n.toLocaleString('en-US');
  log.info(
    'verified',
    `${dir} is correct: ${number(files)} files of ${number(manifest.blocks)} blocks, digest ${digest}, in ${clock.total} s.`,
    { files, bytes, blocks: manifest.blocks, transactions, records, digest, seconds: clock.total, peak_rss_mb: peakMegabytes() },
  );
  log.summary([
    ['records', number(records)],
    ['transactions', number(transactions)],
    ['blocks', number(manifest.blocks)],
    ['pages', number(files)],
    ['bytes', number(bytes)],
    ...(sources === undefined ? [] : [['source', describeSources(sources)] as const]),
    ...costRows(clock),
  ]);
  const { unbalanced } = manifest.lists?.balances ?? {};
  if (unbalanced !== undefined) {
    const runes = count(unbalanced.runes.length + unbalanced.more_runes, 'rune');
    log.notice(
      `the records of ${runes} do not add up: addresses send more than they received, such as of ${unbalanced.runes.slice(0, 3).join(', ')}. The mirror has the records of the input unchanged, so the cause is in the input; see docs/files.md`,
    );
  }
  return { name: dir, manifest, blocks, ...filesIn(dir) };
}
