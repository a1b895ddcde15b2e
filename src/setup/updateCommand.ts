/** The update command: pulls, builds and uploads by the settings file, once or after each new block. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { attempt } from '../attempt.ts';
import { CONFIG, type Command, Flags, flag, HELP, LOG } from '../cli/flags.ts';
import type { Log } from '../cli/log.ts';
import { METRICS, Metrics } from '../cli/metrics.ts';
import { STEP_VARIABLE } from '../cli/npm.ts';
import { readSettings, settingsFileOf, withSettings } from '../cli/settings.ts';
import { Stopwatch } from '../cli/stopwatch.ts';
import { printable } from '../duckdb/duckdbErrors.ts';
import { BUILD_COMMAND, buildOptions } from '../engine/buildCommand.ts';
import { CliError, EXIT, messageOf, UsageError } from '../errors.ts';
import { plainCall, program } from '../program.ts';
import { PULL_COMMAND } from '../pull/pullCommand.ts';

export const UPDATE_COMMAND: Command = {
  section: 'update',
  call: program.callOf('update'),
  about: 'Pulls new blocks, builds what changed and uploads it, as the settings file says. Run it again after new blocks.',
  flags: [
    flag('follow', 'Keeps running: after each new block of a node, pulls, builds and uploads it.'),
    flag('upload REMOTE', 'Uploads the output: an rclone remote and a bucket, such as r2:my-bucket.'),
    { ...METRICS, about: `With --follow: ${METRICS.about}` },
    CONFIG,
    LOG,
    HELP,
  ],
  examples: [
    { args: '', about: 'Updates the mirror that rune-mirror.json describes.' },
    { args: '--follow', about: 'Keeps the mirror at the tip of its node.' },
  ],
  exits: ['done', 'usage', 'badInput', 'buildFailed', 'interrupted'],
};

/** Name of a remote in rclone's configuration, but no connection string, which may contain secrets and commands. */
const REMOTE = /^[\w.+@][\w.+@ -]*:/;

/** Returns the remote that flags name. Throws a UsageError, which does not show it, for anything else. */
export function remoteOf(flags: Flags): string | undefined {
  const remote = flags.one('upload');
  if (remote === undefined || REMOTE.test(remote)) return remote;
  throw new UsageError('--upload must name a remote of the configuration of rclone and a bucket, such as r2:my-bucket');
}

/** Metrics of --follow. */
const FOLLOWING = {
  rune_mirror_step_seconds: 'Duration of the last pull, build and upload.',
  rune_mirror_step_timestamp_seconds:
    'When a new block was last pulled and built, and an upload succeeded, in seconds since 1970; 0: not yet.',
  rune_mirror_failures_total: 'Failed builds and uploads, which are tried again.',
  rune_mirror_pull_peak_memory_bytes: 'Largest memory of the process that pulls and builds.',
};

/** Runs the command. Rejects with a CliError that has the exit code of the step that failed. Later steps do not run. */
export async function runUpdate(flags: Flags, log: Log): Promise<void> {
  const file = settingsFileOf(flags);
  if (file === undefined) throw new UsageError(`there is no settings file; make one with ${plainCall('init')}`);
  const [pull, build] = [readSettings(file, PULL_COMMAND), readSettings(file, BUILD_COMMAND)];
  const [source] = pull.get('from') ?? [];
  if (source === undefined) throw new UsageError(`${file} names no source; add one, as in "pull": {"from": "core:http://127.0.0.1:8332"}`);
  // A first pull may take hours, so what is wrong about the build must be said before it.
  buildOptions(withSettings(Flags.parse(BUILD_COMMAND, []), BUILD_COMMAND, build));
  const pulled = join(pull.get('to')?.[0] ?? 'input', 'pulled');
  const out = build.get('out')?.[0] ?? 'dist';
  const upload = remoteOf(flags);
  const format = flags.one('log') ?? 'text';
  const command = (name: string, ...args: string[]) => [execPath, program.runner, name, '--config', file, ...args];
  const inputs = [pulled, ...(build.get('input') ?? [])].map((one) => `--input=${one}`);
  const uploads =
    upload === undefined ? [] : [{ name: 'upload', line: ['sh', program.upload, upload, out, build.get('cache')?.[0] ?? '.cache'] }];
  // A pull that follows by its settings would not end.
  if (flags.has('follow') || pull.has('follow')) {
    if (!source.startsWith('core:')) throw new UsageError('--follow needs a node as source, such as core:http://127.0.0.1:8332');
    const metrics = new Metrics(FOLLOWING);
    await metrics.serve(flags, out);
    await uploadAfterBuilds({ name: 'pull', line: command('pull', '--log', 'json', '--follow') }, uploads, log, metrics);
    return;
  }
  if (flags.has(METRICS.name)) throw new UsageError('--metrics has an effect only with --follow');
  const clock = new Stopwatch();
  const steps: Step[] = [
    { name: 'pull', line: command('pull', '--log', format) },
    { name: 'build', line: [...command('build', '--log', format), ...inputs] },
    ...uploads,
  ];
  for (const [at, step] of steps.entries()) {
    // Pulls and builds write JSON themselves.
    const lines = format === 'json' && step.name === 'upload' ? plainLines(step, log) : undefined;
    await runStep(step, lines, steps.slice(at + 1));
    clock.lap(step.name);
  }
  const more = upload === undefined ? `; nothing was uploaded, because --upload and ${file} name no remote` : '';
  log.info('updated', `Updated the mirror in ${clock.total} s${more}.`, { upload, seconds: clock.seconds });
}

interface Step {
  readonly name: string;
  readonly line: readonly string[];
}

/** Functions that get each line that a step prints to standard output and to standard error. */
interface Lines {
  readonly out: (line: string) => void;
  readonly err: (line: string) => void;
}

