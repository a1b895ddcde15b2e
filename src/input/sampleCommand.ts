/** The sample command: copies the sample data of this program. */
import { copyFileSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, type Flags, flag, HELP, LOG } from '../cli/flags.ts';
import type { Log } from '../cli/log.ts';
import { BuildError, messageOf } from '../errors.ts';
import { program } from '../program.ts';

const FILES = ['ledger.csv', 'runes.csv'];

export const SAMPLE_COMMAND: Command = {
  call: program.callOf('sample'),
  about: 'Writes sample data to try the mirror: two real etchings, and invented records.',
  flags: [flag('to DIR', 'The folder for the files; existing ones are replaced.', { byDefault: 'sample' }), LOG, HELP],
  examples: [{ args: '--to elsewhere', about: 'Writes into the folder elsewhere.' }],
  exits: ['done', 'usage', 'buildFailed'],
};

/** Runs the command. Rejects with a BuildError if a file cannot be written. */
export async function writeSample(flags: Flags, log: Log): Promise<void> {
  const to = flags.one('to') ?? 'sample';
  for (const name of FILES) {
    const path = join(to, name);
    try {
      mkdirSync(to, { recursive: true });
      copyFileSync(join(program.sample, name), path);
    } catch (error) {
      throw new BuildError(`the sample cannot be written: ${messageOf(error)}`, ['Choose another folder with --to.']);
    }
    const bytes = statSync(path).size;
    log.info('written', `${path}  ${bytes} bytes`, { path, bytes });
  }
}

/**
 * SQL condition for rows of the sample's invented blocks, so that mirrors do not present them as real data. The heights are far above the
 * tip of the chain. 8 zeros are too few for the hash of a real block of the main chain since 2010.
 */
export const IS_INVENTED = `(block_height BETWEEN 2000001 AND 2001000 AND starts_with(block_hash, '00000000f00d'))`;
