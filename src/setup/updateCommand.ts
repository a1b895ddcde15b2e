/** The update command: pulls, builds and uploads by the settings file, once or after each new block. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { execPath } from 'node:process';
import { createInterface } from 'node:readline';
import { CONFIG, type Command, type Flags, flag, HELP, LOG } from '../cli/flags.ts';
import type { Log } from '../cli/log.ts';
import { settingsFileOf, settingsReader } from '../cli/settings.ts';
import { Stopwatch } from '../cli/stopwatch.ts';
import { CliError, EXIT, messageOf, UsageError } from '../errors.ts';
import { plainCall, program } from '../program.ts';

export const UPDATE_COMMAND: Command = {
  call: program.callOf('update'),
  about: 'Pulls new blocks, builds what changed and uploads it, as the settings file says. Run it again after new blocks.',
  flags: [flag('follow', 'Keeps running: after each new block of a node, pulls, builds and uploads it.'), CONFIG, LOG, HELP],
  examples: [
    { args: '', about: 'Updates the mirror that rune-mirror.json describes.' },
    { args: '--follow', about: 'Keeps the mirror at the tip of its node.' },
  ],
  exits: ['done', 'usage', 'badInput', 'buildFailed', 'interrupted'],
};

/** Default output folders of pull and build. The settings file cannot name other folders. */
const [PULLED, OUT] = ['input/pulled', 'dist'];

/** Runs the command. Rejects with a CliError that has the exit code of the step that failed. Later steps do not run. */
export async function runUpdate(flags: Flags, log: Log): Promise<void> {
  const format = flags.one('log') ?? 'text';
  const file = settingsFileOf(flags);
  if (file === undefined) throw new UsageError(`there is no settings file; make one with ${plainCall('init')}`);
  const { source, upload } = (await settingsReader()).readSettings(file);
  if (source === undefined) throw new UsageError(`${file} has no value of "source"; add one, as in "source": "core:http://127.0.0.1:8332"`);
  const command = (name: string, ...args: string[]) => [execPath, program.runner, name, '--config', file, ...args];
  const updates: Step[] = [
    { name: 'pull', line: command('pull', '--log', format) },
    { name: 'build', line: command('build', '--input', PULLED, '--out', OUT, '--log', format) },
  ];
  const uploads = upload === undefined ? [] : [{ name: 'upload', line: ['sh', program.upload, upload, OUT] }];
  if (flags.has('follow')) {
    if (!source.startsWith('core:')) throw new UsageError('--follow needs a node as source, such as core:http://127.0.0.1:8332');
    await uploadAfterBuilds({ name: 'pull', line: command('pull', '--log', 'json', '--follow') }, uploads, format === 'json', log);
    return;
  }
  const clock = new Stopwatch();
  const steps = [...updates, ...uploads];
  for (const [at, step] of steps.entries()) {
    await runStep(step, undefined, steps.slice(at + 1));
    clock.lap(step.name);
  }
  const more = upload === undefined ? `; nothing was uploaded, because ${file} has no value of "upload"` : '';
  log.info('updated', `Updated the mirror in ${clock.total} s${more}.`, { upload, seconds: clock.seconds });
}

interface Step {
  readonly name: string;
  readonly line: readonly string[];
}

/**
 * Runs a step. Passes each line that it prints to `onLine`, if given. Rejects with a CliError that has the exit code of
 * the step, and names the steps `later`, which then do not run.
 */
async function runStep(
  { name, line: [file = '', ...args] }: Step,
  onLine?: (text: string) => void,
  later: readonly Step[] = [],
): Promise<void> {
  const child: ChildProcess = spawn(file, args, { stdio: ['ignore', onLine === undefined ? 'inherit' : 'pipe', 'inherit'] });
  if (child.stdout !== null) createInterface({ input: child.stdout }).on('line', onLine ?? (() => undefined));
  // On Ctrl-C, the terminal also signals the step, so this command only waits for its end. A SIGTERM reaches only this
  // command, so it is passed on to the step.
  const [ignore, stop] = [() => undefined, () => void child.kill('SIGTERM')];
  process.on('SIGINT', ignore).on('SIGTERM', stop);
  try {
    const [code] = (await once(child, 'close').catch((error: unknown) => {
      throw new CliError(`${name} cannot start: ${messageOf(error)}`, EXIT.buildFailed);
    })) as [number | null];
    if (code !== EXIT.done)
      throw new CliError(
        code === null ? `${name} was stopped by a signal` : `${name} ended with exit code ${code}`,
        code ?? EXIT.interrupted,
        later.length === 0 ? [] : [`These steps did not run: ${later.map((step) => step.name).join(', ')}.`],
      );
  } finally {
    process.off('SIGINT', ignore).off('SIGTERM', stop);
  }
}

/** Runs a pull that follows a node. Uploads the output after each build of the pull, one upload at a time. */
async function uploadAfterBuilds(pull: Step, [upload]: readonly Step[], isJson: boolean, log: Log): Promise<void> {
  let uploading: Promise<void> | undefined;
  let isNewer = false;
  const run = async (step: Step): Promise<void> => {
    while (isNewer) {
      isNewer = false;
      const clock = new Stopwatch();
      await runStep(step, () => undefined).then(
        () => log.info('uploaded', `Uploaded in ${clock.total} s.`),
        (error: unknown) => log.notice(`${messageOf(error)}; trying again after the next block`),
      );
    }
    uploading = undefined;
  };
  await runStep(pull, (text) => {
    const { event, message } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    if (isJson) process.stdout.write(`${text}\n`);
    else log.info(String(event), String(message));
    // The pull logs `following` after its first build, and `followed` after each later build.
    if (upload === undefined || !(event === 'following' || event === 'followed')) return;
    isNewer = true;
    uploading ??= run(upload);
  });
  await uploading;
}
