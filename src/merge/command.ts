/**
 * The merge command: its flags, and what it says.
 */
import { type Command, type Flags, HELP } from '../cli/flags.ts';
import type { Log } from '../cli/log.ts';
import { Progress } from '../cli/progress.ts';
import { merge } from './merge.ts';

export const MERGE_COMMAND: Command = {
  call: 'npm run merge --',
  about: 'Joins outputs of builds that hold different blocks into one, as if all had been built in one go.',
  positionals: { name: 'OUT PART...', least: 2 },
  flags: [
    { name: 'cache', value: 'DIR', byDefault: '.cache/merge', about: 'Where the lists of changes go, and working files.' },
    { name: 'log', value: 'FORMAT', byDefault: 'text', about: 'text, or json for a JSON object a line.' },
    HELP,
  ],
};

/** Merges as the flags say. Rejects with a CliError for what is for people to mend. */
export async function runMerge(flags: Flags, log: Log): Promise<void> {
  const [out = '', ...parts] = flags.positionals;
  const cache = flags.one('cache') ?? '.cache/merge';
  const format = flags.choice('log', ['text', 'json']);
  await merge({ out, parts, cache }, log, () => new Progress(log, format === 'text' && process.stderr.isTTY));
}
