/**
 * The merge command: its flags, and what it says.
 */
import { type Command, type Flags, HELP, LOG } from '../cli/flags.ts';
import type { Log } from '../cli/log.ts';
import { Progress } from '../cli/progress.ts';
import { merge } from './merge.ts';

export const MERGE_COMMAND: Command = {
  call: 'npm run merge --',
  about: 'Joins outputs of builds that hold different blocks into one, as if all had been built in one go.',
  positionals: { name: 'OUT PART...', least: 2 },
  flags: [
    { name: 'cache', value: 'DIR', byDefault: '.cache/merge', about: 'Where the lists of changes go, and working files.' },
    LOG,
    HELP,
  ],
  examples: [{ args: 'dist part-a part-b', about: 'Joins two builds of different heights into dist/.' }],
  exits: ['done', 'usage', 'badInput', 'buildFailed'],
};

/** Merges as the flags say. Rejects with a CliError for what is for people to mend. */
export async function runMerge(flags: Flags, log: Log): Promise<void> {
  const [out = '', ...parts] = flags.positionals;
  const cache = flags.one('cache') ?? '.cache/merge';
  const progress = Progress.of(flags, log);
  await merge({ out, parts, cache }, log, (stage) => {
    progress.begin(stage);
    return progress;
  });
}