/** Logs the lines of a program that knows no logs. */
const plainLines = ({ name }: Step, log: Log): Lines => ({
  // A line may quote the answer of a server, so no control character of it may reach the terminal.
  out: (line) => log.info(name, printable(line)),
  err: (line) => log.notice(printable(line)),
});

/** Runs a step, which prints to `lines` or the terminal. Rejects with its exit code, and names the steps `later`, which do not run. */
async function runStep({ name, line: [file = '', ...args] }: Step, lines: Lines | undefined, later: readonly Step[] = []): Promise<void> {
  const output = lines === undefined ? 'inherit' : 'pipe';
  const child: ChildProcess = spawn(file, args, { stdio: ['ignore', output, output], env: { ...process.env, [STEP_VARIABLE]: '1' } });
  if (child.stdout !== null) createInterface({ input: child.stdout }).on('line', lines?.out ?? ignore);
  if (child.stderr !== null) createInterface({ input: child.stderr }).on('line', lines?.err ?? ignore);
  // A terminal signals the step, too, but a service manager or `kill` may signal only this command.
  const stop = () => void child.kill('SIGTERM');
  process.on('SIGINT', stop).on('SIGTERM', stop);
  try {
    const [code] = (await once(child, 'close').catch((error: unknown) => {
      throw new CliError(`${name} cannot start: ${messageOf(error)}`, EXIT.buildFailed);
    })) as [number | null];
    // The step has already said that it was stopped.
    if (code === EXIT.interrupted) process.exit(code);
    if (code !== EXIT.done)
      throw new CliError(
        code === null ? `${name} was stopped by a signal` : `${name} ended with exit code ${code}`,
        code ?? EXIT.interrupted,
        later.length === 0 ? [] : [`These steps did not run: ${later.map((step) => step.name).join(', ')}.`],
      );
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop);
  }
}

const ignore = (): void => undefined;

/** Pauses after a failed upload, in milliseconds: the first, and the longest. Each is twice the one before. */
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [10_000, 600_000];

/** What hosting/upload.sh says if a build changes the files. Here this is no failure, because an upload follows each build. */
const OUTDATED = /was changed during the upload|^upload: a build is using/;

/** Runs a pull that follows a node. Uploads after each build, one at a time. Repeats failed uploads, at once if there is a newer build. */
async function uploadAfterBuilds(pull: Step, [upload]: readonly Step[], log: Log, metrics: Metrics): Promise<void> {
  const done = (step: string, seconds: unknown) => {
    if (typeof seconds === 'number') metrics.set(`rune_mirror_step_seconds{step="${step}"}`, seconds);
    metrics.set(`rune_mirror_step_timestamp_seconds{step="${step}"}`, Date.now() / 1000);
  };
  const failed = (step: string, by = 1) => metrics.add(`rune_mirror_failures_total{step="${step}"}`, by);
  // Alerts need a value before the first failure, and before the first success.
  for (const step of upload === undefined ? ['build'] : ['build', 'upload']) failed(step, 0);
  if (upload !== undefined) metrics.set('rune_mirror_step_timestamp_seconds{step="upload"}', 0);
  let uploading: Promise<void> | undefined;
  let isWanted = false;
  let pause = new AbortController();
  let hasEnded = false;
  const run = async (step: Step): Promise<void> => {
    for (let wait = FIRST_PAUSE_MS; isWanted && !hasEnded; ) {
      isWanted = false;
      const clock = new Stopwatch();
      const lines = plainLines(step, log);
      let isOutdated = false;
      const err = (line: string): void => {
        if (OUTDATED.test(line)) isOutdated = true;
        else lines.err(line);
      };
      try {
        await runStep(step, { ...lines, err });
        log.info('uploaded', `Uploaded in ${clock.total} s.`, { seconds: clock.total });
        done('upload', clock.total);
        wait = FIRST_PAUSE_MS;
      } catch (error) {
        if (hasEnded) break;
        if (isOutdated) log.info('outdated', 'A build changed the files during the upload, which begins again after the build.');
        else {
          failed('upload');
          log.failure(`${messageOf(error)}; trying again in ${wait / 1000} s, or after the next block`);
        }
        pause = new AbortController();
        if (isWanted) pause.abort();
        isWanted = true;
        await sleep(wait, undefined, { signal: pause.signal }).catch(ignore);
        wait = Math.min(2 * wait, LONGEST_PAUSE_MS);
      }
    }
    uploading = undefined;
  };
  const relay = (line: string): void => {
    const entry = attempt(() => JSON.parse(line) as Readonly<Record<string, unknown>>);
    if (entry === undefined) {
      log.notice(line);
      return;
    }
    const { time: _time, level, event, message, ...fields } = entry;
    if (level === 'notice') log.notice(String(message));
    else if (event === 'failed') log.failure(String(message));
    else if (event === 'error') log.error(String(message), [fields['details'] ?? []].flat().map(String), Number(fields['exit_code']));
    else log.info(String(event), String(message), fields);
    if (event === 'failed') failed('build');
    if (event === 'followed') {
      for (const [step, seconds] of Object.entries(Object(fields['seconds']))) done(step, seconds);
      metrics.set('rune_mirror_pull_peak_memory_bytes', 2 ** 20 * Number(fields['peak_rss_mb']));
    }
    // The pull logs `following` after its first build, if it has blocks to build, and `followed` after each later build.
    if (upload === undefined || !(event === 'followed' || (event === 'following' && fields['built'] === true))) return;
    isWanted = true;
    pause.abort();
    uploading ??= run(upload);
  };
  try {
    await runStep(pull, { out: relay, err: relay });
  } finally {
    hasEnded = true;
    pause.abort();
  }
  await uploading;
}
