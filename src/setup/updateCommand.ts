/** The update command: pulls, builds and uploads as the settings file says. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { env, execPath } from 'node:process';
import { withoutSecrets } from '../cli/environment.ts';
import { CONFIG, type Command, type Flags, HELP, LOG } from '../cli/flags.ts';
import { count, type Log, type SummaryRow } from '../cli/log.ts';
import { settingsFileOf, settingsReader } from '../cli/settings.ts';
import { CliError, EXIT, messageOf, UsageError } from '../errors.ts';
import { MANIFEST_PATH } from '../pages/filePaths.ts';
import { plainCall, program } from '../program.ts';

export const UPDATE_COMMAND: Command = {
  call: program.callOf('update'),
  about: 'Pulls new blocks, builds what changed and uploads it, as the settings file says. Run it again after new blocks.',
  flags: [CONFIG, LOG, HELP],
  examples: [{ args: '', about: 'Updates the mirror that rune-mirror.json describes.' }],
  exits: ['done', 'usage', 'badInput', 'buildFailed', 'interrupted'],
};

/** Folders of a mirror that the settings describe: the usual ones. */
const [PULLED, OUT] = ['input/pulled', 'dist'];

/** Runs the command. Rejects with a CliError that has the exit code of the step that failed. Later steps do not run. */
export async function runUpdate(flags: Flags, log: Log): Promise<void> {
  const format = flags.choice('log', ['text', 'json']);
  const file = settingsFileOf(flags);
  if (file === undefined) throw new UsageError(`there is no settings file; make one with ${plainCall('init')}`);
  const { source, upload } = (await settingsReader()).readSettings(file);
  if (source === undefined) throw new UsageError(`${file} has no source; add one, as in "source": "core:http://127.0.0.1:8332"`);
  const command = (name: string, ...args: string[]) => [execPath, program.runner, name, '--config', file, '--log', format, ...args];
  const steps: readonly (readonly [name: string, line: readonly string[], environment: NodeJS.ProcessEnv])[] = [
    ['pull', command('pull'), env],
    ['build', command('build', '--input', PULLED, '--out', OUT), withoutSecrets(env)],
    ...(upload === undefined ? [] : [['upload', ['sh', program.upload, upload, OUT], withoutSecrets(env)] as const]),
  ];
  const clock = performance.now();
  const seconds: Record<string, number> = {};
  for (const [name, line, environment] of steps) {
    const begin = performance.now();
    await runStep(name, line, environment, format === 'json');
    seconds[name] = Math.round((performance.now() - begin) / 100) / 10;
  }
  const all = Math.round((performance.now() - clock) / 100) / 10;
  const { tip, blocks, records } = JSON.parse(readFileSync(join(OUT, MANIFEST_PATH), 'utf8')) as Readonly<Record<string, unknown>>;
  const { height = 0 } = (tip ?? {}) as { readonly height?: number };
  const rows: SummaryRow[] = [
    ['has', `${count(Number(records), 'record')} of ${count(Number(blocks), 'block')}`],
    ['uploaded', upload ?? `nothing: ${file} has no upload`],
    [
      'seconds',
      Object.entries(seconds)
        .map(([name, one]) => `${name} ${one}`)
        .join(', '),
    ],
  ];
  log.info('updated', `The mirror has all blocks up to ${height.toLocaleString('en-US')} (${all} s).`, {
    tip,
    blocks,
    records,
    upload,
    seconds,
  });
  log.summary(rows);
}

/** Runs a step in its own process. Rejects with its exit code. Of its text, prints all but tables: update prints one. */
async function runStep(
  name: string,
  [file = '', ...args]: readonly string[],
  environment: NodeJS.ProcessEnv,
  isJson: boolean,
): Promise<void> {
  const child: ChildProcess = spawn(file, args, { env: environment, stdio: ['ignore', 'pipe', 'inherit'] });
  let rest = '';
  const print = (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (isJson || !line.startsWith('  ')) process.stdout.write(`${line}\n`);
  };
  child.stdout?.setEncoding('utf8').on('data', print);
  // The terminal sends Ctrl-C to all processes. The step ends by itself, and then this command.
  const [ignore, stop] = [() => undefined, () => void child.kill('SIGTERM')];
  process.on('SIGINT', ignore).on('SIGTERM', stop);
  try {
    const [code] = (await once(child, 'close').catch((error: unknown) => {
      throw new CliError(`${name} cannot start: ${messageOf(error)}`, EXIT.buildFailed);
    })) as [number | null];
    if (code !== EXIT.done)
      throw new CliError(`${name} ended with exit code ${code ?? 'of a signal'}; the steps after it did not run`, code ?? EXIT.interrupted);
  } finally {
    process.off('SIGINT', ignore).off('SIGTERM', stop);
  }
}
